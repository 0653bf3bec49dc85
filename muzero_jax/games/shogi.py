"""Shogi and animal shogi; moves are written as in USI: `7g7f`, `8h2b+` with a promotion, `P*5e` for a drop.

A square is file (from the right) * height + rank (from the top), as the player to move sees the board. pgx's action of
shogi is (a kind of move) * 81 + the square that the piece goes to. Kinds are ten directions, the same with promotion,
and seven drops; the piece is the first own one against the direction. An action of animal shogi is (a direction or
drop) * 12 + the square that the piece leaves or is dropped on. A chick that reaches the last rank becomes a hen.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import Notation, as_written
from muzero_jax.games.view import EMPTY, Squares, View
from muzero_jax.types import EnvState

SHOGI_PIECES = "P L N S B R G K +P +L +N +S +B +R".split()
ANIMAL_SHOGI_PIECES = "C E G L H".split()  # chick, elephant, giraffe, lion, hen
DROPS = "PLNSBRG"
ANIMAL_DROPS = "CEG"
BACK = ((0, 1), (-1, 1), (1, 1), (-1, 0), (1, 0), (0, -1), (-1, -1), (1, -1), (-1, 2), (1, 2))
"""(files, ranks) back to the square that a piece of shogi came from, by direction; the last two are a knight's."""
KNIGHTS = 8, 9
STEPS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""(files, ranks) that a piece of animal shogi moves, by direction."""
RANKS = "abcdefghi"

ReadState = Callable[[EnvState], tuple[np.ndarray, np.ndarray, int]]
"""state -> (the board as the player to move sees it, both players' hands, 1 if the second player moves)"""
Square = tuple[int, int]
Move = tuple[Square | str, Square, bool]
"""(the square that the piece leaves, or its letter if it is dropped; where it goes to; whether it promotes)"""
Decode = Callable[[np.ndarray, int], Move | None]
"""(the board, an action) -> its move; None if the move leaves the board or no piece can make it"""


def action_location(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """The square that pgx's action contains, as a cell of the observation, which turns pgx's board by a quarter.

    The piece goes to that square; in animal shogi it leaves it or is dropped on it.
    """
    height, width = shape
    file, rank = np.divmod(np.arange(num_actions) % (height * width), height)
    return rank * width + (width - 1 - file)


def shogi_move(board: np.ndarray, action: int) -> Move | None:
    """Decodes an action of shogi."""
    kind, square = divmod(action, 81)
    to = divmod(square, 9)
    if kind >= 20:
        return DROPS[kind - 20], to, False
    start = _source(board, to, kind % 10)
    return None if start is None else (start, to, kind >= 10)


def _source(board: np.ndarray, to: Square, direction: int) -> Square | None:
    """The square of the first own piece against this direction; None if there is none."""
    files, ranks = BACK[direction]
    for distance in range(1, 2 if direction in KNIGHTS else 9):
        file, rank = to[0] + distance * files, to[1] + distance * ranks
        if not (0 <= file < 9 and 0 <= rank < 9):
            return None
        if 0 <= board[file * 9 + rank] < len(SHOGI_PIECES):
            return file, rank
    return None


def animal_shogi_move(board: np.ndarray, action: int) -> Move | None:
    """Decodes an action of animal shogi."""
    kind, square = divmod(action, 12)
    start = divmod(square, 4)
    if kind >= len(STEPS):
        return ANIMAL_DROPS[kind - len(STEPS)], start, False
    file, rank = start[0] + STEPS[kind][0], start[1] + STEPS[kind][1]
    is_chick = board[square] == ANIMAL_SHOGI_PIECES.index("C")
    return (start, (file, rank), bool(is_chick) and rank == 0) if 0 <= file < 3 and 0 <= rank < 4 else None


def notation(
    read_state: ReadState, decode: Decode, optional: str, shape: tuple[int, int], num_actions: int
) -> Notation:
    """USI's notation: columns are numbered from the right, rows have letters from the top.

    optional: "+" if a promotion is forced, so that its sign may be left out; else empty.
    """
    ranks, files = shape

    def named(square: Square, turn: int) -> str:
        file, rank = (files - 1 - square[0], ranks - 1 - square[1]) if turn else square
        return f"{file + 1}{RANKS[rank]}"

    def write(state: EnvState, action: int) -> str:
        board, _, turn = read_state(state)
        move = decode(board, int(action))
        if move is None:
            return f"?{action}"
        start, to, promotes = move
        origin = f"{start}*" if isinstance(start, str) else named(start, turn)
        return origin + named(to, turn) + "+" * promotes

    square = f"[1-{files}][a-{RANKS[ranks - 1]}]"
    form = f"([a-z]\\*|{square}){square}\\+?"
    read = as_written(write, num_actions, form, like="7g7f, 8h2b+ or P*5e", optional=optional)
    return Notation(write, read, [str(files - file) for file in range(files)], list(RANKS[:ranks]))


def _view(read: ReadState, shape: tuple[int, int], letters: Sequence[str]) -> View:
    def squares(state: EnvState) -> Squares:
        """pgx numbers squares from the right, and the opponent's pieces after the mover's."""
        board, _, turn = read(state)
        kinds = len(letters)
        if turn:
            board = np.where(board < 0, board, (board + kinds) % (2 * kinds))[::-1]
        names = [*letters, *(letter.lower() for letter in letters)]
        pieces = board.reshape(shape[1], shape[0]).T[:, ::-1]
        return [[EMPTY if p < 0 else names[p] for p in row] for row in pieces]

    def hands(state: EnvState) -> tuple[str, str]:
        _, hand, turn = read(state)
        held = ["".join(letter * int(n) for letter, n in zip(letters, row, strict=False)) for row in hand]
        return (held[1], held[0]) if turn else (held[0], held[1])

    return View(squares, hands)


def _read_shogi(state: EnvState) -> tuple[np.ndarray, np.ndarray, int]:
    game = state._x
    return np.asarray(game.board), np.asarray(game.hand), int(game.color)


def _read_animal_shogi(state: Any) -> tuple[np.ndarray, np.ndarray, int]:
    return np.asarray(state._board), np.asarray(state._hand), int(state._turn)


def _game(name: str, title: str, goal: str, read: ReadState, decode: Decode, view: View, optional: str = "") -> Game:
    return Game(
        name,
        title,
        goal,
        layout=Layout(action_location),
        notation=partial(notation, read, decode, optional),
        view=view,
        protocol="usi",
        sgf_number=8,
    )


SHOGI = _game(
    "shogi",
    "Shogi",
    "Checkmate the other king. Instead of moving, you may drop a piece that you captured.",
    _read_shogi,
    shogi_move,
    _view(_read_shogi, (9, 9), SHOGI_PIECES),
)._replace(variant="shogi")
ANIMAL_SHOGI = _game(
    "animal_shogi",
    "Animal shogi",
    "Capture the other lion, or bring yours safely to the far row. You may drop pieces that you captured.",
    _read_animal_shogi,
    animal_shogi_move,
    _view(_read_animal_shogi, (4, 3), ANIMAL_SHOGI_PIECES),
    optional="+",
)._replace(variant="dobutsu")
