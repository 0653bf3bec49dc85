"""The cells of actions on the board that an observation [H, W, P] shows, and the board's symmetries."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

Grid = np.ndarray
"""Cells [H, W], each as its number row * W + column."""


def carried(location: Int[np.ndarray, " N"], destination: Int[np.ndarray, " M"]) -> Int[np.ndarray, " N"]:
    """For each item, in cell `location` (-1: none), the item that it becomes when cell c moves to `destination[c]`.

    Of several items in a cell, each becomes the one of the same rank in the other cell; ValueError if counts differ.
    """
    found = np.arange(len(location))
    placed = np.flatnonzero(location >= 0)
    cells = location[placed]
    images = destination[location[placed]]
    if (np.sort(cells) != np.sort(images)).any():
        raise ValueError("a symmetry maps a cell to one with another number of actions or outcomes")
    found[placed[np.argsort(images, kind="stable")]] = placed[np.argsort(cells, kind="stable")]
    return found


def cells_first(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """Action a is cell a; actions after the last cell, a pass or a swap, have no cell."""
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
    """cells [H, W] -> for each symmetry, identity first, the cell from which each cell is filled"""
    negated: tuple[tuple[int, int], ...] = ()
    """(symmetry, plane) for each bool plane that a symmetry negates, such as the plane of the colour to move"""
    outcome_location: Callable[[tuple[int, int], int], Int[np.ndarray, " C"]] | None = None
    """(board shape, number of outcomes) -> the cell that each outcome of chance touches, -1 for none. Every cell lists
    its outcomes in the same order. None: the effect of a symmetry on outcomes is unknown"""


NO_CELLS = Layout(action_location=lambda shape, num_actions: np.full(num_actions, -1))
"""The layout of a game whose actions belong to no cell."""
