"""Shogi and animal shogi; moves are written as USI has them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from muzero_jax.games import shogi_moves
from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import Notation, Read, Write
from muzero_jax.games.view import EMPTY, Squares, View
from muzero_jax.types import EnvState

SHOGI_PIECES = "P L N S B R G K +P +L +N +S +B +R".split()
ANIMAL_SHOGI_PIECES = "C E G L H".split()  # chick, elephant, giraffe, lion, hen

ReadState = Callable[[EnvState], tuple[np.ndarray, np.ndarray, int]]
"""state -> (the board as the player to move sees it, what both hold for dropping, 1 if the second player moves)"""


def action_location(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """The square that pgx's label is made of: where the piece comes to, or leaves in animal shogi unless it is a drop.

    Squares are numbered down the files, which the observation turns by a quarter.
    """
    height, width = shape
    file, rank = np.divmod(np.arange(num_actions) % (height * width), height)
    return rank * width + (width - 1 - file)


def notation(moves: tuple[Write, Read], shape: tuple[int, int], num_actions: int) -> Notation:
    """USI's moves; columns are numbered from the right, rows have letters from the top."""
    del num_actions
    columns = [str(number + 1) for number in range(shape[1])]
    return Notation(*moves, columns[::-1], list(shogi_moves.RANKS[: shape[0]]))


def _view(read: ReadState, shape: tuple[int, int], letters: Sequence[str]) -> View:
    def squares(state: EnvState) -> Squares:
        """Squares are numbered from the right; the opponent's pieces come second."""
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


def _game(
    name: str, title: str, goal: str, read: ReadState, moves: Callable[..., tuple[Write, Read]], view: View
) -> Game:
    def seen_by_player(state: EnvState) -> tuple[np.ndarray, int]:
        board, _, turn = read(state)
        return board, turn

    written = partial(notation, moves(seen_by_player))
    return Game(
        name, title, goal, layout=Layout(action_location), notation=written, view=view, protocol="usi", sgf_number=8
    )


SHOGI = _game(
    "shogi",
    "Shogi",
    "Checkmate the other king. Instead of moving, you may drop a piece that you captured.",
    _read_shogi,
    shogi_moves.shogi,
    _view(_read_shogi, (9, 9), SHOGI_PIECES),
)._replace(variant="shogi")
ANIMAL_SHOGI = _game(
    "animal_shogi",
    "Animal shogi",
    "Capture the other lion, or bring yours safely to the far row. You may drop pieces that you captured.",
    _read_animal_shogi,
    shogi_moves.animal_shogi,
    _view(_read_animal_shogi, (4, 3), ANIMAL_SHOGI_PIECES),
)._replace(variant="dobutsu")
