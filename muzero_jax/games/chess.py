"""Chess, and Gardner's chess on 5x5: the board, its notation, and positions from FEN.

pgx's action is square * planes + plane, as the player to move sees the board. Squares are numbered up the files. The
first nine planes are promotions to rook, bishop or knight; each other plane is a direction and a distance (queen moves,
then knight moves). A pawn that reaches the last rank by a queen move becomes a queen. Castling is a king's move by two.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from muzero_jax.games.game import Game
from muzero_jax.games.layout import Layout
from muzero_jax.games.notation import LETTERS, Notation, Write, as_written, coordinates
from muzero_jax.games.view import EMPTY, Squares, View
from muzero_jax.types import EnvState

KING = 6  # of pgx's pieces; the opponent's are negative
NUM_PROMOTIONS = 9
PROMOTED = "rbn"  # by plane // 3; plane % 3 is the file's shift
PROMOTION_SHIFT = (0, 1, -1)

PlayerView = Callable[[EnvState], tuple[np.ndarray, int]]
"""state -> (the board as the player to move sees it, 1 if the second player moves)"""


def action_location(shape: tuple[int, int], num_actions: int) -> Int[np.ndarray, " A"]:
    """The square that the piece leaves, as a cell of the observation, which turns pgx's board by a quarter."""
    height, width = shape
    file, rank = np.divmod(np.arange(num_actions) // (num_actions // (height * width)), height)
    return (height - 1 - rank) * width + file


def squares(seen_by_player: PlayerView, state: EnvState) -> Squares:
    """The board from white's side, white's pieces in capitals."""
    board, turn = seen_by_player(state)
    size = int(len(board) ** 0.5)
    pieces = np.rot90(board.reshape(size, size))
    pieces = -pieces[::-1] if turn else pieces
    return [[EMPTY if p == 0 else "PNBRQK"[p - 1] if p > 0 else "pnbrqk"[-p - 1] for p in row] for row in pieces]


def notation(seen_by_player: PlayerView, shape: tuple[int, int], num_actions: int) -> Notation:
    """Long algebraic (`e2e4`, `a7b8n`), as UCI has it, on a board with row 1 at the bottom."""
    size = shape[0]
    write = writer(size, seen_by_player)
    square = f"[a-{LETTERS[size - 1]}][1-{size}]"
    read = as_written(write, num_actions, f"{square}{square}[qrbn]?", like="e2e4 or e7e8q")
    return coordinates(upward=True)(shape, num_actions)._replace(write=write, read=read)


def deltas(size: int) -> list[tuple[int, int]]:
    """(ranks, files) by which each plane after the promotions moves; forward and right are positive."""
    away, back = list(range(1, size)), list(range(1 - size, 0))
    none = [0] * (size - 1)
    rank_steps = back + away + none + none + back + away + away[::-1] + back[::-1]
    file_steps = none + none + back + away + back + away + back + away
    knight = [(-1, -2), (1, -2), (-2, -1), (2, -1), (-1, 2), (1, 2), (-2, 1), (2, 1)]
    return list(zip(rank_steps, file_steps, strict=True)) + knight


def square_name(size: int, file: int, rank: int, turn: int) -> str:
    """A square by its place as the player to move sees it; a question mark for a file off the board."""
    return LETTERS[file] + str((size - 1 - rank if turn else rank) + 1) if 0 <= file < size else "?"


def writer(size: int, seen_by_player: PlayerView) -> Write:
    """How moves are written; a square off the board has a question mark."""
    moves = deltas(size)
    named = partial(square_name, size)

    def write(state: EnvState, action: int) -> str:
        board, turn = seen_by_player(state)
        square, plane = divmod(int(action), NUM_PROMOTIONS + len(moves))
        file, rank = divmod(square, size)
        is_promotion = plane < NUM_PROMOTIONS
        ranks, files = (1, PROMOTION_SHIFT[plane % 3]) if is_promotion else moves[plane - NUM_PROMOTIONS]
        suffix = PROMOTED[plane // 3] if is_promotion else ""
        if not is_promotion and board[square] == 1 and rank + ranks == size - 1:
            suffix = "q"
        return named(file, rank, turn) + named(file + files, rank + ranks, turn) + suffix

    return write


def _chess(state: EnvState) -> tuple[np.ndarray, int]:
    return np.asarray(state._x.board), int(state._x.color)


def _gardner_chess(state: Any) -> tuple[np.ndarray, int]:
    return np.asarray(state._board), int(state._turn)


# pgx reads FEN without checking it, and leaves the opening position in the history that the networks see. So we check
# the text first and empty the history, because what came before the position is unknown.


def read_chess(fen: str) -> tuple[EnvState, int]:
    """The state and who is to move (0 is white); `fen` may omit its counters. ValueError if it is no position."""
    fields = _checked_fields(fen, size=8)
    from pgx.chess import Chess
    from pgx.experimental.chess import from_fen  # on import, pgx computes tables for seconds

    state = from_fen(" ".join(fields))
    game = state._x
    game = game._replace(board_history=game.board_history.at[1:].set(0), hash_history=game.hash_history.at[1:].set(0))
    return _ready(Chess(), state.replace(_x=game), fields, _chess)  # type: ignore


def read_gardner_chess(fen: str) -> tuple[EnvState, int]:
    """`read_chess` for Gardner's chess."""
    fields = _checked_fields(fen, size=5)
    from pgx.gardner_chess import GardnerChess, _from_fen

    state = _from_fen(" ".join(fields))
    state = state.replace(  # type: ignore
        _board_history=state._board_history.at[1:].set(0), _hash_history=state._hash_history.at[1:].set(0)
    )
    return _ready(GardnerChess(), state, fields, _gardner_chess)


def _ready(rules: Any, state: EnvState, fields: list[str], seen_by_player: PlayerView) -> tuple[EnvState, int]:
    board, turn = seen_by_player(state)
    size = int(len(board) ** 0.5)
    king = square_name(size, *divmod(int(np.argmax(board == -KING)), size), turn)
    write = writer(size, seen_by_player)
    if any(write(state, action)[2:4] == king for action in np.flatnonzero(state.legal_action_mask).tolist()):
        raise ValueError(f"that FEN is no position: who is to move could take the king on {king}")
    mask = jnp.where(state.terminated, True, state.legal_action_mask)
    state = state.replace(legal_action_mask=mask)
    return state.replace(observation=rules.observe(state)), int(fields[1] == "b")


def _checked_fields(fen: str, *, size: int) -> list[str]:
    """The six fields of a FEN; ValueError if they are no position."""
    fields = fen.split()
    fields += ["-", "-", "0", "1"][len(fields) - 2 :] if 2 <= len(fields) < 6 else []
    ranks = fields[0].split("/") if fields else []
    widths = [sum(int(c) if c in "12345678" else 1 for c in rank) for rank in ranks]
    pieces = [sum(map(str.islower, rank)) for rank in ranks], [sum(map(str.isupper, rank)) for rank in ranks]
    is_position = (
        re.fullmatch("[1-8pnbrqkPNBRQK/]+ [wb] (-|K?Q?k?q?) (-|[a-h][36])( [0-9]{1,4}){2}", " ".join(fields))
        and widths == [size] * size
        and fields[0].count("k") == fields[0].count("K") == 1
        and max(map(sum, pieces)) <= 2 * size  # pgx reads no more
        and not re.search("[pP]", ranks[0] + ranks[-1])
    )
    if not is_position:
        raise ValueError(
            f"that FEN is no position of {size}x{size} squares: it has six fields, one king of each colour, at most "
            f"{2 * size} pieces of a colour, and no pawn on the first or last rank"
        )
    return fields


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


CHESS = _game("chess", "Chess", "Checkmate the other king.", _chess, read_chess)._replace(variant="chess")
GARDNER_CHESS = _game(
    "gardner_chess",
    "Gardner chess",
    "Checkmate the other king. Nobody castles, and pawns always move one step.",
    _gardner_chess,
    read_gardner_chess,
)._replace(variant="gardner")
