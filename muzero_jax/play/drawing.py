"""A board as lines of text: for GTP's `showboard` plain, for the terminal with a style for each kind of mark."""

from collections.abc import Iterator

from muzero_jax.games import view
from muzero_jax.games.notation import Notation
from muzero_jax.play.position import Position

LABEL, EMPTY, FIRST, SECOND, LAST = "label", "empty", "first", "second", "last"
"""Kinds of marks: a row's or column's name, a free cell, a piece of either player, and `LAST` for one just played."""

Line = list[tuple[str, str]]
"""Pieces of text with their kinds."""


def draw(position: Position, notation: Notation) -> list[Line]:
    """The position row by row with its coordinates; Hex leans to the right, as its cells do."""
    lines = list(_rows(position, notation))
    black_hand, white_hand = position.game.view.hands(position.state)
    if black_hand or white_hand:
        lines.append([(f"in hand: first {black_hand or '-'}, second {white_hand or '-'}", LABEL)])
    return lines


def plain(lines: list[Line]) -> str:
    """The drawing as text without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def _rows(position: Position, notation: Notation) -> Iterator[Line]:
    rows = position.squares
    margin = max(len(label) for label in notation.rows)
    width = max(len(cell) for row in rows for cell in row)
    header = " " * margin + "".join(" " + column.rjust(width) for column in notation.columns)
    last = _last_cell(position, len(rows[0]))
    yield [(header, LABEL)]
    for index, row in enumerate(rows):
        indent = " " * index if position.game.view.leans else ""
        line: Line = [(indent + notation.rows[index].rjust(margin), LABEL)]
        for column, cell in enumerate(row):
            line += [(" ", LABEL), (cell.rjust(width), LAST if (index, column) == last else _kind(cell))]
        yield line


def _kind(cell: str) -> str:
    if cell == view.EMPTY:
        return EMPTY
    return SECOND if cell == view.SECOND or cell.islower() else FIRST


def _last_cell(position: Position, width: int) -> tuple[int, int] | None:
    """Where the last stone was put, in games where an action is a cell."""
    if not position.plies or not position.game.view.marks_last:
        return None
    row, column = divmod(position.plies[-1].action, width)
    return (row, column) if 0 <= row < len(position.squares) else None
