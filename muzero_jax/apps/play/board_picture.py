"""A board as a self-contained picture: for a notebook, a README, a film and the picture of a search tree.

It is the drawing of the web page (`boards`) under a title, with the style sheet's light colours inside, so that any
program that reads SVG shows it. Moves without a cell, such as Hex's swap, are a line of text below the board.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.play import overlay, shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.looks import board_of
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import Length
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import Cell

MARGIN, HEADER, FOOTER, GAP, LETTER = 8, 28, 26, 24, 7.2
"""Pixels."""
MOST_BESIDE = 5
"""The most moves without a cell that are named below a board."""
STYLE_FILE = Path(__file__).parent / "web" / "board.css"


class BoardPicture(NamedTuple):
    """A drawing, which a notebook shows."""

    svg: str
    width: Length
    height: Length
    ground: str = ""  # SVG of the part that all pictures of a game share; it lies below `above`
    above: str = ""

    def _repr_svg_(self) -> str:
        return self.svg

    def placed(self, x: Length, y: Length) -> str:
        """The drawing on white, as a part of another SVG."""
        paper = '<rect width="100%" height="100%" fill="white"/>'
        size = {"x": x, "y": y, "width": self.width, "height": self.height}
        return shapes.element("svg", paper + self.ground + self.above, "", **size)


def draw(
    position: Position,
    notation: Notation,
    *,
    policy: Sequence[float] | np.ndarray | None = None,
    values: Sequence[float] | np.ndarray | None = None,
    title: str = "",
) -> BoardPicture:
    """The board, with a `policy` [A] or `values` [A] over its cells; values that are not finite are left out."""
    notes = overlay.of_values(values) if values is not None else overlay.NOTHING
    board = board_of(position, notation, notes if policy is None else overlay.of_shares(policy))
    beside = _beside(board)
    left, top, right, bottom = board.bounds
    wide, high = (right - left) * board.look.cell_size, (bottom - top) * board.look.cell_size
    width = max(wide, LETTER * max(len(title), len(beside))) + 2 * MARGIN
    head = HEADER * bool(title) + MARGIN
    height = head + high + FOOTER * bool(beside) + MARGIN
    place = {"x": MARGIN, "y": head, "width": wide, "height": high}
    words = [(title, 18.0, "title"), (beside, height - 12, "")]
    lines = [shapes.element("text", escape(text), class_, x=MARGIN, y=y) for text, y, class_ in words if text]
    above = board.layer(board.above(), **place)
    return framed("\n".join([above, *lines]), width, height, board.layer(board.ground(), **place))


def place_of(board: BoardDrawing, cell: Cell) -> dict[str, Length]:
    """Where a cell lies in the picture of a board without a title, in pixels."""
    x, y = board.centre(cell)
    left, top, _, _ = board.bounds
    size = board.look.cell_size
    return {
        "left": MARGIN + (x - 0.5 - left) * size,
        "top": MARGIN + (y - 0.5 - top) * size,
        "width": size,
        "height": size,
    }


def _beside(board: BoardDrawing) -> str:
    """The line of text for moves without a cell: those with the largest numbers, each group of equal moves once."""
    notes = board.overlay.notes
    same = board.position.game.same_as
    shown = sorted((a for a in board.loose() if a not in same), key=lambda action: -notes[action].number)
    return ", ".join(f"{board.write(action)} {notes[action].text}" for action in sorted(shown[:MOST_BESIDE]))


def side_by_side(*pictures: BoardPicture) -> BoardPicture:
    """Pictures next to each other, as one."""
    left = 0.0
    parts = []
    for picture in pictures:
        parts.append(picture.placed(left, 0))
        left += picture.width + GAP
    return framed("\n".join(parts), left - GAP, max(picture.height for picture in pictures))


def framed(above: str, width: Length, height: Length, ground: str = "", style: str = "") -> BoardPicture:
    """A picture on white of the SVG `above`, drawn over `ground`."""
    paper = '<rect width="100%" height="100%" fill="white"/>'
    content = f"\n<style>{light_style()}{style}</style>\n{paper}\n{ground}\n{above}\n"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="system-ui, sans-serif" font-size="13">'
    )
    svg = f"{head}{content}</svg>\n"
    return BoardPicture(svg, width, height, ground, above)


def light_style() -> str:
    """The style sheet with light colours instead of CSS variables, which not every SVG reader supports."""
    colours, _, rest = STYLE_FILE.read_text(encoding="utf-8").partition("@media")
    named = dict(re.findall(r"(--[\w-]+): (#\w+)", colours))
    return re.sub(r"var\((--[\w-]+)\)", lambda found: named[found[1]], rest[rest.index(".board") :])
