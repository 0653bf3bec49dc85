"""A game of one's own that borrows Connect Four's board: stones fall into three columns; who fills the board wins."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.games.game import Game
from muzero_jax.games.view import View, stones

SHAPE = (2, 3)


class State(NamedTuple):
    """A position, with pgx's fields."""

    current_player: jax.Array
    observation: jax.Array  # [2, 3, 2] bool, the mover's stones and the other's
    legal_action_mask: jax.Array  # [3]
    rewards: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class Drop:
    """Action c drops a stone into column c."""

    num_players = 2

    def init(self, key):
        """An empty board."""
        del key
        return State(
            jnp.int32(0),
            jnp.zeros((*SHAPE, 2), bool),
            jnp.ones(3, bool),
            jnp.zeros(2),
            jnp.bool_(False),
            jnp.bool_(False),
        )

    def step(self, state, action, key):
        """The position after a stone fell."""
        del key
        row = SHAPE[0] - 1 - state.observation.any(axis=-1)[:, action].sum()
        board = state.observation.at[row, action, 0].set(True)[..., ::-1]
        full = board.any(axis=-1).all()
        rewards = jnp.where(full, jnp.where(jnp.arange(2) == state.current_player, 1.0, -1.0), 0.0)
        legal = ~board.any(axis=-1)[0]
        return State(1 - state.current_player, board, legal, rewards, full, jnp.bool_(False))


def squares(state):
    """The first mover's stones are X."""
    own, other = (np.asarray(state.observation)[..., plane].astype(int) for plane in (0, 1))
    return stones((own - other) * (1 - 2 * int(state.current_player)))


DROP = Game("drop", "Drop", rules=lambda board_size: Drop(), view=View(squares, page="connect_four"))
