"""The main line of an SGF file as moves and stones: what `loadsgf` needs of the format (FF[4]).

The main line is everything up to the first closing bracket, because a tree lists its main variation first. Go writes
points as two letters; other games write them in their own notation, as HexGui does.
"""

import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

from muzero_jax.games.notation import Notation
from muzero_jax.play.position import BLACK, WHITE, Position

MOST_BYTES = 1_000_000
_TOKEN = re.compile(r"\s*(?:([();])|([A-Za-z]+)|\[((?:\\.|[^\]\\])*)\])", re.DOTALL)


class SgfMove(NamedTuple):
    """One move, or one stone of a set-up."""

    colour: int
    text: str
    is_setup: bool


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
    size, moves = read(data.decode("utf-8", errors="replace"))
    width = len(notation.columns)
    if size is not None and size != width:
        raise ValueError(f"cannot load file: its board has size {size}, not {width}")
    try:
        return _played(moves, position.new(), notation, before_move)
    except ValueError as error:
        raise ValueError(f"cannot load file: {error}") from None


def read(text: str) -> tuple[int | None, list[SgfMove]]:
    """The board's size, if the file says it, and the moves and stones of its main line; ValueError if it is no SGF."""
    start = text.find("(;")
    if start < 0:
        raise ValueError("cannot load file: it is not SGF")
    size, moves, name, end = None, [], "", start
    while (token := _TOKEN.match(text, end)) and token[1] != ")":
        end = token.end()
        if token[2]:
            name = "".join(c for c in token[2] if c.isupper())
        elif token[3] is not None and name == "SZ":
            size = int(re.split("[:x]", token[3])[0]) if re.match("[0-9]{1,2}(:|x|$)", token[3].strip()) else None
        elif token[3] is not None and name in ("B", "W", "AB", "AW"):
            value = re.sub(r"\\(.)", r"\1", token[3]).strip()
            moves.append(SgfMove(BLACK if name.endswith("B") else WHITE, value, name.startswith("A")))
        elif token[3] is not None and name == "AE":
            raise ValueError("cannot load file: it takes stones off the board")
    if not token:
        raise ValueError("cannot load file: it is not SGF")
    return size, moves


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
