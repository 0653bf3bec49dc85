"""Expectimax: the best move by the rules, a few moves deep, with every chance outcome weighted by its probability.

Leaves are valued by the game's `worth`, a simple estimate that the game's file documents. Expectimax needs no network,
so it is a yardstick for games with known chance outcomes. With depth 1 it is backgammon's pip-count player. One more
move of depth costs A times C as much (128 in 2048).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from muzero_jax.apps.evaluation.player import Player
from muzero_jax.games.catalogue import game_of
from muzero_jax.games.game import Worth
from muzero_jax.types import Afterstate, Chance, Environment, EnvState

DEEPEST = 2
_ILLEGAL = -1e30


def expectimax_player(environment: Environment, depth: int, name: str | None = None) -> Player:
    """Plays the first action of the highest expectimax value.

    Raises ValueError if the depth is not 1 or 2, or if the game has no listed chance or no `worth`.
    """
    chance = environment.chance
    worth = game_of(environment).worth
    if chance is None or worth is None:
        needs = "which needs known chance outcomes and a Game with a `worth`"
        raise ValueError(f"{environment.name} has no expectimax player, {needs}; 2048 and backgammon have both")
    if not 1 <= depth <= DEEPEST:
        raise ValueError(f"expectimax looks 1 or {DEEPEST} moves ahead, not {depth}")
    values = partial(action_values, chance, worth, depth)

    def act(params, key, states):
        del params, key
        return jnp.argmax(jax.vmap(values)(states), axis=-1).astype(jnp.int32)

    return Player(name or f"expectimax ({depth} {'move' if depth == 1 else 'moves'})", act)


def gain_player(environment: Environment) -> Player:
    """Plays an action of the largest immediate reward, at random among equals. Needs listed chance; else ValueError."""
    chance = environment.chance
    if chance is None:
        raise ValueError(f"{environment.name} has no highest-gain player; games with known chance outcomes have one")

    def act(params, key, states):
        del params
        reward = jax.vmap(partial(action_values, chance, lambda state: jnp.float32(0), 1))(states)
        is_best = reward == reward.max(-1, keepdims=True)
        return jnp.argmax(jnp.where(is_best, jax.random.uniform(key, is_best.shape), -1.0), -1).astype(jnp.int32)

    return Player("highest gain", act)


def pip_count_player(environment: Environment) -> Player:
    """Expectimax of depth 1 in backgammon: wins, or takes the largest lead in pips after the move.

    Raises ValueError for any other game.
    """
    if environment.name != "backgammon":
        raise ValueError(f"pip-count plays backgammon, not {environment.name}")
    return expectimax_player(environment, 1, "pip count")


def action_values(chance: Chance, worth: Worth, depth: int, state: EnvState) -> Float[Array, " A"]:
    """The value of each action for the player to move, about -1e30 for illegal ones."""

    def value(action: Array) -> Array:
        after = chance.move(state, action)
        return after.reward + _value_after(chance, worth, depth, after)

    values = jax.vmap(value)(jnp.arange(state.legal_action_mask.shape[0]))
    return jnp.where(state.legal_action_mask, values, _ILLEGAL)


def _value_after(chance: Chance, worth: Worth, depth: int, after: Afterstate) -> Float[Array, ""]:
    """The value of an afterstate, without its reward, for the player who moved."""
    if depth == 1:  # the discount is 1 before chance acts, 0 at an end
        return after.discount * worth(after.state)
    goes_on = partial(_best, chance, worth, depth - 1)
    then = jax.vmap(partial(chance.resolve, after.state))(jnp.arange(chance.num_outcomes))
    value = then.reward + then.discount * jax.vmap(goes_on)(then.state)
    answered = jnp.sum(chance.probabilities(after.state) * value)  # not a matrix product, which accelerators round
    return after.discount * jnp.where(after.awaits_chance, answered, goes_on(after.state))


def _best(chance: Chance, worth: Worth, depth: int, state: EnvState) -> Float[Array, ""]:
    best = action_values(chance, worth, depth, state).max()
    return jnp.where(state.terminated, 0.0, best)
