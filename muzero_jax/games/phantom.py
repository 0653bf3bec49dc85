"""Dark Hex and phantom tic-tac-toe: players do not see each other's stones.

Who plays on a hidden stone learns that it is there. In the classical game they then try again, in the abrupt one their
turn is over (Rudolph et al. 2026, arXiv 2502.08938, play both). An observation shows the own stones, the opponent's
that were found, and who one is. It leaves out in which order one tried the cells, so that few enough states remain for
an exact best response, which does remember it. There is no swap.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool

from muzero_jax.games.game import Game
from muzero_jax.games.hex import winning_chain
from muzero_jax.games.hex_rules import make_tables
from muzero_jax.games.layout import Layout, turns_and_mirrors
from muzero_jax.games.notation import coordinates
from muzero_jax.games.view import Squares, View, rows_of, stones

Wins = Callable[[Array, Array], Array]
"""(stones [N] of a player, the player) -> whether they win"""


class PhantomState(NamedTuple):
    """Both players' stones, and the cells that they tried."""

    stones: Array  # [2, N] bool
    tried: Array  # [2, N] bool
    current_player: Array  # [] int32; 0 moves first
    observation: Array  # [n, n, 3] bool: own stones, those found, whether one moved second
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array  # [N] bool, the cells that the player has not tried


class Phantom:
    """The rules on a board of size x size cells.

    Args:
      wins: whether a player's stones win. abrupt: whether a try on a hidden stone ends the turn.
    """

    num_players = 2

    def __init__(self, size: int, wins: Wins, *, abrupt: bool):
        self.size = size
        self._wins = wins
        self._abrupt = abrupt

    def init(self, key: Array) -> PhantomState:
        """An empty board."""
        del key
        cells = self.size**2
        none = jnp.zeros((2, cells), bool)
        return self._state(none, none, jnp.int32(0), jnp.zeros(2), jnp.bool_(False))

    def step(self, state: PhantomState, action: Array, key: Array | None = None) -> PhantomState:
        """A try; after a game's end nothing changes."""
        del key
        mover = state.current_player
        is_taken = state.stones[1 - mover, action]
        goes_on = ~state.terminated
        placed = state.stones.at[mover, action].set(state.stones[mover, action] | (~is_taken & goes_on))
        tried = state.tried.at[mover, action].set(state.tried[mover, action] | goes_on)
        won = goes_on & ~is_taken & self._wins(placed[mover], mover)
        own = jnp.where(won, 1.0, 0.0)
        keeps_turn = is_taken & (not self._abrupt) | won | ~goes_on
        ended = state.terminated | won | placed.any(axis=0).all()
        player = jnp.where(keeps_turn, mover, 1 - mover)
        return self._state(placed, tried, player, jnp.where(jnp.arange(2) == mover, own, -own), ended)

    def _state(self, placed: Array, tried: Array, player: Array, rewards: Array, terminated: Array) -> PhantomState:
        own = placed[player]
        planes = jnp.stack([own, tried[player] & ~own, jnp.full(own.shape, player == 1)], axis=-1)
        return PhantomState(
            stones=placed,
            tried=tried,
            current_player=player,
            observation=planes.reshape(self.size, self.size, 3),
            rewards=rewards,
            terminated=terminated,
            truncated=jnp.bool_(False),
            legal_action_mask=~tried[player] | terminated,
        )


def three_in_a_row(own: Bool[Array, " 9"], player: Array) -> Bool[Array, ""]:
    """Whether the stones hold a row, column or diagonal of three."""
    del player
    lines = jnp.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
    return own[lines].all(axis=1).any()


def joins_edges(size: int) -> Wins:
    """Whether the stones join the edges of their colour: 0 top and bottom, 1 left and right, as in Hex."""
    tables = make_tables(size)
    cells = np.arange(size**2)
    touches = np.zeros((size**2, size**2), bool)
    for pair in tables.neighbours.reshape(size**2, -1).T:
        touches[cells, pair] = True

    def wins(own: Bool[Array, " N"], player: Array) -> Bool[Array, ""]:
        edges = jnp.asarray(tables.edges)[player]
        joined = jnp.asarray(touches) & own & own[:, None]
        for _ in range((size**2 - 1).bit_length()):  # each doubles the length of the paths
            joined |= (joined.astype(jnp.float32) @ joined.astype(jnp.float32)) > 0
        return (joined & ((edges & 1) > 0)[:, None] & ((edges & 2) > 0)).any()

    return wins


def veil(state: Any, player: int) -> Any:
    """The state without the opponent's stones that `player` has not found."""
    found = state.stones[1 - player] & state.tried[player]
    return state._replace(stones=state.stones.at[1 - player].set(found))


def squares(state: Any) -> Squares:
    """The stones of both."""
    own, other = np.asarray(state.stones).astype(int)
    size = int(len(own) ** 0.5)
    return stones((own - other).reshape(size, size))


_CLASSICAL = "if you play on one, you learn of it and play again"
_ABRUPT = "if you play on one, you learn of it and your turn is over"


def _phantom_tic_tac_toe(*, abrupt: bool) -> Game:
    return Game(
        f"{'abrupt_' * abrupt}phantom_tic_tac_toe",
        f"{'Abrupt phantom' if abrupt else 'Phantom'} tic-tac-toe",
        goal="Three of your marks in a row, column or diagonal win. You do not see the other's marks; "
        f"{_ABRUPT if abrupt else _CLASSICAL}.",
        rules=lambda board_size: Phantom(3, three_in_a_row, abrupt=abrupt),
        turns_alternate=abrupt,
        layout=Layout(symmetries=turns_and_mirrors),
        notation=coordinates(),
        view=View(squares, colours=("X", "O"), inks=("red", "blue"), marks_last=True, page="tic_tac_toe"),
        winning_cells=rows_of(3),
        hidden=True,
        veil=veil,
        shows_moves=False,
    )


def _dark_hex(*, abrupt: bool) -> Game:
    def rules(board_size: int | None) -> Phantom:
        size = board_size or 3
        return Phantom(size, joins_edges(size), abrupt=abrupt)

    return Game(
        f"{'abrupt_' * abrupt}dark_hex",
        f"{'Abrupt dark' if abrupt else 'Dark'} Hex",
        goal="Black joins top and bottom; white joins left and right. You do not see the other's stones; "
        f"{_ABRUPT if abrupt else _CLASSICAL}.",
        rules=rules,
        turns_alternate=abrupt,
        sizes=range(2, 6),
        layout=Layout(symmetries=lambda cells: [cells, cells[::-1, ::-1]]),
        notation=coordinates(),
        view=View(squares, marks_last=True, leans=True, has_edges=True, page="hex"),
        winning_cells=winning_chain,
        hidden=True,
        veil=veil,
        shows_moves=False,
    )


PHANTOM_GAMES = tuple(make(abrupt=abrupt) for make in (_phantom_tic_tac_toe, _dark_hex) for abrupt in (False, True))
