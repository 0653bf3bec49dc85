"""Tic-tac-toe, with exact play by plain negamax over two 9-bit boards: 5,478 positions, each solved once."""

import functools

import numpy as np

from muzero_jax.games.game import Exact, Game
from muzero_jax.games.layout import Layout, turns_and_mirrors
from muzero_jax.games.notation import coordinates
from muzero_jax.games.oracle import Oracle, to_bits
from muzero_jax.games.sides import by_stones
from muzero_jax.games.view import View, numbered_stones, rows_of

FULL = (1 << 9) - 1
LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)


def make_oracle() -> Oracle:
    """The oracle of pgx's tic-tac-toe: observation [3, 3, 2], own stones and the opponent's."""

    def action_values(observation: np.ndarray) -> dict[int, int]:
        own, other = to_bits(observation[..., 0]), to_bits(observation[..., 1])
        return {cell: _value_after(own | 1 << cell, other) for cell in range(9) if not (own | other) >> cell & 1}

    return Oracle(action_values, min_plies=0, is_small=True)


@functools.cache
def _value_after(moved: int, other: int) -> int:
    """The result for the player who has just moved and owns `moved`."""
    if any(moved & line == line for line in LINES):
        return 1
    empty = FULL & ~(moved | other)
    return -max((_value_after(other | 1 << cell, moved) for cell in range(9) if empty >> cell & 1), default=0)


TIC_TAC_TOE = Game(
    "tic_tac_toe",
    "Tic-tac-toe",
    goal="Three of your marks in a row, column or diagonal win.",
    layout=Layout(symmetries=turns_and_mirrors),
    notation=coordinates(),
    view=View(numbered_stones(3, 3), colours=("X", "O"), inks=("red", "blue"), marks_last=True, page="tic_tac_toe"),
    sides=by_stones(lambda board: board < 0),
    winning_cells=rows_of(3),
    exact=Exact(lambda board_size: make_oracle()),
)
