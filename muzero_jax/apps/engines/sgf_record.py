"""A game from an SGF file: what `loadsgf` needs of the format (`games.sgf`)."""

from functools import partial
from pathlib import Path

from muzero_jax.apps.play.position import Position
from muzero_jax.games.notation import Notation
from muzero_jax.games.sgf import SgfMove, read

MOST_BYTES = 1_000_000


def load(path: Path, position: Position, notation: Notation, before_move: int | None = None) -> Position:
    """The end of the file's main line in a new game of `position`, up to but not including move `before_move`.

    Raises ValueError for a file that is not such a game of this size.
    """
    if not path.is_file():
        raise ValueError("cannot load file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError("cannot load file: it is too large")
    try:
        size, moves = read(data.decode("utf-8", errors="replace"))
        width = len(notation.columns)
        if size is not None and size != width:
            raise ValueError(f"its board has size {size}, not {width}")
        return _played(moves, position.new(), notation, before_move)
    except ValueError as error:
        raise ValueError(f"cannot load file: {error}") from None


def _played(moves: list[SgfMove], position: Position, notation: Notation, before_move: int | None) -> Position:
    num_moves = 0
    for move in moves:
        num_moves += not move.is_setup
        if before_move is not None and num_moves >= before_move:
            break
        if move.text.lower() == "resign":
            position = position.resign(move.colour)
        else:
            action = (notation.read_sgf or partial(notation.read, position.state))(move.text)
            position = position.play(action, move.colour)
    return position
