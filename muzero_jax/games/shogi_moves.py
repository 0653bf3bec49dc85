"""pgx's actions of shogi and animal shogi as the moves of USI: `7g7f`, `8h2b+` with a promotion, `P*5e` for a drop.

A square is file (from the right) * height + rank (from the top), as the player to move sees the board. An action of
shogi is a kind of move * 81 + the square that the piece goes to: ten directions, the same with a promotion, seven
drops. The piece comes from the first own one against the direction. An action of animal shogi is a direction or a
drop * 12 + the square that the piece leaves, or is dropped on. There a chick that reaches the last rank becomes a hen.
"""

import re
from collections.abc import Callable

import numpy as np

from muzero_jax.games.notation import Read, Write
from muzero_jax.types import EnvState

BACK = ((0, 1), (-1, 1), (1, 1), (-1, 0), (1, 0), (0, -1), (-1, -1), (1, -1), (-1, 2), (1, 2))
"""(files, ranks) from where a piece of shogi arrives to where it came from, by direction; the last are a knight's."""
KNIGHTS = 8, 9
STEPS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""(files, ranks) that a piece of animal shogi moves by, by direction."""
DROPS, ANIMAL_DROPS = "PLNSBRG", "CEG"
RANKS = "abcdefghi"

PlayerView = Callable[[EnvState], tuple[np.ndarray, int]]
"""state -> (the board as the player to move sees it, own pieces counted from 0; 1 if the second player moves)"""
Square = tuple[int, int]
Move = tuple[Square | str, Square, bool]
"""Where the piece comes from, or its letter if it is dropped; where it goes to; whether it becomes another."""


def shogi(seen_by_player: PlayerView) -> tuple[Write, Read]:
    """How moves of shogi are written and read."""
    own_kinds = 14

    def source(board: np.ndarray, to: Square, direction: int) -> Square | None:
        files, ranks = BACK[direction]
        for distance in range(1, 2 if direction in KNIGHTS else 9):
            square = to[0] + distance * files, to[1] + distance * ranks
            if not _is_on_board(square, 9, 9):
                return None
            if 0 <= board[square[0] * 9 + square[1]] < own_kinds:
                return square
        return None

    def decode(board: np.ndarray, action: int) -> Move | None:
        kind, square = divmod(action, 81)
        to = divmod(square, 9)
        if kind >= 20:
            return DROPS[kind - 20], to, False
        start = source(board, to, kind % 10)
        return None if start is None else (start, to, kind >= 10)

    def encode(board: np.ndarray, move: Move) -> int | None:
        start, to, promotes = move
        if isinstance(start, str):
            return _index(DROPS, start, 20, 81, to[0] * 9 + to[1])
        kinds = (d for d in range(len(BACK)) if source(board, to, d) == start)
        kind = next(kinds, None)
        return None if kind is None else (kind + 10 * promotes) * 81 + to[0] * 9 + to[1]

    return _notation(seen_by_player, (9, 9), decode, encode)


def animal_shogi(seen_by_player: PlayerView) -> tuple[Write, Read]:
    """How moves of animal shogi are written and read."""
    chick = 0

    def decode(board: np.ndarray, action: int) -> Move | None:
        kind, square = divmod(action, 12)
        start = divmod(square, 4)
        if kind >= len(STEPS):
            return ANIMAL_DROPS[kind - len(STEPS)], start, False
        to = start[0] + STEPS[kind][0], start[1] + STEPS[kind][1]
        return (start, to, bool(board[square] == chick) and to[1] == 0) if _is_on_board(to, 3, 4) else None

    def encode(board: np.ndarray, move: Move) -> int | None:
        start, to, _ = move
        if isinstance(start, str):
            return _index(ANIMAL_DROPS, start, len(STEPS), 12, to[0] * 4 + to[1])
        step = to[0] - start[0], to[1] - start[1]
        return STEPS.index(step) * 12 + start[0] * 4 + start[1] if step in STEPS else None

    return _notation(seen_by_player, (3, 4), decode, encode, always_promotes=True)


def _notation(
    seen_by_player: PlayerView,
    size: tuple[int, int],
    decode: Callable[[np.ndarray, int], Move | None],
    encode: Callable[[np.ndarray, Move], int | None],
    *,
    always_promotes: bool = False,
) -> tuple[Write, Read]:
    """The text of decoded moves, from the first player's side of a board of (files, ranks).

    Where a promotion is no choice, a move without its plus sign reads as the same action.
    """
    files, ranks = size
    square = f"([1-{files}])([a-{RANKS[ranks - 1]}])"
    pattern = re.compile(f"(?:([a-z])\\*|{square}){square}(\\+?)", re.IGNORECASE | re.ASCII)

    def turned(square: Square, turn: int) -> Square:
        return (files - 1 - square[0], ranks - 1 - square[1]) if turn else square

    def named(square: Square, turn: int) -> str:
        file, rank = turned(square, turn)
        return f"{file + 1}{RANKS[rank]}"

    def write(state: EnvState, action: int) -> str:
        board, turn = seen_by_player(state)
        move = decode(board, int(action))
        if move is None:
            return f"?{action}"
        start, to, promotes = move
        origin = f"{start}*" if isinstance(start, str) else named(start, turn)
        return origin + named(to, turn) + "+" * promotes

    def read(state: EnvState, text: str) -> int:
        match = pattern.fullmatch(text)
        if not match:
            raise ValueError("invalid move: not of the form 7g7f, 8h2b+ or P*5e")
        board, turn = seen_by_player(state)
        drop, file, rank, to_file, to_rank, plus = match.groups()
        to = turned((int(to_file) - 1, RANKS.index(to_rank.lower())), turn)
        start = drop.upper() if drop else turned((int(file) - 1, RANKS.index(rank.lower())), turn)
        action = encode(board, (start, to, bool(plus)))
        if action is not None:
            meant = write(state, action).lower()
            if text.lower() in (meant, meant.removesuffix("+") if always_promotes else meant):
                return action
        raise ValueError("illegal move")

    return write, read


def _is_on_board(square: Square, files: int, ranks: int) -> bool:
    return 0 <= square[0] < files and 0 <= square[1] < ranks


def _index(letters: str, letter: str, first: int, num_squares: int, square: int) -> int | None:
    """The action that drops a piece, by the letters of those that can be dropped."""
    return None if letter not in letters else (first + letters.index(letter)) * num_squares + square
