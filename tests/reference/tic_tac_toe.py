"""Tic-tac-toe in plain Python, solved by recursion.

A board is a tuple of 9: 1 the mover's stones, -1 the other's, 0 empty; it is turned round after every move.
"""

import functools

import numpy as np

Board = tuple[int, ...]
EMPTY: Board = (0,) * 9
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def legal_actions(board: Board) -> list[int]:
    return [cell for cell in range(9) if board[cell] == 0]


def play(board: Board, action: int) -> tuple[Board, int, bool]:
    """(the board as the other player sees it, reward of the mover, whether the game is over)."""
    mine = [*board]
    mine[action] = 1
    wins = any(all(mine[cell] == 1 for cell in line) for line in LINES)
    return tuple(-cell for cell in mine), int(wins), wins or 0 not in mine


@functools.cache
def action_value(board: Board, action: int) -> int:
    """Result for the mover under perfect play."""
    after, reward, over = play(board, action)
    return reward if over else -max(action_value(after, reply) for reply in legal_actions(after))


def board_of(observation: np.ndarray) -> Board:
    """The board that pgx's observation [3, 3, 2] (own stones, other's stones) shows."""
    own, other = np.asarray(observation).reshape(9, 2).T.astype(int)
    return tuple(own - other)
