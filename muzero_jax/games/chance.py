"""Listed chance: rules that can name every outcome of a move and its probability.

Rules in pgx's form have one `step`. Rules with listed chance have three functions instead (`ListedRules`), so that a
search can branch on outcomes. `Environment.move` composes them: the player's part, a random outcome with the listed
probabilities, and the effect of that outcome.
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
    """(state, action) -> the state after the player's part, with the rewards for it; whether chance acts next"""
    probabilities: Callable[[EnvState], Array]  # a state in which chance acts -> [C], which sum to 1
    resolve: Callable[..., EnvState]  # (such a state, outcome) -> the next position, with the rewards of the outcome


def make_chance_move(chance: Chance) -> Callable[..., Step]:
    """`Environment.move` of listed chance. The key chooses the outcome, which is returned as `Step.outcome`."""

    def move(state: EnvState, action: Int[Array, ""], key: Array | None = None) -> Step:
        if key is None:
            raise ValueError("chance draws from a key in this game; call move(state, action, key)")
        after = chance.move(state, action)
        weights = chance.probabilities(after.state)
        return with_outcome(chance, after, jax.random.categorical(key, jnp.log(weights)).astype(jnp.int32))

    return move


def with_outcome(chance: Chance, after: Afterstate, outcome: Int[Array, ""]) -> Step:
    """The whole move: `after`, the player's part, followed by `outcome` if chance acts."""
    then = chance.resolve(after.state, outcome)
    acts = after.awaits_chance
    return Step(
        state=jax.tree.map(partial(jnp.where, acts), _with_all_rewards(after.state, then.state), after.state),
        reward=after.reward + jnp.where(acts, after.discount * then.reward, 0.0),
        discount=jnp.where(acts, after.discount * then.discount, after.discount),
        is_last=jnp.where(acts, then.is_last, after.is_last),
        outcome=jnp.where(acts, outcome, NOTHING),
    )


def refuse(state: EnvState, action: Array, moved: EnvState, penalty: float) -> tuple[EnvState, Array]:
    """(the state after a move, whether the action was legal). As in all pgx games, an illegal action ends the game.

    The position then stays as it was, the player loses `penalty`, and the opponent, if there is one, wins it.
    """
    num_actions = state.legal_action_mask.shape[0]
    is_legal = (action >= 0) & (action < num_actions) & state.legal_action_mask[jnp.clip(action, 0, num_actions - 1)]
    is_mover = jnp.arange(state.rewards.shape[0]) == state.current_player
    rewards = jnp.where(is_mover, -penalty, penalty).astype(state.rewards.dtype)
    lost = with_fields(state, rewards=rewards, terminated=jnp.ones_like(state.terminated))
    return jax.tree.map(partial(jnp.where, is_legal), moved, lost), is_legal


def _with_all_rewards(after: EnvState, then: EnvState) -> EnvState:
    """The position after chance, with the rewards of the whole move."""
    if not (hasattr(after, "rewards") and hasattr(then, "rewards")):
        return then  # a state of any kind; `states.wrapped` gives it rewards later
    return with_fields(then, rewards=after.rewards + then.rewards)
