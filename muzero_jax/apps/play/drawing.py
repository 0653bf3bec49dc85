"""A board as lines of text: plain for GTP's `showboard`, with styles for the terminal.

Stones are the initials of their colours (B and W, X and O). In Hex, small letters around the board show whose edge it
is. A star precedes every cell of the winning chain or row.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games import view
from muzero_jax.games.notation import Notation

LABEL, EMPTY, FIRST, SECOND = "label", "empty", "first", "second"
"""Kinds of text: the name of a row or column, an empty cell, something of the first player's or of the second's."""
LAST, EDGE, WON = "last", "edge", "won"
"""Marks: the stone just played, an edge of the board, the star of a cell that won."""

HALVES = (" ▄", "▀█")
"""HALVES[upper pixel is lit][lower pixel is lit]."""

LARGE = 100
"""Values from here on are shown without decimals."""


class Piece(NamedTuple):
    """A part of a line, with one style."""

    text: str
    kind: str = LABEL
    mark: str = ""


Line = list[Piece]


def draw(position: Position, notation: Notation) -> list[Line]:
    """The position row by row with coordinates; each row of Hex is indented more than the one above."""
    if position.game.view.page == view.PIXELS:
        return _screen(position.squares)
    lines = list(_rows(position, notation))
    if position.game.view.has_edges:
        lines = _framed(lines, position)
    if notation.columns:
        lines.insert(0, [Piece(_header(position, notation))])
    return [*lines, *([Piece(line)] for line in captions(position))]


def _screen(squares: view.Squares) -> list[Line]:
    """Two rows of pixels in each line."""
    lit = [[pixel != view.EMPTY for pixel in row] for row in squares]
    pairs = zip_longest(lit[::2], lit[1::2], fillvalue=[])
    return [
        [Piece("".join(HALVES[a][b] for a, b in zip_longest(above, below, fillvalue=False)))] for above, below in pairs
    ]


def captions(position: Position) -> list[str]:
    """Lines below a board: what both sides hold, and the game's `View.caption`."""
    look = position.game.view
    hands = look.hands(position.shown)
    caption = look.caption(position.shown)
    held = ", ".join(f"{name} {hand or '-'}" for name, hand in zip(look.colours, hands, strict=True))
    return [*([f"{look.hands_title}: {held}"] if any(hands) else []), *([caption] if caption else [])]


def signed(value: float) -> str:
    """A value with its sign; a large one has no decimals."""
    return f"{round(value, 2) + 0.0:+.2f}" if abs(value) < LARGE else f"{value:+,.0f}"


def counted(number: int | float, noun: str) -> str:
    """`1 move`, `1,024 points`."""
    return f"{round(number, 2):,.10g} {noun}{'' if number == 1 else 's'}"


def judged(found: Analysis) -> str:
    """The value of a position in words, after search (if there was one) and by the network."""
    after = f"{signed(found.value)} after {counted(found.num_simulations, 'simulation')}, "
    return f"{after if found.num_simulations else ''}{signed(found.prior_value)} at first sight"


def plain(lines: list[Line]) -> str:
    """The drawing as text without styles."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


def letters(position: Position) -> tuple[str, str]:
    """The letters of both sides' stones."""
    first, second = position.game.view.colours
    return first[0].upper(), second[0].upper()


def _header(position: Position, notation: Notation) -> str:
    return " " * _margin(notation) + "".join(" " + name.rjust(_width(position)) for name in notation.columns)


def _margin(notation: Notation) -> int:
    return max((len(label) for label in notation.rows), default=0)


def _width(position: Position) -> int:
    return max(len(cell) for row in position.squares for cell in row)


def _rows(position: Position, notation: Notation) -> Iterator[Line]:
    won = set(position.winning_cells)
    last = _last_cell(position, len(position.squares[0]))
    stones = str.maketrans(dict(zip((view.FIRST, view.SECOND), letters(position), strict=True)))
    margin = _margin(notation)
    width = _width(position)
    for index, row in enumerate(position.squares):
        indent = " " * index if position.game.view.leans else ""
        label = notation.rows[index] if notation.rows else ""
        line = [Piece(indent + label.rjust(margin))]
        for column, cell in enumerate(row):
            mark = LAST if (index, column) == last else ""
            line.append(Piece("*", mark=WON) if (index, column) in won else Piece(" "))
            is_stones = set(cell) <= {view.FIRST, view.SECOND}
            line.append(Piece((cell.translate(stones) if is_stones else cell).rjust(width), _kind(cell), mark))
        yield line


def _framed(rows: list[Line], position: Position) -> list[Line]:
    """The rows, framed by the letters of the edges' owners."""
    first, second = (letter.lower() for letter in letters(position))
    indent = len(rows[0][0].text)
    width = len(rows[0]) // 2
    side = [Piece(" "), Piece(second, SECOND, EDGE)]
    level = [Piece(" "), Piece(first, FIRST, EDGE)] * width
    above = Piece(" " * (indent + 1))
    below = Piece(" " * (indent + len(rows) + 2))
    return [[above, *level], *([row[0], *side, *row[1:], *side] for row in rows), [below, *level]]


def _kind(cell: str) -> str:
    if cell == view.EMPTY:
        return EMPTY
    return SECOND if set(cell) == {view.SECOND} or cell.islower() else FIRST


def _last_cell(position: Position, width: int) -> tuple[int, int] | None:
    """Where the last stone was put, in games where an action is a cell."""
    if position.last_action is None or not position.game.view.marks_last:
        return None
    row, column = divmod(position.last_action, width)
    return (row, column) if 0 <= row < len(position.squares) else None
