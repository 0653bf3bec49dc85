"""The frame, the colours and the centred text that all pictures of boards share."""

from html import escape
from typing import NamedTuple

INKS = {"black": "#27313b", "white": "#ffffff", "red": "#d1495b", "yellow": "#edae49", "blue": "#2e6fab"}
"""The colours of `View.inks`."""
DARK = "#27313b"


class BoardPicture(NamedTuple):
    """A drawing; a notebook shows it."""

    svg: str
    width: float
    height: float
    ground: str = ""  # the part that is alike in all pictures of a game, in SVG; it lies below `above`
    above: str = ""

    def _repr_svg_(self) -> str:
        return self.svg


class Scene(NamedTuple):
    """A position as a game's own board shows it, in SVG."""

    ground: str
    above: str
    width: float
    height: float


def framed(body: str, width: float, height: float, ground: str = "") -> BoardPicture:
    """A picture of this size, on white, of what `body` draws in SVG over `ground`."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="system-ui, sans-serif" font-size="13">'
    )
    svg = f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{ground}{body}\n</svg>\n'
    return BoardPicture(svg, width, height, ground, body)


def centred(text: str, x: float, y: float, colour: str) -> str:
    """A text around a point."""
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'
