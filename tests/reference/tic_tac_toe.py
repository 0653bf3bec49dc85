"""Tic-tac-toe in plain Python, solved by recursion.

A board is a tuple of 9: 1 the mover's stones, -1 the other's, 0 empty; it is turned round after every move.
"""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from muzero_jax.apps.evaluation.player import Player

Board = tuple[int, ...]
EMPTY: Board = (0,) * 9
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
POWERS = 3 ** np.arange(9)


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


def perfect_action(board: Board) -> int:
    return max(legal_actions(board), key=lambda action: action_value(board, action))


def first_legal_action(board: Board) -> int:
    return legal_actions(board)[0]


def board_of(observation: np.ndarray) -> Board:
    """The board that pgx's observation [3, 3, 2] (own stones, other's stones) shows."""
    own, other = np.asarray(observation).reshape(9, 2).T.astype(int)
    return tuple(own - other)


def make_player(name: str, choose: Callable[[Board], int]) -> tuple[Player, jnp.ndarray]:
    """A player and its params: the table of `choose`'s answers for every board there is, by its code."""
    table = np.zeros(3**9, np.int32)

    def fill(board):
        code = int((np.array(board) + 1) @ POWERS)
        if not table[code]:
            table[code] = choose(board)
            for action in legal_actions(board):
                after, _, over = play(board, action)
                if not over:
                    fill(after)

    fill(EMPTY)

    def act(params, key, states):
        stones = states.observation.reshape(-1, 9, 2).astype(jnp.int32)
        return params[(stones[..., 0] - stones[..., 1] + 1) @ jnp.asarray(POWERS)]

    return Player(name, act), jnp.asarray(table)


def walk(choose: Callable[[Board], int], moves_first: bool) -> tuple[int, int, int, int]:
    """(wins, draws, losses, positions) as `exhaustive.walk` counts them, by the rules above."""
    results, positions = {1: 0, 0: 0, -1: 0}, 0
    level, is_players = {EMPTY}, moves_first
    while level:
        positions += is_players * len(level)
        following = set()
        for board in level:
            for action in [choose(board)] if is_players else legal_actions(board):
                after, reward, over = play(board, action)
                if over:
                    results[reward if is_players else -reward] += 1
                else:
                    following.add(after)
        level, is_players = following, not is_players
    return results[1], results[0], results[-1], positions
