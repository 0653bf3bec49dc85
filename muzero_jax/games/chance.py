"""Chance that the rules can list: how a move is put together from what the player does and what chance does then.

Rules in pgx's form have one `step`. Rules with listed chance have three functions in its place (`ListedRules`), so that
a search may branch on outcomes. `Environment.move` is their composition: the player's part, an outcome drawn from the
probabilities with the key, and what the outcome does.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int

from muzero_jax.games.states import with_fields
from muzero_jax.types import Afterstate, Chance, EnvState, Step

NOTHING = -1
"""The outcome of a move after which chance did nothing."""


@runtime_checkable
class ListedRules(Protocol):
    """Rules whose states have pgx's form, and whose chance has `num_outcomes` outcomes."""

    num_outcomes: int
    init: Callable[[Array], EnvState]  # key -> a new game
    move: Callable[..., tuple[EnvState, Array]]
    """(state, action) -> the state that the player alone makes, with the rewards for that; whether chance acts next"""
    probabilities: Callable[[EnvState], Array]  # a state in which chance acts -> [C], which sum to 1
    resolve: Callable[..., EnvState]  # (such a state, outcome) -> the next position, with the rewards that chance gave


def make_move(chance: Chance) -> Callable[..., Step]:
    """`Environment.move` of listed chance; the key draws the outcome, which `Step.outcome` names."""

    def move(state: EnvState, action: Int[Array, ""], key: Array | None = None) -> Step:
        if key is None:
            raise ValueError("chance draws from a key in this game; call move(state, action, key)")
        after = chance.move(state, action)
        weights = chance.probabilities(after.state)
        return joined(chance, after, jax.random.categorical(key, jnp.log(weights)).astype(jnp.int32))

    return move


def joined(chance: Chance, after: Afterstate, outcome: Int[Array, ""]) -> Step:
    """The whole move of which `after` is the player's part, where chance answers with `outcome` if it acts at all."""
    then, acts = chance.resolve(after.state, outcome), after.awaits_chance
    return Step(
        state=jax.tree.map(partial(jnp.where, acts), _with_all_rewards(after.state, then.state), after.state),
        reward=after.reward + jnp.where(acts, after.discount * then.reward, 0.0),
        discount=jnp.where(acts, after.discount * then.discount, after.discount),
        is_last=jnp.where(acts, then.is_last, after.is_last),
        outcome=jnp.where(acts, outcome, NOTHING),
    )


def refuse(state: EnvState, action: Array, moved: EnvState, penalty: float) -> tuple[EnvState, Array]:
    """(the state after a move, whether the action was legal); an illegal one ends the game, as in all of pgx's games.

    The position stays as it was. The player loses `penalty`, which another player wins.
    """
    num_actions = state.legal_action_mask.shape[0]
    is_legal = (action >= 0) & (action < num_actions) & state.legal_action_mask[jnp.clip(action, 0, num_actions - 1)]
    is_mover = jnp.arange(state.rewards.shape[0]) == state.current_player
    rewards = jnp.where(is_mover, -penalty, penalty).astype(state.rewards.dtype)
    lost = with_fields(state, rewards=rewards, terminated=jnp.ones_like(state.terminated))
    return jax.tree.map(partial(jnp.where, is_legal), moved, lost), is_legal


def _with_all_rewards(after: EnvState, then: EnvState) -> EnvState:
    """The position after chance, whose rewards are those of the whole move."""
    if not (hasattr(after, "rewards") and hasattr(then, "rewards")):
        return then  # a state of any kind; `states.seated` gives it rewards later
    return with_fields(then, rewards=after.rewards + then.rewards)
