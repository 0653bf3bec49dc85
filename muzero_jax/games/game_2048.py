"""2048, with pgx's rules: a slide and its merges are the player's part, the new tile is chance's.

Outcome 2 c + f puts a 4 (f = 1, one time in ten) or a 2 (f = 0) into cell c. The game ends if no move is left then.
The reward is the game's score: the sum of the tiles that a move creates by merging, up to many thousands.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from jax import Array
from jaxtyping import Bool, Float, Int
from pgx import play2048

from muzero_jax.games import chance
from muzero_jax.games.game import Game
from muzero_jax.games.layout import NO_CELLS
from muzero_jax.games.notation import named
from muzero_jax.games.view import EMPTY, TILES, Squares, View

State = Any
"""pgx's own state of this game, with its private fields."""
MOVES = ("left", "up", "right", "down")
KEYS = {"a": "left", "w": "up", "d": "right", "s": "down"}
FOURS = 0.1
"""How often a new tile is a 4."""
TILE_PROBABILITY = np.tile(np.array([1 - FOURS, FOURS], np.float32), 16)
ROOM = 100.0
DISORDER = 2.0
PENALTY = 1.0
"""The cost of an illegal move, as in pgx."""


def slide(board: Int[Array, " 16"], action: Int[Array, ""]) -> tuple[Int[Array, " 16"], Float[Array, ""]]:
    """The board after a move and before the new tile, and the sum of the merged tiles.

    Cells hold exponents, row by row; 0 is an empty cell.
    """
    cells = board.reshape(4, 4)
    turned = jnp.stack([jnp.rot90(cells, quarter) for quarter in range(4)])[action]
    slid, gains = jax.vmap(play2048._slide_and_merge)(turned)
    back = jnp.stack([jnp.rot90(slid, -quarter) for quarter in range(4)])[action]
    return back.ravel(), gains.sum().astype(jnp.float32)


def observe(board: Int[Array, " 16"]) -> Bool[Array, "4 4 31"]:
    """pgx's planes: plane e is set where a cell holds 2^e, plane 0 where it is empty."""
    return (board.reshape(4, 4, 1) == jnp.arange(31)).astype(bool)


class Game2048Rules:
    """The rules as `chance.ListedRules`; an afterstate keeps the observation and legal moves of the state before it."""

    num_players = 1
    num_outcomes = 32

    def __init__(self):
        self.init = pgx.make("2048").init

    def move(self, state: State, action: Array) -> tuple[State, Array]:
        """Slides and merges."""
        board, gain = slide(state._board, jnp.clip(action, 0, 3))
        moved = state.replace(_board=board, rewards=gain[None], _step_count=state._step_count + 1)
        return chance.refuse(state, action, moved, PENALTY)

    def probabilities(self, state: State) -> Float[Array, " 32"]:
        """Every empty cell is equally likely; on a full board, where chance never acts, every cell is."""
        is_empty = state._board == 0
        is_open = jnp.repeat(is_empty | ~is_empty.any(), 2)
        return is_open * TILE_PROBABILITY * 2 / is_open.sum()

    def resolve(self, state: State, outcome: Array) -> State:
        """Adds the new tile, with reward 0."""
        outcome = jnp.clip(outcome, 0, self.num_outcomes - 1)
        board = state._board.at[outcome // 2].set(1 + outcome % 2)
        legal = play2048._legal_action_mask(board.reshape(4, 4))
        return state.replace(
            _board=board,
            observation=observe(board),
            legal_action_mask=legal,
            rewards=jnp.zeros_like(state.rewards),
            terminated=~legal.any(),
        )


def worth(state: State) -> Float[Array, ""]:
    """A heuristic of future rewards: empty cells, and rows and columns that are monotonic.

    Each empty cell counts `ROOM`. In each line of cubed exponents, all rises and all falls are summed; the smaller of
    the sums counts against the line, times `DISORDER`.
    """
    cells = state._board.reshape(4, 4)
    lines = jnp.concatenate([cells, cells.T]).astype(jnp.float32) ** 3
    rises = jnp.diff(lines, axis=1)
    against = jnp.minimum(jnp.maximum(rises, 0).sum(1), jnp.maximum(-rises, 0).sum(1))
    return ROOM * (cells == 0).sum() - DISORDER * against.sum()


def squares(state: State) -> Squares:
    """The numbers on the tiles."""
    rows = np.asarray(state._board).reshape(4, 4).tolist()
    return [[str(2**cell) if cell else EMPTY for cell in row] for row in rows]


GAME_2048 = Game(
    "2048",
    "2048",
    goal="Slide all tiles one way. Equal tiles that meet merge, and their sum is your gain.",
    rules=lambda board_size: Game2048Rules(),
    layout=NO_CELLS,
    notation=named(list(MOVES), KEYS),
    view=View(squares, page=TILES),
    worth=worth,
    milestones=lambda state: {str(2**tile): state._board.max() >= tile for tile in range(6, 18)},
)
