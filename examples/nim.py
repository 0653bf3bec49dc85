"""Nim, as a game of your own in one file: python experiments/train.py --env examples/nim.py --minutes 1

Three heaps hold 3, 4 and 5 objects. A move takes one or more objects from one heap; whoever takes the last object wins.
The board has a row for each heap. Action a names the cell of one object: the move takes it and all to its right.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

HEAPS = (3, 4, 5)
SHAPE = (len(HEAPS), max(HEAPS))


class State(NamedTuple):
    """A position, with the fields that every game needs. In Nim, `observation` already holds the whole position."""

    current_player: jax.Array  # [] int32, 0 or 1: who is to move
    observation: jax.Array  # [3, 5, 1] bool, what that player sees: where an object lies
    legal_action_mask: jax.Array  # [15] bool, True where the action is legal
    rewards: jax.Array  # [2] float32, what the last move gave to player 0 and to player 1
    terminated: jax.Array  # [] bool, whether the rules have ended the game
    truncated: jax.Array  # [] bool, whether a time limit has


def position(objects: jax.Array, player: jax.Array) -> State:
    """The state in which `player` is to move and the cells [3, 5] hold `objects`."""
    is_over = ~objects.any()
    winner = 1 - player  # who took the last object
    rewards = jnp.where(is_over, jnp.where(jnp.arange(2) == winner, 1.0, -1.0), 0.0)
    return State(player, objects[:, :, None], objects.ravel(), rewards, is_over, jnp.bool_(False))


class Nim:
    """The rules: `init` begins a game, and `step` returns the state after a move."""

    num_players = 2

    def init(self, key: jax.Array) -> State:
        """A new game; `key` is for games with a random start."""
        del key
        return position(jnp.arange(SHAPE[1]) < jnp.array(HEAPS)[:, None], jnp.int32(0))

    def step(self, state: State, action: jax.Array, key: jax.Array) -> State:
        """The position after an action, seen by the player who moves next."""
        del key
        heap, left = jnp.divmod(action, SHAPE[1])  # the heap that loses objects, and how many it keeps
        rows, columns = jnp.indices(SHAPE)
        taken = (rows == heap) & (columns >= left)
        return position(state.observation[:, :, 0] & ~taken, 1 - state.current_player)


def make() -> Nim:
    """The game, for `--env examples/nim.py`."""
    return Nim()
