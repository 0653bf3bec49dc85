"""Chess, and Gardner's chess on 5x5."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from muzero_jax.games import chess_fen, chess_moves
from muzero_jax.games.chess_moves import PlayerView
from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import Notation, coordinates
from muzero_jax.games.view import EMPTY, Squares, View
from muzero_jax.types import EnvState


def action_location(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """The square that the piece leaves. Squares are numbered up the files, which the observation turns by a quarter."""
    height, width = shape
    file, rank = np.divmod(np.arange(num_actions) // (num_actions // (height * width)), height)
    return (height - 1 - rank) * width + file


def squares(seen_by_player: PlayerView, state: EnvState) -> Squares:
    """White's pieces in capitals."""
    board, turn = seen_by_player(state)
    size = int(len(board) ** 0.5)
    pieces = np.rot90(board.reshape(size, size))
    pieces = -pieces[::-1] if turn else pieces
    return [[EMPTY if p == 0 else "PNBRQK"[p - 1] if p > 0 else "pnbrqk"[-p - 1] for p in row] for row in pieces]


def notation(seen_by_player: PlayerView, shape: tuple[int, int], num_actions: int) -> Notation:
    """Long algebraic, on a board with row 1 at the bottom."""
    write, read = chess_moves.writer(shape[0], seen_by_player), chess_moves.reader(shape[0], seen_by_player)
    return coordinates(upward=True)(shape, num_actions)._replace(write=write, read=read)


def _chess(state: EnvState) -> tuple[np.ndarray, int]:
    return np.asarray(state._x.board), int(state._x.color)


def _gardner_chess(state: Any) -> tuple[np.ndarray, int]:
    return np.asarray(state._board), int(state._turn)


def _game(
    name: str, title: str, goal: str, seen_by_player: PlayerView, read_fen: Callable[[str], tuple[EnvState, int]]
) -> Game:
    colours = ("white", "black")
    return Game(
        name,
        title,
        goal,
        layout=Layout(action_location),
        notation=partial(notation, seen_by_player),
        view=View(partial(squares, seen_by_player), colours=colours, inks=colours, page="chess"),
        read_fen=read_fen,
        protocol="uci",
        sgf_number=3,
    )


CHESS = _game("chess", "Chess", "Checkmate the other king.", _chess, chess_fen.read_chess)._replace(variant="chess")
GARDNER_CHESS = _game(
    "gardner_chess",
    "Gardner chess",
    "Checkmate the other king. Nobody castles, and pawns always move one step.",
    _gardner_chess,
    chess_fen.read_gardner_chess,
)._replace(variant="gardner")
