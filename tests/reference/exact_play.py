"""Perfect play by trying every move, to test the oracles; only for boards with few empty cells."""

import random

import numpy as np

from tests.reference import hex as hex_rules

Columns = tuple[str, ...]  # of Connect Four, each from the bottom up: "xo" is a cross below a nought


def random_hex(size: int, num_empty: int, generator: random.Random) -> np.ndarray:
    """A board [size, size] (-1 empty, 0 and 1 the colors, 0 began) that nobody has won."""
    while True:
        cells = [number % 2 for number in range(size * size - num_empty)] + [-1] * num_empty
        order = generator.sample(range(size * size), size * size)
        board = np.full(size * size, -1)
        board[order] = cells
        if not hex_rules.winners(board.reshape(size, size)):
            return board.reshape(size, size)


def hex_action_values(board: np.ndarray, color: int) -> dict[int, int]:
    """The value for `color`, to move, after each stone. A win stays one however the rest of the board is filled."""
    size, known = len(board), {}

    def wins(cells, color):
        if (cells, color) not in known:
            empty = [cell for cell, stone in enumerate(cells) if stone < 0]
            known[cells, color] = any(leads_to_win(cells, cell, color) for cell in empty)
        return known[cells, color]

    def leads_to_win(cells, cell, color):
        after = (*cells[:cell], color, *cells[cell + 1 :])
        if -1 in after:
            return not wins(after, 1 - color)
        return hex_rules.winners(np.reshape(after, (size, size))) == [color]

    start = tuple(board.ravel().tolist())
    return {cell: 1 if leads_to_win(start, cell, color) else -1 for cell in range(size * size) if start[cell] < 0}


def hex_observation(board: np.ndarray, color: int) -> np.ndarray:
    """As `games.hex_rules` shows it to the player of `color`, long after the swap."""
    planes = [board == color, board == 1 - color, np.full(board.shape, color == 1), np.zeros(board.shape, bool)]
    return np.stack(planes, axis=-1)


def drop(columns: Columns, column: int, stone: str) -> tuple[Columns, bool]:
    """(the columns with one more stone, whether it completes four in a line)."""
    after = (*columns[:column], columns[column] + stone, *columns[column + 1 :])
    row = len(columns[column])

    def same(right, up):
        at, height = column + right, row + up
        return 0 <= at < 7 and 0 <= height < len(after[at]) and after[at][height] == stone

    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
        run = 1
        for sign in (1, -1):
            distance = 1
            while same(sign * distance * right, sign * distance * up):
                run, distance = run + 1, distance + 1
        if run >= 4:
            return after, True
    return after, False


def random_columns(num_stones: int, generator: random.Random) -> Columns:
    """Connect Four after `num_stones` moves, none of which made four."""
    columns: Columns = ("",) * 7
    while (played := sum(map(len, columns))) < num_stones:
        choices = [drop(columns, c, "xo"[played % 2]) for c in range(7) if len(columns[c]) < 6]
        quiet = [after for after, won in choices if not won]
        columns = generator.choice(quiet) if quiet else ("",) * 7
    return columns


def connect_four_action_values(columns: Columns) -> dict[int, int]:
    """The value for whoever is to move after each of its moves."""
    known = {}

    def values(columns, mover, other):
        return {c: value_after(columns, c, mover, other) for c in range(7) if len(columns[c]) < 6}

    def value_after(columns, column, mover, other):
        after, won = drop(columns, column, mover)
        if after not in known:
            known[after] = 1 if won else -max(values(after, other, mover).values(), default=0)
        return known[after]

    mover, other = ("x", "o") if sum(map(len, columns)) % 2 == 0 else ("o", "x")
    return values(columns, mover, other)


def connect_four_observation(columns: Columns) -> np.ndarray:
    """As pgx shows it to whoever is to move: [6, 7, 2] from the top row down."""
    mover = "xo"[sum(map(len, columns)) % 2]
    observation = np.zeros((6, 7, 2), bool)
    for column, stones in enumerate(columns):
        for row, stone in enumerate(stones):
            observation[5 - row, column, int(stone != mover)] = True
    return observation
