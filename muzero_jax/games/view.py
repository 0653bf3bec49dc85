"""Pictures of a state for people: pieces on squares, from the first player's side, whoever is to move.

pgx keeps most boards as the player to move sees them, in other fields for each game. A game's `View` turns them into
one picture, whose row 0 is at the top: row 8 of chess, row 9 of Go, row 1 of Hex and Othello.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from muzero_jax.types import EnvState

EMPTY, BLANK = ".", " "
"""A square without anything on it, and a place that is no square."""
FIRST, SECOND = "X", "O"
"""Stones of the first and the second player; games with pieces show letters, the first player's in capitals."""

LIT, FADING = "#", "+"
"""Pixels of a screen: lit in the newest frame, or only in one shortly before."""

INKS = ("black", "white", "red", "yellow", "blue")
"""The colours in which front ends draw stones."""

COLUMNS, CHESS, TILES, POINTS, PIXELS = "connect_four", "chess", "tiles", "points", "pixels"
"""Boards that front ends treat in a special way. On `COLUMNS`, a click chooses a column. On `CHESS` and `POINTS`, two
clicks choose where a move starts and ends; `POINTS` writes it FROM/TO, by the mover's own points, `bar` and `off`.
`TILES` is a grid of numbers, and `PIXELS` a screen."""
PAGES = ("go", "othello", "tic_tac_toe", "hex", COLUMNS, CHESS, TILES, POINTS, PIXELS)
"""The boards that have their own drawing: the values of `View.page`."""

Squares = list[list[str]]
"""Rows of `X`, `O`, piece letters and `.`, the top row first."""


Cell = tuple[int, int]
"""(row, column) of `Squares`."""


class Checkers(NamedTuple):
    """A board of 24 points, numbered as the first player counts them, with its dice."""

    points: tuple[int, ...]  # [24], checkers on points 1 to 24: positive the first player's, negative the other's
    bar: tuple[int, int]  # of the first player and of the other
    off: tuple[int, int]
    dice: tuple[tuple[int, bool], ...]  # the mover's: each die, 1 to 6, and whether it may still be played


ROW_LENGTH = 16
"""Numbers per row in the picture of an observation that is a list."""


def observed(state: EnvState) -> Squares:
    """A plain picture of any observation.

    A cell with several planes shows the number of its first nonzero plane; a cell with one number shows that number. A
    list of numbers is broken into rows, the last one filled with blanks.
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
    texts = [[f"{number:g}" if number else EMPTY for number in row] for row in rows]
    return [row + [BLANK] * (len(texts[0]) - len(row)) for row in texts]


class View(NamedTuple):
    """How a state of one game is drawn."""

    squares: Callable[[EnvState], Squares] = observed
    hands: Callable[[EnvState], tuple[str, str]] = lambda state: ("", "")
    """both players' pieces in hand, or other things that they hold, such as dice"""
    hands_title: str = "in hand"
    caption: Callable[[EnvState], str] = lambda state: ""  # a line below the board, such as the dice
    colours: tuple[str, str] = ("black", "white")  # names of the first and the second player
    inks: tuple[str, str] = ("black", "white")
    """the colours, from `INKS`, in which front ends draw the two players"""
    marks_last: bool = False  # whether actions are cells, so that the last move can be marked
    leans: bool = False  # whether each row lies half a cell to the right of the one above
    has_edges: bool = False  # whether the first player owns the top and bottom edge, and the other left and right
    pace: float | None = None  # milliseconds a move, if the game does not wait; its last action is then to wait
    page: str | None = None  # the board that is drawn, one of `PAGES`; None: squares with their text
    checkers: Callable[[EnvState], Checkers] | None = None  # what the page `points` draws instead of `squares`


def stones(signs: Int[np.ndarray, "H W"]) -> Squares:
    """Squares from signs: +1 is the first player's stone, -1 the other's, 0 empty."""
    return [[(EMPTY, FIRST, SECOND)[sign] for sign in row] for row in signs.tolist()]


def numbered_stones(height: int, width: int) -> Callable[[EnvState], Squares]:
    """Reads boards whose cells are -1 if empty, else the colour."""

    def read(state: EnvState) -> Squares:
        colours = np.asarray(state._x.board).reshape(height, width)
        return stones(np.where(colours < 0, 0, 1 - 2 * colours))

    return read


def signed_stones(to_move: Callable[[EnvState], int]) -> Callable[[EnvState], Squares]:
    """Reads square boards with positive numbers for the stones of colour `to_move(state)` (0 is the first player)."""

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
