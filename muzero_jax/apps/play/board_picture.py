"""A board as a picture: an SVG of stones, and of numbers over cells, for notebooks and pages.

What the terminal prints as text (`drawing`) is here a board of squares, or of hexagons where rows lean. A policy shades
each cell by its share, values shade it from red (lost, for the player to move) to blue (won). Actions that belong to no
cell, such as Hex's swap, are a line of text below the board. Games that have no such board are drawn by `scenes`.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.play import scenes
from muzero_jax.apps.play.clicks import known_location
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.framing import INKS, BoardPicture, framed
from muzero_jax.apps.play.framing import centred as _text
from muzero_jax.apps.play.position import Position
from muzero_jax.games import view
from muzero_jax.games.notation import Notation

CELL, MARGIN, HEADER, FOOTER, GAP, LETTER = 46, 30, 28, 24, 24, 7.2
MOST_BESIDE = 5
"""Moves that are named below a board."""
SHADE, WON, LOST, EMPTY, LINE = (240, 140, 40), (46, 111, 171), (200, 60, 60), "#f6f1e7", "#b9ad98"
NOT_SHOWN = 0.005
"""Smaller shares get no number."""


class Note(NamedTuple):
    """The notes on an action."""

    text: str
    fill: str | None = None  # the colour behind it; None: the board's own
    number: float = 0.0


def draw(
    position: Position,
    notation: Notation,
    *,
    policy: Sequence[float] | np.ndarray | None = None,
    values: Sequence[float] | np.ndarray | None = None,
    title: str = "",
) -> BoardPicture:
    """The board, with a `policy` [A] or `values` [A] over its cells; a value that is not finite is left out."""
    notes = _shares(policy) if policy is not None else _values(values) if values is not None else {}
    board, page = position.environment.board, position.game.view.page
    if board is None or page in scenes.OF_PAGE:
        scene = scenes.OF_PAGE.get(page, scenes.text)(position, notation)
        return _framed_scene(scene, title, _beside(position, notation, notes, list(notes)))
    page, drawn = position.game.view.page, np.asarray(board.action_location)
    location = known_location(page, board.shape, drawn)
    on_board = {int(location[action]): note for action, note in notes.items() if location[action] >= 0}
    beside = _beside(position, notation, notes, [action for action in notes if location[action] < 0])
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
        f'<text x="{MARGIN / 2:g}" y="{height - 10:g}" fill="#27313b">{escape(beside)}</text>',
    ]
    return framed("\n".join(parts), width, height)


def _beside(position: Position, notation: Notation, notes: dict[int, Note], actions: list[int]) -> str:
    """The moves that have a number and no cell, those with the largest numbers; of moves that are alike the first."""
    same = position.game.same_as
    shown = [action for action in actions if notes[action].text and action not in same]
    best = sorted(sorted(shown, key=lambda action: -notes[action].number)[:MOST_BESIDE])
    return ", ".join(f"{notation.write(position.state, action)} {notes[action].text}" for action in best)


def _framed_scene(scene: scenes.Scene, title: str, beside: str) -> BoardPicture:
    """A scene under its title and over the numbers of moves; there is always room for both, as a film needs."""
    width = max(scene.width, LETTER * max(len(title), len(beside))) + MARGIN
    height = HEADER + scene.height + FOOTER + MARGIN / 2
    moved = f'<g transform="translate({MARGIN / 2:g} {HEADER})">'
    above = (
        f'<text x="{MARGIN / 2:g}" y="18" font-weight="700" fill="#27313b">{escape(title)}</text>'
        f'{moved}{scene.above}</g><text x="{MARGIN / 2:g}" y="{height - 14:g}" fill="#27313b">{escape(beside)}</text>'
    )
    return framed(above, width, height, f"{moved}{scene.ground}</g>")


def side_by_side(*pictures: BoardPicture) -> BoardPicture:
    """Pictures in a row, as one."""
    left, parts = 0.0, []
    for picture in pictures:
        parts.append(f'<svg x="{left:g}" width="{picture.width:g}" height="{picture.height:g}">{picture.svg}</svg>')
        left += picture.width + GAP
    return framed("\n".join(parts), left - GAP, max(picture.height for picture in pictures))


def _shares(policy: Sequence[float] | np.ndarray) -> dict[int, Note]:
    most = max(float(np.max(policy)), 1e-9)
    return {
        action: Note(
            f"{100 * share:.0f}%" if share >= NOT_SHOWN else "", _mixed(SHADE, 0.9 * float(share) / most), float(share)
        )
        for action, share in enumerate(policy)
    }


def _values(values: Sequence[float] | np.ndarray) -> dict[int, Note]:
    return {
        action: Note(signed(value), _mixed(WON if value > 0 else LOST, min(1.0, abs(float(value)))), float(value))
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
