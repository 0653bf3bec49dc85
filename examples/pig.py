"""Pig, a two-player game of dice in one file: python experiments/train.py --env examples/pig.py --minutes 1

Roll a die with three faces as often as you like, and add up its points; the first to reach 15 wins at once. A 1 ends
your turn, and you lose the turn's points; if you hold, you keep them and your turn ends.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

TARGET = 15  # so small that every position's exact value can be computed quickly
FACES = 3
HOLD = 0
ROLL = 1


class State(NamedTuple):
    """A position, with the fields that every game needs and two of Pig's own."""

    current_player: jax.Array  # [] int32, 0 or 1: who is to move
    observation: jax.Array  # [3, 15] bool, bars whose lengths are the mover's points, the opponent's, and this turn's
    legal_action_mask: jax.Array  # [2] bool, whether that player may hold and roll
    rewards: jax.Array  # [2] float32, what the last move gave to player 0 and to player 1
    terminated: jax.Array  # [] bool, whether the rules have ended the game
    truncated: jax.Array  # [] bool, whether a time limit has
    points: jax.Array  # [2] int32, kept by player 0 and by player 1
    gain: jax.Array  # [] int32, of this turn


def position(points: jax.Array, gain: jax.Array, player: jax.Array) -> State:
    """The state in which `player` is to move, and has won if points and gain together reach the target."""
    lengths = jnp.stack([points[player], points[1 - player], gain])
    has_won = lengths[0] + gain >= TARGET
    rewards = jnp.where(has_won, jnp.where(jnp.arange(2) == player, 1.0, -1.0), 0.0)
    legal = jnp.array([True, True]).at[HOLD].set(gain > 0)
    observation = jnp.arange(TARGET) < lengths[:, None]
    return State(player, observation, legal, rewards, has_won, jnp.bool_(False), points, gain)


class Pig:
    """The rules: the player's part of a move, each face's probability, and its effect."""

    num_players = 2
    num_outcomes = FACES

    def init(self, key: jax.Array) -> State:
        """A new game; `key` is for games with a random start."""
        del key
        return position(jnp.zeros(2, jnp.int32), jnp.int32(0), jnp.int32(0))

    def move(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """The state after the player's part, and whether the die is rolled next."""
        kept = position(state.points.at[state.current_player].add(state.gain), jnp.int32(0), 1 - state.current_player)
        return jax.tree.map(lambda a, b: jnp.where(action == ROLL, a, b), state, kept), action == ROLL

    def probabilities(self, state: State) -> jax.Array:
        """The probabilities of the faces."""
        del state
        return jnp.full(FACES, 1 / FACES)

    def resolve(self, state: State, outcome: jax.Array) -> State:
        """The position after the die shows `outcome` + 1."""
        lost = position(state.points, jnp.int32(0), 1 - state.current_player)
        gained = position(state.points, state.gain + outcome + 1, state.current_player)
        return jax.tree.map(lambda a, b: jnp.where(outcome == 0, a, b), lost, gained)


def make() -> Pig:
    """The game, for `--env examples/pig.py`."""
    return Pig()
