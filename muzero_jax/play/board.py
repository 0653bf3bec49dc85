"""What a person sees of a state: pieces on squares, from the first mover's side, whoever is to move.

pgx keeps most boards from the mover's view and each game in fields of its own; this is the one place that reads them
back into one picture. Row 0 is the top row as people draw it: row 8 of chess, row 9 of Go, row 1 of Hex and Othello.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from muzero_jax.types import EnvState

EMPTY = "."
FIRST, SECOND = "X", "O"
"""The stones of the first mover and of the other; games with pieces show letters, the first mover's in capitals."""

GO_KOMI = 7.5  # pgx's, which every Go agent here was trained under
SHOGI_PIECES = "P L N S B R G K +P +L +N +S +B +R".split()
ANIMAL_SHOGI_PIECES = "C E G L H".split()  # chick, elephant, giraffe, lion, hen


def squares(name: str, state: EnvState) -> list[list[str]]:
    """The board of game `name` as rows of `X`, `O`, piece letters and `.`, the top row first."""
    return _READERS[name](state)


def hands(name: str, state: EnvState) -> tuple[str, str]:
    """Captured pieces that the first mover and the other may drop, as letters; empty for games without drops."""
    if name == "shogi":
        hand, turn, letters = np.asarray(state._x.hand), int(state._x.color), SHOGI_PIECES
    elif name == "animal_shogi":
        hand, turn, letters = np.asarray(state._hand), int(state._turn), ANIMAL_SHOGI_PIECES
    else:
        return "", ""
    held = ["".join(letter * int(n) for letter, n in zip(letters, row, strict=False)) for row in hand]
    return (held[1], held[0]) if turn else (held[0], held[1])


def stone_difference(rows: list[list[str]]) -> int:
    """Stones of the first mover minus the other's: Othello's score."""
    cells = [cell for row in rows for cell in row]
    return cells.count(FIRST) - cells.count(SECOND)


def area_difference(rows: list[list[str]]) -> int:
    """Go's area score before komi (Tromp-Taylor): stones, and empty regions that touch one colour alone."""
    height, width = len(rows), len(rows[0])
    unseen = {(r, c) for r in range(height) for c in range(width) if rows[r][c] == EMPTY}
    difference = stone_difference(rows)
    while unseen:
        region, reaches, frontier = 0, set(), [unseen.pop()]
        while frontier:
            r, c = frontier.pop()
            region += 1
            for cell in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if cell in unseen:
                    unseen.remove(cell)
                    frontier.append(cell)
                elif 0 <= cell[0] < height and 0 <= cell[1] < width:
                    reaches.add(rows[cell[0]][cell[1]])
        reaches.discard(EMPTY)
        difference += {(FIRST,): region, (SECOND,): -region}.get(tuple(reaches), 0)
    return difference


def _stones(signs: Int[np.ndarray, "H W"]) -> list[list[str]]:
    """+1 is the first mover's stone, -1 the other's."""
    return [[(EMPTY, FIRST, SECOND)[sign] for sign in row] for row in signs.tolist()]


def _numbered(shape: tuple[int, int]) -> Callable[[EnvState], list[list[str]]]:
    """Boards that hold -1 for empty, else the colour."""

    def read(state: EnvState) -> list[list[str]]:
        colours = np.asarray(state._x.board).reshape(shape)
        return _stones(np.where(colours < 0, 0, 1 - 2 * colours))

    return read


def _signed(view: Callable[[EnvState], int]) -> Callable[[EnvState], list[list[str]]]:
    """Square boards with positive stones of the colour that `view` names (0 is the first mover)."""

    def read(state: EnvState) -> list[list[str]]:
        board = np.sign(np.asarray(state._x.board)).astype(int)
        size = int(len(board) ** 0.5)
        return _stones(board.reshape(size, size) * (1 - 2 * view(state)))

    return read


def _chess(board: np.ndarray, turn: int) -> list[list[str]]:
    """pgx numbers squares up the files, from the mover's side."""
    size = int(len(board) ** 0.5)
    pieces = np.rot90(board.reshape(size, size))
    pieces = -pieces[::-1] if turn else pieces
    return [[EMPTY if p == 0 else "PNBRQK"[p - 1] if p > 0 else "pnbrqk"[-p - 1] for p in row] for row in pieces]


def _shogi(board: np.ndarray, turn: int, shape: tuple[int, int], letters: Sequence[str]) -> list[list[str]]:
    """pgx numbers squares down the files from the right, from the mover's side; the opponent's pieces come second."""
    kinds = len(letters)
    if turn:
        board = np.where(board < 0, board, (board + kinds) % (2 * kinds))[::-1]
    names = [*letters, *(letter.lower() for letter in letters)]
    pieces = board.reshape(shape[1], shape[0]).T[:, ::-1]
    return [[EMPTY if p < 0 else names[p] for p in row] for row in pieces]


_READERS: dict[str, Callable[[EnvState], list[list[str]]]] = {
    "tic_tac_toe": _numbered((3, 3)),
    "connect_four": _numbered((6, 7)),
    "othello": _signed(lambda state: int(state._x.turn)),
    "hex": _signed(lambda state: int(state._x.color)),
    "go_9x9": _signed(lambda state: 0),
    "go_19x19": _signed(lambda state: 0),
    "chess": lambda state: _chess(np.asarray(state._x.board), int(state._x.color)),
    "gardner_chess": lambda state: _chess(np.asarray(state._board), int(state._turn)),
    "shogi": lambda state: _shogi(np.asarray(state._x.board), int(state._x.color), (9, 9), SHOGI_PIECES),
    "animal_shogi": lambda state: _shogi(np.asarray(state._board), int(state._turn), (4, 3), ANIMAL_SHOGI_PIECES),
}
