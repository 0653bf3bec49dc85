"""The move that a click on a cell of a board names.

A click names a move where exactly one action lies in the cell, or in the column of Connect Four's board. Every other
move gets a button, so that any game can be played with a mouse, whatever board it borrows.
"""

import numpy as np
from jaxtyping import Int

from muzero_jax.apps.play.position import Position
from muzero_jax.games.layout import cells_first
from muzero_jax.games.view import CHESS, COLUMNS, POINTS

TWO_CLICKS = (CHESS, POINTS)
NO_ACTION = -1


def action_cells(position: Position) -> Int[np.ndarray, " A"]:
    """The cell of the drawn board in which each action lies, row by row; -1 for none or where nobody said."""
    page, board = position.game.view.page, position.environment.board
    shape, num_actions = (len(position.squares), len(position.squares[0])), position.environment.num_actions
    if board is not None and board.shape == shape:
        return known_location(page, shape, np.asarray(board.action_location))
    return np.full(num_actions, -1) if page is None else known_location(page, shape, cells_first(shape, num_actions))


def known_location(page: str | None, shape: tuple[int, int], location: Int[np.ndarray, " A"]) -> Int[np.ndarray, " A"]:
    """The cell in which each action lies, -1 for none or where nobody said.

    Actions that are fewer than the cells, and merely numbered from the first cell on, may mean anything, unless they
    are the columns of a board of columns.

    Args:
      location: what the layout says (`Board.action_location`).
    """
    num_cells, num_actions = shape[0] * shape[1], len(location)
    is_fit = num_actions == shape[1] if page == COLUMNS else num_actions >= num_cells
    is_default = np.array_equal(location, cells_first(shape, num_actions))
    return np.asarray(location) if is_fit or not is_default else np.full(num_actions, -1)


def clicked_actions(
    page: str | None, shape: tuple[int, int], location: Int[np.ndarray, " A"]
) -> Int[np.ndarray, "H W"]:
    """The action that a click on each cell names, -1 where it names none; arguments as in `known_location`."""
    num_cells = shape[0] * shape[1]
    num_places = shape[1] if page == COLUMNS else num_cells
    single = np.full(num_places, NO_ACTION)
    if page not in TWO_CLICKS:
        known = known_location(page, shape, location)
        (on_board,) = np.nonzero(known >= 0)
        places = known[on_board] % num_places
        single[places] = on_board
        single[np.bincount(places, minlength=num_places) > 1] = NO_ACTION
    return single[np.arange(num_cells).reshape(shape) % num_places]
