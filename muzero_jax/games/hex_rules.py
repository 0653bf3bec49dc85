"""Hex on any board from 2x2 to 19x19, as a pgx `Env`.

pgx's own `Hex(size=n)` has a board of 121 cells for every n, so it works only at size 11. At 11 these rules agree with
it move for move (actions, observations, players, rewards, masks) and take a fifth of its time under `vmap`, where a
`lax.cond` computes both branches. Each stone holds its chain's label, whose two low bits say which edges the chain
touches. So a move is six lookups and one masked `where` over the board, and a chain with both bits set wins.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool
from pgx import hex as pgx_hex
from pgx.hex import State

MIN_SIZE = 2
MAX_SIZE = 19
BOTH_EDGES = 3

# The six neighbours in ring order, as (row, column) offsets. The two cells of a pair touch each other, so own stones on
# both belong to one chain, and a move joins at most three chains.
NEIGHBOUR_PAIRS = np.array([[(0, -1), (1, -1)], [(1, 0), (0, 1)], [(-1, 1), (-1, 0)]])


class GameState(NamedTuple):
    """The rules' state, from the view of the player to move."""

    board: Array
    """[N] int16: 0 empty, own chains' labels > 0, the opponent's < 0; |label| = 4 * (a cell + 1) + edge bits"""
    color: Array  # [] int32, of the player to move: 0 starts and joins top and bottom, 1 joins left and right
    step_count: Array  # [] int32, moves made, the swap included
    first_cell: Array  # [] int32, the cell of the first stone, which a swap takes


class Tables(NamedTuple):
    """The neighbours and edges of the N = size * size cells of a board."""

    neighbours: np.ndarray
    """[N, 3, 2] int32, the neighbours of each cell; past the edge the cell itself, which is empty before a move"""
    edges: np.ndarray  # [2, N] int32, by color: bit 0 on its first edge (top, left), bit 1 on its second
    transposed: np.ndarray  # [N] int32, the mirror image in the long diagonal


def make_tables(size: int) -> Tables:
    """The tables of a size x size board."""
    cells = np.arange(size * size, dtype=np.int32)
    row, column = np.divmod(cells, size)
    next_row, next_column = (x[:, None, None] + NEIGHBOUR_PAIRS[..., i] for i, x in enumerate((row, column)))
    on_board = (next_row >= 0) & (next_row < size) & (next_column >= 0) & (next_column < size)
    neighbours = np.where(on_board, next_row * size + next_column, cells[:, None, None])
    line = np.stack([row, column])
    edges = (line == 0) * 1 + (line == size - 1) * 2
    return Tables(neighbours.astype(np.int32), edges.astype(np.int32), column * size + row)


def play(game: GameState, action: Array, tables: Tables) -> tuple[GameState, Array]:
    """Places a stone or swaps: (the state for the other player, whether the player who moved has won).

    A swap removes the opponent's stone and puts an own stone on the transposed cell, so that this player stands exactly
    where the opponent stood.
    """
    num_cells = tables.transposed.size
    board = game.board
    is_swap = action == num_cells
    cell = jnp.where(is_swap, jnp.asarray(tables.transposed)[game.first_cell], action)
    neighbours = jnp.asarray(tables.neighbours)[cell]
    chains = jnp.maximum(board[neighbours].max(axis=1), 0)  # [3], 0 where a pair holds no own stone

    edges = jnp.asarray(tables.edges)[game.color, cell] | ((chains[0] | chains[1] | chains[2]) & BOTH_EDGES)
    label = (4 * (cell + 1) + edges).astype(board.dtype)
    chains = jnp.where(chains > 0, chains, label)  # the new label is on no stone yet

    cells = jnp.arange(num_cells, dtype=board.dtype)
    taken = jnp.where(is_swap, game.first_cell, -1).astype(board.dtype)
    joined = (board == chains[0]) | (board == chains[1]) | (board == chains[2]) | (cells == cell.astype(board.dtype))
    return GameState(
        board=jnp.where(joined, -label, jnp.where(cells == taken, 0, -board)),
        color=1 - game.color,
        step_count=game.step_count + 1,
        first_cell=jnp.where(game.step_count == 0, cell, game.first_cell),
    ), edges == BOTH_EDGES


class Hex(pgx_hex.Hex):
    """Hex of any size; action row * size + column places a stone, action size * size swaps (legal as second move only).

    Its states are pgx's, with our `GameState` as `_x` and observations [size, size, 4]: own stones, the opponent's, the
    color of the player to move, whether a swap is legal.
    """

    def __init__(self, *, size: int = 11):
        assert MIN_SIZE <= size <= MAX_SIZE
        self.size = size
        self._tables = make_tables(size)

    def step(self, state: State, action: Array, key: Array | None = None) -> State:
        """One move as `pgx.Env.step` defines it, without its `cond`s: an illegal move loses, a finished game stays.

        Only after an illegal swap does the final board differ from pgx's.
        """
        del key
        over = state.terminated | state.truncated
        is_illegal = ~state.legal_action_mask[action]
        played, won = play(state._x, action, self._tables)
        game = jax.tree.map(lambda old, new: jnp.where(over, old, new), state._x, played)
        terminated = state.terminated | ~over & (won | is_illegal)
        own_reward = jnp.where(over, 0.0, jnp.where(is_illegal, -1.0, won.astype(jnp.float32)))
        return state.replace(
            current_player=state._player_order[game.color],
            observation=self._planes(game),
            rewards=jnp.where(jnp.arange(2) == state.current_player, own_reward, 0.0 - own_reward),
            terminated=terminated,
            legal_action_mask=self._legal_action_mask(game) | terminated,
            _step_count=state._step_count + ~over,
            _x=game,
        )

    def _init(self, key: Array) -> State:
        player_order = jnp.array([[0, 1], [1, 0]])[jax.random.bernoulli(key).astype(jnp.int32)]
        game = GameState(jnp.zeros(self.size**2, jnp.int16), jnp.int32(0), jnp.int32(0), jnp.int32(0))
        return State(
            current_player=player_order[0],
            observation=self._planes(game),
            legal_action_mask=self._legal_action_mask(game),
            _player_order=player_order,
            _x=game,
        )

    def _observe(self, state: State, player_id: Array) -> Array:
        del player_id  # deprecated: pgx always passes the player to move
        return self._planes(state._x)

    def _legal_action_mask(self, game: GameState) -> Bool[Array, " A"]:
        return jnp.append(game.board == 0, game.step_count == 1)

    def _planes(self, game: GameState) -> Bool[Array, "H W 4"]:
        """The observation. A cell's planes are the bytes of one word; writing them singly took half the step's time."""
        board = game.board.reshape(self.size, self.size)
        own, opponent = (board > 0).astype(jnp.uint32), (board < 0).astype(jnp.uint32)
        color = game.color.astype(jnp.uint32)
        can_swap = (game.step_count == 1).astype(jnp.uint32)
        word = own | opponent << 8 | color << 16 | can_swap << 24
        return jax.lax.bitcast_convert_type(word, jnp.uint8).astype(jnp.bool_)
