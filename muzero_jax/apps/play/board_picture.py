"""A board as a picture that stands alone: for a notebook, a README, a film and the picture of a search tree.

It is the drawing of the page (`boards`) under a title, with the colours of light pages inside, so that any program
that reads SVG shows it. Moves that belong to no cell, such as Hex's swap, are a line of text below the board.
"""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.play import overlay, shapes
from muzero_jax.apps.play.boards import Board, Tiles
from muzero_jax.apps.play.overlay import Overlay
from muzero_jax.apps.play.points_board import Points
from muzero_jax.apps.play.position import Position
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import POINTS, TILES

SCALE = 1.15
"""Pixels of a unit of `shapes`: a cell is 46 wide."""
MARGIN, HEADER, FOOTER, GAP, LETTER = 8, 28, 26, 24, 7.2
MOST_BESIDE = 5
"""Moves that are named below a board."""
STYLE_FILE = Path(__file__).parent / "web" / "board.css"


class BoardPicture(NamedTuple):
    """A drawing; a notebook shows it."""

    svg: str
    width: float
    height: float
    ground: str = ""  # the part that is alike in all pictures of a game, in SVG; it lies below `above`
    above: str = ""

    def _repr_svg_(self) -> str:
        return self.svg


def board_of(
    position: Position, notation: Notation, notes: Overlay = overlay.NOTHING, seat: int | None = None
) -> Board:
    """The board that the game's view names; arguments as `Board`."""
    kind = {TILES: Tiles, POINTS: Points}.get(position.game.view.page or "", Board)
    return kind(position, notation, notes, seat)


def draw(
    position: Position,
    notation: Notation,
    *,
    policy: Sequence[float] | np.ndarray | None = None,
    values: Sequence[float] | np.ndarray | None = None,
    title: str = "",
) -> BoardPicture:
    """The board, with a `policy` [A] or `values` [A] over its cells; a value that is not finite is left out."""
    notes = overlay.NOTHING
    if policy is not None or values is not None:
        notes = overlay.of_shares(policy) if policy is not None else overlay.of_values(values if values is not None else ())
    board = board_of(position, notation, notes)
    beside, (left, top, right, bottom) = _beside(board), board.bounds
    wide, high = (right - left) * SCALE, (bottom - top) * SCALE
    width = max(wide, LETTER * max(len(title), len(beside))) + 2 * MARGIN
    head = HEADER * bool(title) + MARGIN
    height = head + high + FOOTER * bool(beside) + MARGIN

    def placed(content: str) -> str:
        place = {"x": MARGIN, "y": head, "width": wide, "height": high}
        box = f"{left:g} {top:g} {right - left:g} {bottom - top:g}"
        return shapes.element("svg", content, class_=f"board {board.kind}", viewBox=box, **place)

    words = [(title, 18.0, 700), (beside, height - 12, 400)]
    lines = [_line(text, y, weight) for text, y, weight in words if text]
    return framed("\n".join([placed(board.above()), *lines]), width, height, placed(board.ground()))


def _line(text: str, y: float, weight: int) -> str:
    return shapes.element("text", escape(text), x=MARGIN, y=y, font_weight=weight, fill="#1f2430")


def _beside(board: Board) -> str:
    """The moves that have a number and no cell, those with the largest numbers; of moves that are alike the first."""
    notes, same, state = board.overlay.notes, board.position.game.same_as, board.position.state
    shown = sorted((a for a in board.loose() if a not in same), key=lambda action: -notes[action].number)
    best = sorted(shown[:MOST_BESIDE])
    return ", ".join(f"{board.notation.write(state, action)} {notes[action].text}" for action in best)


def side_by_side(*pictures: BoardPicture) -> BoardPicture:
    """Pictures in a row, as one."""
    left, parts = 0.0, []
    for picture in pictures:
        size = {"width": picture.width, "height": picture.height}
        parts.append(shapes.element("svg", picture.ground + picture.above, x=left, **size))
        left += picture.width + GAP
    return framed("\n".join(parts), left - GAP, max(picture.height for picture in pictures))


def framed(above: str, width: float, height: float, ground: str = "", style: str = "") -> BoardPicture:
    """A picture of this size, on white, of what `above` draws in SVG over `ground`."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="system-ui, sans-serif" font-size="13">'
    )
    paper = '<rect width="100%" height="100%" fill="white"/>'
    svg = f"{head}\n<style>{_light_style()}{style}</style>\n{paper}\n{ground}\n{above}\n</svg>\n"
    return BoardPicture(svg, width, height, ground, above)


def _light_style() -> str:
    """The style sheet with the light colours in place of their names, which not every reader of SVG knows."""
    colours, _, rules = STYLE_FILE.read_text(encoding="utf-8").partition("@media")
    named = dict(re.findall(r"(--[\w-]+): (#\w+)", colours))
    return re.sub(r"var\((--[\w-]+)\)", lambda found: named[found[1]], rules[rules.index(".board") :])
