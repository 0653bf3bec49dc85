"""Views of a state for people: pieces on squares, from the first player's side, whoever is to move.

pgx keeps most boards as the player to move sees them, and each game in fields of its own; a game's `View` reads them
back into one picture. Row 0 is the top row as people draw it: row 8 of chess, row 9 of Go, row 1 of Hex and Othello.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from muzero_jax.types import EnvState

EMPTY = "."
FIRST, SECOND = "X", "O"
"""The stones of the first player and of the other; games with pieces show letters, the first player's in capitals."""

LIT, FADING = "#", "+"
"""Pixels of a screen: lit in the newest frame, or only in one shortly before."""

INKS = ("black", "white", "red", "yellow", "blue")
"""The colours in which front ends draw stones."""

COLUMNS, CHESS, TILES, POINTS, PIXELS = "connect_four", "chess", "tiles", "points", "pixels"
"""The board whose clicks name a column; two on which two clicks name a move, from where and to where; a grid of tiles
with numbers on them; and a screen of pixels, which moves on while a person does nothing: its last action is to wait. On
a board of points a move is written FROM/TO, by the mover's own points, `bar` and `off`.
"""
PAGES = ("go", "othello", "tic_tac_toe", "hex", COLUMNS, CHESS, TILES, POINTS, PIXELS)
"""The boards that are drawn in a way of their own: the values that `View.page` may have."""

PACE = 1000 / 15
"""Milliseconds that a move on a screen lasts, whether a person plays or watches."""

Squares = list[list[str]]
"""Rows of `X`, `O`, piece letters and `.`, the top row first."""


Cell = tuple[int, int]
"""(row, column) of `Squares`."""


class Checkers(NamedTuple):
    """A board of 24 points, numbered as the first player counts them, with its dice."""

    points: tuple[int, ...]  # [24], checkers on points 1 to 24: the first player's above 0, the other's below
    bar: tuple[int, int]  # of the first player and of the other
    off: tuple[int, int]
    dice: tuple[tuple[int, bool], ...]  # of the player to move: each die, 1 to 6, and whether it is still to be played


ROW_LENGTH = 16
"""Numbers in a row, where an observation is a list of them."""


def observed(state: EnvState) -> Squares:
    """A plain picture of any observation.

    A cell of several planes shows the number of the first that is set there. Where there is one number a cell, it shows
    that. A list of numbers is broken into rows.
    """
    observation = np.asarray(state.observation)
    if observation.ndim >= 3 and observation.shape[2:] != (1,):
        planes = observation.reshape(*observation.shape[:2], -1) != 0
        return [[str(cell.argmax()) if cell.any() else EMPTY for cell in row] for row in planes]
    numbers = observation.astype(float)
    if numbers.ndim >= 2:
        rows = numbers.reshape(numbers.shape[:2])
    else:
        rows = [numbers.ravel()[start : start + ROW_LENGTH] for start in range(0, max(1, numbers.size), ROW_LENGTH)]
    return [[f"{number:g}" if number else EMPTY for number in row] for row in rows]


class View(NamedTuple):
    """How a state of one game is drawn."""

    squares: Callable[[EnvState], Squares] = observed
    hands: Callable[[EnvState], tuple[str, str]] = lambda state: ("", "")
    """pieces that both may drop, or what else both hold"""
    hands_title: str = "in hand"
    caption: Callable[[EnvState], str] = lambda state: ""  # a line below the board, such as the dice
    colours: tuple[str, str] = ("black", "white")  # what every front end calls the first player and the other
    inks: tuple[str, str] = ("black", "white")
    """the colours in which every front end draws the two, of `INKS`"""
    marks_last: bool = False  # whether an action is a cell, so that the last one played can be marked
    leans: bool = False  # whether each row lies half a cell to the right of the one above
    has_edges: bool = False  # whether the first player owns the top and bottom edge, and the other left and right
    page: str | None = None  # one of `PAGES`, the board that is drawn; None: squares with their text
    checkers: Callable[[EnvState], Checkers] | None = None  # for the page `points`, which draws these and no squares


def stones(signs: Int[np.ndarray, "H W"]) -> Squares:
    """+1 is the first player's stone, -1 the other's."""
    return [[(EMPTY, FIRST, SECOND)[sign] for sign in row] for row in signs.tolist()]


def numbered_stones(height: int, width: int) -> Callable[[EnvState], Squares]:
    """Reads boards that hold -1 for empty, else the colour."""

    def read(state: EnvState) -> Squares:
        colours = np.asarray(state._x.board).reshape(height, width)
        return stones(np.where(colours < 0, 0, 1 - 2 * colours))

    return read


def signed_stones(to_move: Callable[[EnvState], int]) -> Callable[[EnvState], Squares]:
    """Reads square boards that hold positive numbers for the colour that `to_move` names (0 is the first player)."""

    def read(state: EnvState) -> Squares:
        board = np.sign(np.asarray(state._x.board)).astype(int)
        size = int(len(board) ** 0.5)
        return stones(board.reshape(size, size) * (1 - 2 * to_move(state)))

    return read


def rows_of(length: int) -> Callable[[Squares], list[Cell]]:
    """Finds the cells of all rows, columns and diagonals of at least `length` equal stones."""

    def cells(squares: Squares) -> list[Cell]:
        stones = {(r, c): cell for r, row in enumerate(squares) for c, cell in enumerate(row) if cell != EMPTY}
        found: set[Cell] = set()
        for (row, column), stone in stones.items():
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                line = [(row + i * down, column + i * right) for i in range(length)]
                if all(stones.get(cell) == stone for cell in line):
                    found.update(line)
        return sorted(found)

    return cells


def stone_difference(squares: Squares) -> int:
    """Stones of the first player minus the other's."""
    cells = [cell for row in squares for cell in row]
    return cells.count(FIRST) - cells.count(SECOND)
