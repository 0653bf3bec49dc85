"""The winner of a Hex position by flood fill: the reference for `games.hex_rules`."""

import numpy as np

NEIGHBOURS = [(0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1)]


def is_joined(stones: np.ndarray) -> bool:
    """Whether stones [n, n] bool hold a chain from the top row to the bottom row, by flood fill."""
    size = len(stones)
    reached = {(0, column) for column in range(size) if stones[0, column]}
    frontier = list(reached)
    while frontier:
        row, column = frontier.pop()
        for down, right in NEIGHBOURS:
            cell = (row + down, column + right)
            if cell not in reached and min(cell) >= 0 and max(cell) < size and stones[cell]:
                reached.add(cell)
                frontier.append(cell)
    return any(row == size - 1 for row, _ in reached)


def winners(board: np.ndarray) -> list[int]:
    """The colors that have joined their edges on board [n, n] (-1 empty, 0 top to bottom, 1 left to right)."""
    return [color for color, stones in ((0, board == 0), (1, (board == 1).T)) if is_joined(stones)]


def board_of(observation: np.ndarray) -> np.ndarray:
    """The board [n, n] (-1 empty, else the color of the stone) that an observation [n, n, 4] shows."""
    own, opponent, color = observation[..., 0], observation[..., 1], int(observation[0, 0, 2])
    return np.where(own, color, np.where(opponent, 1 - color, -1))
