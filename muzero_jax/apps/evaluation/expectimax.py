"""Expectimax: the best move by the rules, a few moves deep, with every outcome of chance weighed by its probability.

At its greatest depth it asks the game's `worth`, a simple estimate that its file documents. It needs no network, so it
is a yardstick for games with listed chance: depth 1 of backgammon is the pip-count player. A depth more costs A times C
as much (128 in 2048).
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
    """Plays the action of the highest value, and the first of several.

    Raises ValueError if the depth is not 1 or 2, or the game lists no chance or has no `worth`.
    """
    chance, worth = environment.chance, game_of(environment).worth
    if chance is None or worth is None:
        raise ValueError(f"{environment.name} has no expectimax player; 2048 and backgammon have one")
    if not 1 <= depth <= DEEPEST:
        raise ValueError(f"expectimax looks 1 or {DEEPEST} moves ahead, not {depth}")
    values = partial(action_values, chance, worth, depth)

    def act(params, key, states):
        del params, key
        return jnp.argmax(jax.vmap(values)(states), axis=-1).astype(jnp.int32)

    return Player(name or f"expectimax ({depth} {'move' if depth == 1 else 'moves'})", act)


def gain_player(environment: Environment) -> Player:
    """Plays the action that earns most at once, one of several at random. It needs listed chance, as expectimax."""
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
    """Expectimax of depth 1 in backgammon: the largest lead in pips after the move, or the win.

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
    """The value of all that follows the player's part of a move, for that player."""
    if depth == 1:  # before chance acts the discount is 1, and at an end 0
        return after.discount * worth(after.state)
    goes_on = partial(_best, chance, worth, depth - 1)
    then = jax.vmap(partial(chance.resolve, after.state))(jnp.arange(chance.num_outcomes))
    value = then.reward + then.discount * jax.vmap(goes_on)(then.state)
    answered = jnp.sum(chance.probabilities(after.state) * value)  # a product of matrices is rounded on accelerators
    return after.discount * jnp.where(after.awaits_chance, answered, goes_on(after.state))


def _best(chance: Chance, worth: Worth, depth: int, state: EnvState) -> Float[Array, ""]:
    best = action_values(chance, worth, depth, state).max()
    return jnp.where(state.terminated, 0.0, best)
