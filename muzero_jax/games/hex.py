"""Hex on any board from 2x2 to 19x19, as a pgx `Env`.

pgx's own `Hex(size=n)` keeps a board of 121 cells whatever n is, so it works at 11 alone. Ours agrees with it move for
move at 11 (actions, observations, players, rewards, masks) and is built to be cheap under `vmap`, where `lax.cond` and
loops cost both branches and every pass: a stone carries the label of its chain with the edges that the chain touches
in the label's two low bits. A move is then three chain lookups and one masked `where`, and a win is "both bits set".
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Int
from pgx import core
from pgx._src.struct import dataclass

MIN_SIZE, MAX_SIZE = 2, 19
BOTH_EDGES = 3

# The six neighbours in ring order, as (row, column) offsets. Consecutive ones touch each other, so that two own stones
# in one pair always belong to the same chain: a move joins at most three chains, one a pair.
NEIGHBOUR_PAIRS = np.array([[(0, -1), (1, -1)], [(1, 0), (0, 1)], [(-1, 1), (-1, 0)]])


class GameState(NamedTuple):
    """The rules' state, from the view of the player to move."""

    board: (
        Array  # [size*size] int16, chain labels: > 0 own, < 0 the opponent's, 0 empty; 4 * (1 + a cell) + edges touched
    )
    color: Array  # [] int32, of the player to move: 0 joins top and bottom and starts, 1 joins left and right
    step_count: Array  # [] int32, moves made, the swap included


@dataclass
class State(core.State):
    """pgx's state; `_x` holds the rules' part."""

    current_player: Array
    observation: Array  # [size, size, 4] bool: own stones, the opponent's, the mover's color, whether a swap is legal
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array  # [size*size + 1] bool, the last is the swap
    _step_count: Array
    _player_order: Array  # [2] int32, the player of each color
    _x: GameState

    @property
    def env_id(self) -> core.EnvId:
        """The name that pgx's drawing code knows."""
        return "hex"


def chain_labels_of_neighbours(board: Int[Array, " N"], cell: Array, size: int) -> Int[Array, "3"]:
    """The labels of the mover's chains next to `cell`, one a neighbour pair; at most 0 where a pair holds none."""
    row, column = (
        cell // size + NEIGHBOUR_PAIRS[..., 0],
        cell % size + NEIGHBOUR_PAIRS[..., 1],
    )
    on_board = (row >= 0) & (row < size) & (column >= 0) & (column < size)
    return jnp.where(on_board, board[jnp.clip(row * size + column, 0, size * size - 1)], 0).max(axis=1)


def play(game: GameState, action: Array, size: int) -> tuple[GameState, Array]:
    """Place a stone, or swap: (state for the other player, whether the mover has won).

    A swap takes the opponent's stone off the board and puts an own stone on the transposed cell, so that the mover
    stands exactly where the opponent stood.
    """
    cells = jnp.arange(size * size)
    is_swap = action == size * size
    stone = jnp.argmax(game.board != 0)
    cell = jnp.where(is_swap, stone % size * size + stone // size, action)
    board = jnp.where(is_swap & (cells == stone), 0, game.board)

    neighbours = chain_labels_of_neighbours(board, cell, size)
    line = jnp.where(game.color == 0, cell // size, cell % size)
    edges = (line == 0) | (line == size - 1) * 2
    edges |= jax.lax.reduce_or(jnp.where(neighbours > 0, neighbours & BOTH_EDGES, 0), axes=(0,))
    label = (4 * (cell + 1) + edges).astype(board.dtype)

    joined = jnp.where(neighbours > 0, neighbours, label)  # no stone has the new label yet, so it matches nothing
    in_chain = (board[:, None] == joined).any(axis=1) | (cells == cell)
    next_game = GameState(-jnp.where(in_chain, label, board), 1 - game.color, game.step_count + 1)
    return next_game, edges == BOTH_EDGES


class Hex(core.Env):
    """Hex of any size; action row * size + column places a stone, action size * size swaps (legal as second move only).

    With `swap=False` the swap keeps its number and is never legal.

    Raises:
        ValueError: `size` is not a whole number from 2 to 19.
    """

    def __init__(self, *, size: int = 11, swap: bool = True):
        super().__init__()
        if not isinstance(size, int) or not MIN_SIZE <= size <= MAX_SIZE:
            raise ValueError(
                f"Hex is played on boards of size {MIN_SIZE} to {MAX_SIZE}, so the size cannot be {size!r}."
            )
        self.size = size
        self.swap = swap

    def step(self, state: State, action: Array, key: Array | None = None) -> State:
        """One move, as `pgx.Env.step` defines it (an illegal move loses, a finished game stays), without its `cond`s."""
        del key
        over = state.terminated | state.truncated
        is_illegal = ~state.legal_action_mask[action]
        played, won = play(state._x, action, self.size)
        game = jax.tree.map(lambda old, new: jnp.where(over, old, new), state._x, played)
        terminated = state.terminated | ~over & (won | is_illegal)
        mover_reward = jnp.where(over, 0.0, jnp.where(is_illegal, -1.0, won.astype(jnp.float32)))
        return state.replace(
            current_player=state._player_order[game.color],
            observation=self._planes(game),
            rewards=jnp.where(jnp.arange(2) == state.current_player, mover_reward, 0.0 - mover_reward),
            terminated=terminated,
            legal_action_mask=self._legal_action_mask(game) | terminated,
            _step_count=state._step_count + ~over,
            _x=game,
        )

    def _init(self, key: Array) -> State:
        player_order = jnp.array([[0, 1], [1, 0]])[jax.random.bernoulli(key).astype(jnp.int32)]
        game = GameState(jnp.zeros(self.size**2, jnp.int16), jnp.int32(0), jnp.int32(0))
        return State(
            current_player=player_order[0],
            observation=self._planes(game),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            truncated=jnp.bool_(False),
            legal_action_mask=self._legal_action_mask(game),
            _step_count=jnp.int32(0),
            _player_order=player_order,
            _x=game,
        )

    def _step(self, state: State, action: Array, key: Array | None) -> State:
        return self.step(state, action, key)

    def _observe(self, state: State, player_id: Array) -> Array:
        game, is_mover = state._x, player_id == state.current_player
        board, color = (
            jnp.where(is_mover, game.board, -game.board),
            jnp.where(is_mover, game.color, 1 - game.color),
        )
        return self._planes(game._replace(board=board, color=color))

    def _can_swap(self, game: GameState) -> Bool[Array, ""]:
        return (game.step_count == 1) & self.swap

    def _legal_action_mask(self, game: GameState) -> Bool[Array, " A"]:
        return jnp.append(game.board == 0, self._can_swap(game))

    def _planes(self, game: GameState) -> Bool[Array, "H W 4"]:
        """One fused comparison: stacking planes along the last axis would write them an element at a time."""
        sign = jnp.array([1, -1, 0, 0], jnp.int16)
        offset = jnp.stack(
            [
                jnp.int32(0),
                jnp.int32(0),
                game.color,
                self._can_swap(game).astype(jnp.int32),
            ]
        )
        return (game.board.reshape(self.size, self.size, 1) * sign + offset.astype(jnp.int16)) > 0

    @property
    def id(self) -> core.EnvId:
        """pgx's name of the game."""
        return "hex"

    @property
    def version(self) -> str:
        """Of these rules, in pgx's form."""
        return "v0"

    @property
    def num_players(self) -> int:
        """Two."""
        return 2
