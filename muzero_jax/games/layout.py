"""Where actions lie on the board that an observation [H, W, P] shows, and how the board may be turned."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

Grid = np.ndarray
"""Cells [H, W], each as its number row * W + column."""


def carried(location: Int[np.ndarray, " N"], destination: Int[np.ndarray, " M"]) -> Int[np.ndarray, " N"]:
    """The image of each of N things that lie in cells (-1: in none) where cell c becomes `destination[c]`.

    Of several things in a cell each becomes the one of the same rank in the other cell; ValueError if there is none.
    """
    found, placed = np.arange(len(location)), np.flatnonzero(location >= 0)
    cells, images = location[placed], destination[location[placed]]
    if (np.sort(cells) != np.sort(images)).any():
        raise ValueError("a symmetry takes what lies in a cell to one where there are not as many")
    found[placed[np.argsort(images, kind="stable")]] = placed[np.argsort(cells, kind="stable")]
    return found


def cells_first(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """Actions are the cells in order, or their first ones; a pass or a swap comes after all of them."""
    actions = np.arange(num_actions)
    return np.where(actions < shape[0] * shape[1], actions, -1)


def turns_and_mirrors(cells: Grid) -> list[Grid]:
    """The eight symmetries of a square."""
    return [np.rot90(image, quarter_turns) for image in (cells, cells.T) for quarter_turns in range(4)]


class Layout(NamedTuple):
    """The cell of each action of a game, and the symmetries of its board."""

    action_location: Callable[[tuple[int, int], int], Int[np.ndarray, " A"]] = cells_first
    """(board shape, number of actions) -> the cell that each action touches, -1 for none"""
    symmetries: Callable[[Grid], list[Grid]] = lambda cells: [cells]
    """cells [H, W] -> for each symmetry of the rules the cell that each cell is filled from; the identity first"""
    negated: tuple[tuple[int, int], ...] = ()
    """pairs (symmetry, plane) of the bool planes that a symmetry negates, such as the plane of the colour to move"""
    outcome_location: Callable[[tuple[int, int], int], Int[np.ndarray, " C"]] | None = None
    """(board shape, number of outcomes) -> the cell that each outcome of chance touches, -1 for none. Outcomes of one
    cell are in the same order in every cell. None: what a symmetry does to outcomes is not known"""


NO_CELLS = Layout(action_location=lambda shape, num_actions: np.full(num_actions, -1))
"""Where no action is of a cell."""
