"""Chess positions from FEN, for chess and for Gardner's chess on 5x5.

pgx reads FEN, but trusts it, and leaves the opening position in the history that the networks see. So the text is
checked here first, and the history emptied: what came before the position is unknown.
"""

import re

import jax.numpy as jnp
import pgx

from muzero_jax.play import chess_moves
from muzero_jax.types import EnvState

MOST_PIECES = {"chess": 16, "gardner_chess": 10}
"""Of one colour; pgx looks at no more."""


def read_fen(name: str, fen: str) -> tuple[EnvState, int]:
    """The state of the game `name` and who is to move (0 for white, the first mover); counters may be left out.

    Raises ValueError, in one sentence, for anything that is no position.
    """
    fields = fen.split()
    fields += ["-", "-", "0", "1"][len(fields) - 2 :] if 2 <= len(fields) < 6 else []
    _check(name, fields)
    text = " ".join(fields)
    if name == "chess":
        from pgx.experimental import chess  # on import, pgx computes tables for seconds

        state = chess.from_fen(text)
        game = state._x
        game = game._replace(
            board_history=game.board_history.at[1:].set(0), hash_history=game.hash_history.at[1:].set(0)
        )
        state = state.replace(_x=game)  # type: ignore
    else:
        from pgx import gardner_chess

        state = gardner_chess._from_fen(text)
        state = state.replace(  # type: ignore
            _board_history=state._board_history.at[1:].set(0), _hash_history=state._hash_history.at[1:].set(0)
        )
    mask = jnp.where(state.terminated, True, state.legal_action_mask)
    state = state.replace(legal_action_mask=mask)  # type: ignore
    return state.replace(observation=pgx.make(name).observe(state)), int(fields[1] == "b")  # type: ignore


def _check(name: str, fields: list[str]) -> None:
    if len(fields) != 6:
        raise ValueError("a FEN has six fields: board, side to move, castling, en passant and two counters")
    placement, side, castling, en_passant, *counters = fields
    size = chess_moves.SIZES[name]
    ranks = placement.split("/")
    widths = [sum(int(c) if c in "12345678" else 1 for c in rank) for rank in ranks]
    if not re.fullmatch("[1-8pnbrqkPNBRQK/]+", placement) or widths != [size] * size:
        raise ValueError(f"the FEN's board is not {size} ranks of {size} squares")
    if placement.count("k") != 1 or placement.count("K") != 1:
        raise ValueError("the FEN's board has not one king of each colour")
    if re.search("[pP]", ranks[0] + ranks[-1]):
        raise ValueError("the FEN's board has a pawn on the first or last rank")
    if any(sum(c in letters for c in placement) > MOST_PIECES[name] for letters in ("pnbrqk", "PNBRQK")):
        raise ValueError(f"the FEN's board has more than {MOST_PIECES[name]} pieces of one colour")
    if side not in ("w", "b") or not re.fullmatch("-|K?Q?k?q?", castling):
        raise ValueError("the FEN's side to move is not w or b, or its castling not of the form KQkq")
    if not re.fullmatch("-|[a-h][36]", en_passant) or not all(re.fullmatch("[0-9]{1,4}", c) for c in counters):
        raise ValueError("the FEN's en passant square or its counters are not valid")
