"""Chess positions from FEN, for chess and for Gardner's chess on 5x5.

pgx reads FEN, but trusts it, and leaves the opening position in the history that the networks see. So the text is
checked here first, and the history emptied: what came before the position is unknown. Counters may be left out. A text
that is no position is a ValueError of one sentence.
"""

import re

import jax.numpy as jnp

from muzero_jax.types import EnvState


def read_chess(fen: str) -> tuple[EnvState, int]:
    """The state and who is to move (0 for white)."""
    fields = _checked_fields(fen, size=8, most_pieces=16)
    from pgx.chess import Chess
    from pgx.experimental.chess import from_fen  # on import, pgx computes tables for seconds

    state = from_fen(" ".join(fields))
    game = state._x
    game = game._replace(board_history=game.board_history.at[1:].set(0), hash_history=game.hash_history.at[1:].set(0))
    return _ready(Chess(), state.replace(_x=game), fields)  # type: ignore


def read_gardner_chess(fen: str) -> tuple[EnvState, int]:
    """The state and who is to move (0 for white)."""
    fields = _checked_fields(fen, size=5, most_pieces=10)
    from pgx.gardner_chess import GardnerChess, _from_fen

    state = _from_fen(" ".join(fields))
    state = state.replace(  # type: ignore
        _board_history=state._board_history.at[1:].set(0), _hash_history=state._hash_history.at[1:].set(0)
    )
    return _ready(GardnerChess(), state, fields)


def _ready(rules, state: EnvState, fields: list[str]) -> tuple[EnvState, int]:
    mask = jnp.where(state.terminated, True, state.legal_action_mask)
    state = state.replace(legal_action_mask=mask)
    return state.replace(observation=rules.observe(state)), int(fields[1] == "b")


def _checked_fields(fen: str, *, size: int, most_pieces: int) -> list[str]:
    """The six fields; pgx looks at no more than `most_pieces` of one colour."""
    fields = fen.split()
    fields += ["-", "-", "0", "1"][len(fields) - 2 :] if 2 <= len(fields) < 6 else []
    if len(fields) != 6:
        raise ValueError("a FEN has six fields: board, side to move, castling, en passant and two counters")
    placement, side, castling, en_passant, *counters = fields
    _check_board(placement, size, most_pieces)
    if side not in ("w", "b") or not re.fullmatch("-|K?Q?k?q?", castling):
        raise ValueError("the FEN's side to move is not w or b, or its castling not of the form KQkq")
    if not re.fullmatch("-|[a-h][36]", en_passant) or not all(re.fullmatch("[0-9]{1,4}", c) for c in counters):
        raise ValueError("the FEN's en passant square or its counters are not valid")
    return fields


def _check_board(placement: str, size: int, most_pieces: int) -> None:
    ranks = placement.split("/")
    widths = [sum(int(c) if c in "12345678" else 1 for c in rank) for rank in ranks]
    if not re.fullmatch("[1-8pnbrqkPNBRQK/]+", placement) or widths != [size] * size:
        raise ValueError(f"the FEN's board is not {size} ranks of {size} squares")
    if placement.count("k") != 1 or placement.count("K") != 1:
        raise ValueError("the FEN's board has not one king of each colour")
    if re.search("[pP]", ranks[0] + ranks[-1]):
        raise ValueError("the FEN's board has a pawn on the first or last rank")
    if any(sum(c in letters for c in placement) > most_pieces for letters in ("pnbrqk", "PNBRQK")):
        raise ValueError(f"the FEN's board has more than {most_pieces} pieces of one colour")
