"""pgx's chess actions as the long algebraic moves of UCI, for chess and for Gardner's chess on 5x5.

An action is square * planes + plane, both as the player to move sees the board: squares go up the files, and a plane is
a direction with a distance (queen moves, then knight moves), after nine planes of promotions to rook, bishop or knight.
A pawn that takes a queen move to the last rank becomes a queen. Castling is the king's move by two.
"""

import re
from collections.abc import Callable

import numpy as np

from muzero_jax.games.notation import Read, Write
from muzero_jax.types import EnvState

_NUM_PROMOTIONS = 9
_PROMOTED = "rbn"  # by plane // 3; plane % 3 is the file's shift
_PROMOTION_SHIFT = (0, 1, -1)

PlayerView = Callable[[EnvState], tuple[np.ndarray, int]]
"""state -> (the board as the player to move sees it, 1 if the second player moves)"""


def deltas(size: int) -> list[tuple[int, int]]:
    """(ranks, files) that each plane after the promotions moves by, forward and to the right being positive."""
    away, back = list(range(1, size)), list(range(1 - size, 0))
    none = [0] * (size - 1)
    rank_steps = back + away + none + none + back + away + away[::-1] + back[::-1]
    file_steps = none + none + back + away + back + away + back + away
    knight = [(-1, -2), (1, -2), (-2, -1), (2, -1), (-1, 2), (1, 2), (-2, 1), (2, 1)]
    return list(zip(rank_steps, file_steps, strict=True)) + knight


def writer(size: int, seen_by_player: PlayerView) -> Write:
    """(state, action) -> `e2e4`, `a7b8n`."""
    moves = deltas(size)

    def write(state: EnvState, action: int) -> str:
        board, turn = seen_by_player(state)
        square, plane = divmod(int(action), _NUM_PROMOTIONS + len(moves))
        file, rank = divmod(square, size)
        is_promotion = plane < _NUM_PROMOTIONS
        ranks, files = (1, _PROMOTION_SHIFT[plane % 3]) if is_promotion else moves[plane - _NUM_PROMOTIONS]
        suffix = _PROMOTED[plane // 3] if is_promotion else ""
        if not is_promotion and board[square] == 1 and rank + ranks == size - 1:
            suffix = "q"
        return _square(file, rank, size, turn) + _square(file + files, rank + ranks, size, turn) + suffix

    return write


def reader(size: int, seen_by_player: PlayerView) -> Read:
    """(state, `e2e4`) -> action; ValueError where no piece could ever move like that."""
    moves = deltas(size)
    planes = {move: plane + _NUM_PROMOTIONS for plane, move in enumerate(moves)}
    pattern = re.compile("([a-{0}])([1-{1}])([a-{0}])([1-{1}])([qrbn]?)".format("abcdefgh"[size - 1], size))
    write = writer(size, seen_by_player)

    def read(state: EnvState, text: str) -> int:
        match = pattern.fullmatch(text.lower())
        if not match:
            raise ValueError("invalid move: not of the form e2e4 or e7e8q")
        _, turn = seen_by_player(state)
        file, rank, to_file, to_rank = (int(c, 36) - (10 if c.isalpha() else 1) for c in match.groups()[:4])
        if turn:
            rank, to_rank = size - 1 - rank, size - 1 - to_rank
        delta = (to_rank - rank, to_file - file)
        if match[5] and match[5] in _PROMOTED:
            plane = 3 * _PROMOTED.index(match[5]) + _PROMOTION_SHIFT.index(delta[1]) if abs(delta[1]) < 2 else -1
        else:
            plane = planes.get(delta, -1)
        action = (file * size + rank) * (_NUM_PROMOTIONS + len(moves)) + plane
        if plane < 0 or write(state, action) != text.lower():
            raise ValueError("illegal move")
        return action

    return read


def _square(file: int, rank: int, size: int, turn: int) -> str:
    return "abcdefgh"[file] + str((size - 1 - rank if turn else rank) + 1) if 0 <= file < size else "?"
