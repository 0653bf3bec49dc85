"""A board as a picture: an SVG of stones, and of numbers over cells, for notebooks and pages.

What the terminal prints as text (`drawing`) is here a board of squares, or of hexagons where rows lean. A policy shades
each cell by its share, values shade it from red (lost, for the player to move) to blue (won). Actions that belong to no
cell, such as Hex's swap, are a line of text below the board.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from muzero_jax.games import view
from muzero_jax.games.clicks import known_location
from muzero_jax.games.notation import Notation
from muzero_jax.play.position import Position

CELL, MARGIN, HEADER, FOOTER, GAP, LETTER = 46, 30, 28, 24, 24, 7.2
INKS = {"black": "#27313b", "white": "#ffffff", "red": "#d1495b", "yellow": "#edae49", "blue": "#2e6fab"}
"""The colours of `View.inks`."""
SHADE, WON, LOST, EMPTY, LINE = (240, 140, 40), (46, 111, 171), (200, 60, 60), "#f6f1e7", "#b9ad98"
NOT_SHOWN = 0.005
"""Smaller shares get no number."""


class BoardPicture(NamedTuple):
    """A drawing; a notebook shows it."""

    svg: str
    width: float
    height: float

    def _repr_svg_(self) -> str:
        return self.svg


class Note(NamedTuple):
    """The notes on an action."""

    text: str
    fill: str | None = None  # the colour behind it; None: the board's own


def draw(
    position: Position,
    notation: Notation,
    *,
    policy: Sequence[float] | np.ndarray | None = None,
    values: Sequence[float] | np.ndarray | None = None,
    title: str = "",
) -> BoardPicture:
    """The board, with a `policy` [A] or `values` [A] over its cells; a value that is not finite is left out.

    Raises ValueError for a game without a board of cells.
    """
    board = position.environment.board
    if board is None:
        raise ValueError(f"{position.name} has no board to draw; print its text instead (play.drawing)")
    notes = _shares(policy) if policy is not None else _values(values) if values is not None else {}
    page, drawn = position.game.view.page, np.asarray(board.action_location)
    location = known_location(page, board.shape, drawn)
    on_board = {int(location[action]): note for action, note in notes.items() if location[action] >= 0}
    beside = [f"{notation.write(position.state, a)} {n.text}" for a, n in notes.items() if location[a] < 0 and n.text]
    leans = position.game.view.leans
    rows, columns = len(position.squares), len(position.squares[0])
    width = 2 * MARGIN + max(CELL * (columns + (rows - 1) / 2 * leans), LETTER * len(title) - MARGIN)
    height = HEADER * bool(title) + 2 * MARGIN + CELL * rows * (0.87 if leans else 1.0) + FOOTER * bool(beside)
    parts = [
        f'<text x="{MARGIN / 2:g}" y="18" font-weight="700" fill="#27313b">{escape(title)}</text>' if title else "",
        f'<g transform="translate({MARGIN} {MARGIN + HEADER * bool(title)})">',
        *(_edges(position, rows, columns) if position.game.view.has_edges else ()),
        *_labels(notation, leans),
        *_cells(position, on_board),
        "</g>",
        f'<text x="{MARGIN / 2:g}" y="{height - 10:g}" fill="#27313b">{escape(", ".join(beside))}</text>',
    ]
    return framed("\n".join(parts), width, height)


def side_by_side(*pictures: BoardPicture) -> BoardPicture:
    """Pictures in a row, as one."""
    left, parts = 0.0, []
    for picture in pictures:
        parts.append(f'<svg x="{left:g}" width="{picture.width:g}" height="{picture.height:g}">{picture.svg}</svg>')
        left += picture.width + GAP
    return framed("\n".join(parts), left - GAP, max(picture.height for picture in pictures))


def framed(body: str, width: float, height: float) -> BoardPicture:
    """A picture of this size, on white, of what `body` draws in SVG."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="system-ui, sans-serif" font-size="13">'
    )
    return BoardPicture(f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n', width, height)


def _shares(policy: Sequence[float] | np.ndarray) -> dict[int, Note]:
    most = max(float(np.max(policy)), 1e-9)
    return {
        action: Note(f"{100 * share:.0f}%" if share >= NOT_SHOWN else "", _mixed(SHADE, 0.9 * float(share) / most))
        for action, share in enumerate(policy)
    }


def _values(values: Sequence[float] | np.ndarray) -> dict[int, Note]:
    return {
        action: Note(f"{value:+.2f}", _mixed(WON if value > 0 else LOST, min(1.0, abs(float(value)))))
        for action, value in enumerate(values)
        if np.isfinite(value)
    }


def _mixed(colour: tuple[int, int, int], share: float) -> str:
    """`share` of a colour, the rest white."""
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in colour)


def _centre(row: int, column: int, leans: bool) -> tuple[float, float]:
    return (column + 0.5 + row / 2 * leans) * CELL, (row + 0.5) * CELL * (0.87 if leans else 1.0)


def _outline(x: float, y: float, leans: bool) -> str:
    """The points of a cell: a hexagon with its tip up, or a square."""
    half = CELL / 2
    corners = [(-half, -half), (half, -half), (half, half), (-half, half)]
    if leans:
        tall, low = half * 1.16, half * 0.58
        corners = [(0, -tall), (half, -low), (half, low), (0, tall), (-half, low), (-half, -low)]
    return " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)


def _cells(position: Position, notes: dict[int, Note]) -> Iterator[str]:
    look, columns = position.game.view, len(position.squares[0])
    last = position.plies[-1].action if position.plies and look.marks_last else None
    won = set(position.winning_cells)
    for row, line in enumerate(position.squares):
        for column, cell in enumerate(line):
            x, y = _centre(row, column, look.leans)
            note = notes.get(row * columns + column, Note(""))
            fill = note.fill or EMPTY
            yield f'<polygon points="{_outline(x, y, look.leans)}" fill="{fill}" stroke="{LINE}"/>'
            is_marked = row * columns + column == last or (row, column) in won
            is_piece = cell not in (view.EMPTY, view.FIRST, view.SECOND)  # a letter, which makes room for the note
            shift = CELL / 5 if is_piece and note.text else 0.0
            yield from _content(cell, x, y - shift, look.inks, is_marked)
            if note.text:
                yield _text(note.text, x, y + shift, "#27313b" if cell == view.EMPTY or is_piece else "#d1495b")


def _content(cell: str, x: float, y: float, inks: tuple[str, str], is_marked: bool) -> Iterator[str]:
    """A stone, or a piece's letter; a cell that won, or that was played last, has a ring."""
    if cell in (view.FIRST, view.SECOND):
        ring = 'stroke="#f08c28" stroke-width="4"' if is_marked else 'stroke="#27313b"'
        ink = INKS[inks[cell == view.SECOND]]
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{0.36 * CELL:.1f}" fill="{ink}" {ring}/>'
    elif cell != view.EMPTY:
        yield _text(cell, x, y, "#27313b")


def _text(text: str, x: float, y: float, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


def _labels(notation: Notation, leans: bool) -> Iterator[str]:
    for column, name in enumerate(notation.columns):
        x, y = _centre(0, column, leans)
        yield _text(name, x, y - CELL * 0.86, "#616e7c")
    for row, name in enumerate(notation.rows):
        x, y = _centre(row, 0, leans)
        yield _text(name, x - CELL * 0.82, y, "#616e7c")


def _edges(position: Position, rows: int, columns: int) -> Iterator[str]:
    """Bars along the board: the first player's above and below, the other's at its sides."""
    leans, first, second = position.game.view.leans, *(INKS[ink] for ink in position.game.view.inks)
    corners = {
        (r, c): _centre(r * (rows - 1), c * (columns - 1), leans) for r in (0, 1) for c in (0, 1)
    }  # the middles of the corner cells
    bars = [((0, 0), (0, 1), first, 0, -1), ((1, 0), (1, 1), first, 0, 1)]
    bars += [((0, 0), (1, 0), second, -1, 0), ((0, 1), (1, 1), second, 1, 0)]
    for start, end, ink, right, down in bars:
        (x1, y1), (x2, y2) = corners[start], corners[end]
        dx, dy = right * CELL * 0.53, down * CELL * 0.53
        line = f'x1="{x1 + dx:.1f}" y1="{y1 + dy:.1f}" x2="{x2 + dx:.1f}" y2="{y2 + dy:.1f}"'
        yield f'<line {line} stroke="{LINE}" stroke-width="9" stroke-linecap="round"/>'
        yield f'<line {line} stroke="{ink}" stroke-width="7" stroke-linecap="round"/>'
