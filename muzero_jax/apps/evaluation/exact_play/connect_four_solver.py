"""Solves Connect Four by two boolean searches: does the player to move win, and if not, does it draw?

The search uses bitboards in plain Python and a transposition table. It skips moves that allow a winning reply, tries
moves with more threats first, and does not search for wins of a side that cannot fill any line. A position takes 0.15 s
after 16 moves, 0.03 s after 20 and 4 s after 12 (random play, one core), hence `MIN_PLIES`.
"""

import numpy as np

from muzero_jax.apps.evaluation.exact_play.oracle import Oracle

MIN_PLIES = 16
MOST_REMEMBERED = 1_000_000
"""Positions in the table (0.2 GB) before it is emptied."""

HEIGHT, WIDTH = 6, 7
COLUMN = HEIGHT + 1  # bits per column: the topmost stays empty, so that no line wraps into the next column
FLOOR = sum(1 << COLUMN * column for column in range(WIDTH))
BOARD = FLOOR * ((1 << HEIGHT) - 1)
COLUMNS = [((1 << HEIGHT) - 1) << COLUMN * column for column in range(WIDTH)]
CENTRE_FIRST = sorted(range(WIDTH), key=lambda column: abs(column - WIDTH // 2))
DIRECTIONS = (1, COLUMN - 1, COLUMN, COLUMN + 1)


def make_oracle() -> Oracle:
    """The oracle of pgx's Connect Four: observation [6, 7, 2] from the top row down, own and the opponent's stones."""
    return Oracle(ConnectFourSolver().action_values, min_plies=MIN_PLIES, is_small=False)


def has_four(stones: int) -> bool:
    """Whether four of the stones stand in a line."""
    for shift in DIRECTIONS:
        pairs = stones & stones >> shift
        if pairs & pairs >> 2 * shift:
            return True
    return False


def completing_cells(stones: int) -> int:
    """The cells, empty or not, that would make a line of four with three of the stones."""
    cells = 0
    for shift in DIRECTIONS:
        ahead, behind = stones >> shift, stones << shift
        two_ahead, two_behind = ahead & ahead >> shift, behind & behind << shift
        cells |= two_ahead & (ahead >> 2 * shift | behind) | two_behind & (behind << 2 * shift | ahead)
    return cells & BOARD


class ConnectFourSolver:
    """Caches what it has proved. `own` are the stones of the player to move, `stones` those of both players."""

    def __init__(self):
        self._proved: dict[int, bool] = {}

    def action_values(self, observation: np.ndarray) -> dict[int, int]:
        """The value, for the player to move, after each legal column."""
        own, other = (_column_bits(observation[..., plane]) for plane in (0, 1))
        stones = own | other
        if len(self._proved) > MOST_REMEMBERED:
            self._proved.clear()
        landing = {column: (stones + FLOOR) & COLUMNS[column] for column in CENTRE_FIRST}
        return {column: self._value_after(own | cell, stones | cell) for column, cell in landing.items() if cell}

    def _value_after(self, moved: int, stones: int) -> int:
        """The value for the player who has just moved and has the stones `moved`."""
        if has_four(moved):
            return 1
        own = stones ^ moved
        if completing_cells(own) & (stones + FLOOR) & BOARD:
            return -1
        if self._reaches(own, stones, 1):
            return -1
        return 0 if self._reaches(own, stones, 0) else 1

    def _reaches(self, own: int, stones: int, goal: int) -> bool:
        """Whether the player to move, who cannot win at once, reaches `goal` (1: a win, 0: a draw) or better."""
        other = stones ^ own
        landing = (stones + FLOOR) & BOARD
        threats = completing_cells(other) & ~stones
        forced = landing & threats
        if forced & (forced - 1):
            return False
        safe = (forced or landing) & ~(threats >> 1)
        if not safe:
            return goal == 0 and not landing
        if not has_four(BOARD & ~other if goal else BOARD & ~own):
            return goal == 0
        key = (own << HEIGHT * COLUMN + COLUMN | stones) << 1 | goal
        proved = self._proved.get(key)
        if proved is None:
            cells = [cell for column in CENTRE_FIRST if (cell := safe & COLUMNS[column])]
            cells.sort(key=lambda cell: -(completing_cells(own | cell) & ~stones).bit_count())
            proved = any(not self._reaches(other, stones | cell, 1 - goal) for cell in cells)
            self._proved[key] = proved
        return proved


def _column_bits(plane: np.ndarray) -> int:
    """Stones [6, 7] as a bitboard: column after column, each from the bottom up."""
    rows, columns = np.nonzero(plane)
    return sum(1 << (COLUMN * int(column) + HEIGHT - 1 - int(row)) for row, column in zip(rows, columns, strict=True))
