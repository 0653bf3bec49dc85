"""Go on boards from 5x5 to 19x19, scored by area."""

import re
from functools import partial
from typing import Any

import numpy as np

from muzero_jax.games.game import Game, Points
from muzero_jax.games.layout import Layout, turns_and_mirrors
from muzero_jax.games.notation import LETTERS, PASS, Notation, coordinates
from muzero_jax.games.sides import by_passing
from muzero_jax.games.view import EMPTY, FIRST, SECOND, Squares, View, signed_stones, stone_difference
from muzero_jax.types import EnvState

KOMI = 7.5  # pgx's, with which every Go agent here was trained


def area_difference(squares: Squares) -> int:
    """The first player's lead by area before komi (Tromp-Taylor): stones, and empty regions that touch one colour."""
    from scipy import ndimage  # this import takes 1/8 s, and only Go needs it

    board = np.array(squares)
    regions, num_regions = ndimage.label(board == EMPTY)  # type: ignore
    difference = stone_difference(squares)
    for number in range(1, num_regions + 1):
        region = regions == number
        touched = set(board[ndimage.binary_dilation(region) & ~region])
        difference += int(region.sum()) * ((touched == {FIRST}) - (touched == {SECOND}))
    return difference


def repeats(state: EnvState) -> bool:
    """Whether the last move repeated an earlier position, which pgx counts as a loss for the player who did it."""
    return bool(state._x.is_psk)


def margin(state: EnvState, squares: Squares, komi: float) -> float | None:
    """The area score at any time; None if a repeated position ended the game."""
    return None if repeats(state) else area_difference(squares) - komi


def notation(shape: tuple[int, int], num_actions: int) -> Notation:
    """`D4` or `pass`: columns without the letter I, row 1 at the bottom."""
    make = coordinates(PASS, letters=LETTERS.replace("i", "").upper(), upward=True)
    return make(shape, num_actions)._replace(read_sgf=partial(read_point, shape), write_sgf=partial(write_point, shape))


def read_point(shape: tuple[int, int], text: str) -> int:
    """An SGF point as an action: two letters, counted from the top left; a pass is empty or tt."""
    height, width = shape
    if text in ("", "tt"):
        return height * width
    point = re.fullmatch("([a-s])([a-s])", text)
    column, row = (ord(point[1]) - 97, ord(point[2]) - 97) if point else (width, height)
    if column >= width or row >= height:
        raise ValueError(f"{text[:10]!r} is no point of this board")
    return row * width + column


def write_point(shape: tuple[int, int], action: int) -> str:
    """The inverse of `read_point`; a pass is empty."""
    row, column = divmod(action, shape[1])
    return "" if row == shape[0] else LETTERS[column] + LETTERS[row]


def rules(board_size: int | None) -> Any:
    """pgx's, by default on 9x9."""
    from pgx.go import Go  # starts JAX

    return Go(size=board_size or 9, komi=KOMI)


GO_9X9 = Game(
    "go_9x9",
    "Go",
    goal=f"Most points win: your stones, and the empty points that they alone enclose. White gets {KOMI} more.",
    rules=rules,
    sizes=range(5, 20),
    layout=Layout(symmetries=turns_and_mirrors),
    notation=notation,
    view=View(signed_stones(lambda state: 0), marks_last=True, page="go"),
    sides=by_passing("consecutive_pass_count"),
    points=Points(margin, KOMI),
    repeats=repeats,
    sgf_number=1,
)
GO_19X19 = GO_9X9._replace(name="go_19x19", rules=None, sizes=None)
