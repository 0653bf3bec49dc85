"""Shapes in SVG, of which boards are made. Lengths are in cells; a colour is a class of web/board.css."""

from html import escape
from math import cos, hypot, pi, sin, sqrt

UNIT = 40
"""SVG's units in a cell."""
ROW = sqrt(3) / 2
"""The distance of two rows of hexagons."""

Length = int | float
Point = tuple[Length, Length]

CHESS_PIECES = {
    "p": "M22.5 9a6 6 0 0 1 4 10.4c3.6 2.2 4 6 3.4 9.6h-14.8c-.6-3.6-.2-7.4 3.4-9.6a6 6 0 0 1 4-10.4z"
    "M13 38c0-5 2-7 4-9h11c2 2 4 4 4 9z",
    "r": "M11 39v-4h2.5l2-16-3.5-2.5v-8h5v3.5h3v-3.5h5v3.5h3v-3.5h5v8l-3.5 2.5 2 16h2.5v4z",
    "n": "M15 39c-.5-8 7-12 6.5-18-2 3-6 3-8 5.5l-4-3.5 7.5-11 .5-5 4.5 3.5c10 .5 14.5 12 12.5 28.5zM19 15.5v.1",
    "b": "M22.5 5.5a2.5 2.5 0 0 1 1.7 4.3c4.5 3.7 7.3 8.2 7.3 12.2 0 3-1.5 5-3.5 6.5l1.5 5.5h-14l1.5-5.5c-2-1.5-3.5-3.5"
    "-3.5-6.5 0-4 2.8-8.5 7.3-12.2a2.5 2.5 0 0 1 1.7-4.3zM22.5 15.5v7M19 19h7"
    "M11 39c0-3.5 2-5 4.5-5h14c2.5 0 4.5 1.5 4.5 5z",
    "q": "M12 33 7 15l7.5 9 2.5-13.5 5.5 12.5 5.5-12.5 2.5 13.5 7.5-9-5 18zM11 39c0-3 1-4.5 3-6h17c2 1.5 3 3 3 6z",
    "k": "M21 3h3v3h3.5v3H24v4h-3V9h-3.5V6H21zM22.5 20c-3-9 4-9 0 0 4-8 16-6 15 2-.6 5-5 7-5.5 11h-19"
    "c-.5-4-4.9-6-5.5-11-1-8 11-10 15-2zM11.5 39c0-3 1-4.5 3-6h16c2 1.5 3 3 3 6z",
}
"""Silhouettes in a box of 45, drawn for this project."""


def element(name: str, content: str = "", class_: str = "", **attributes: str | Length | None) -> str:
    """One element; `font_size` is written font-size, and what is None or empty is left out."""
    given = {"class": class_ or None} | {key.replace("_", "-"): value for key, value in attributes.items()}
    written = "".join(f' {key}="{escape(_number(value))}"' for key, value in given.items() if value is not None)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _number(value: str | Length) -> str:
    return value if isinstance(value, str) else f"{round(value, 2) + 0.0:g}"


def length(cells: Length) -> str:
    """A length as it is written."""
    return _number(cells * UNIT)


def text(content: str, at: Point, class_: str, size: Length) -> str:
    """A text around a point."""
    x, y = map(length, at)
    return element("text", escape(content), class_, x=x, y=y, dy=".35em", font_size=length(size))


def circle(at: Point, radius: Length, class_: str, opacity: Length | None = None) -> str:
    """A circle."""
    x, y = map(length, at)
    return element("circle", "", class_, cx=x, cy=y, r=length(radius), fill_opacity=opacity)


def box(x: Length, y: Length, width: Length, height: Length, class_: str, rounding: Length = 0.0) -> str:
    """A rectangle by its upper left corner."""
    sides = {"x": x, "y": y, "width": width, "height": height, "rx": rounding}
    return element("rect", "", class_, **{side: length(cells) for side, cells in sides.items()})


def path(class_: str, d: str, **attributes: str | Length | None) -> str:
    """A path."""
    return element("path", "", class_, d=d, **attributes)


def outline(points: list[Point], end: str = "z") -> str:
    """The path around a polygon."""
    return "M" + "L".join(f"{length(x)} {length(y)}" for x, y in points) + end


def square(at: Point, inset: Length = 0.0) -> list[Point]:
    """The corners of a square cell, or of what lies `inset` within it."""
    half = 0.5 - inset
    return [(at[0] + x * half, at[1] + y * half) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def hexagon(at: Point, inset: Length = 0.0) -> list[Point]:
    """The corners of a cell of Hex from the top one clockwise; it stands on a corner and is one cell wide."""
    radius = (1 - inset) / sqrt(3)
    angles = [pi / 3 * index - pi / 2 for index in range(6)]
    return [(at[0] + radius * cos(angle), at[1] + radius * sin(angle)) for angle in angles]


def chess_piece(letter: str, at: Point) -> str:
    """A piece; white's have capital letters."""
    place = f"translate({length(at[0] - 0.46)} {length(at[1] - 0.48)}) scale({0.0206 * UNIT:g})"
    kind = "white" if letter.isupper() else "black"
    return path(f"piece {kind}", CHESS_PIECES[letter.lower()], transform=place)


def arrow(start: Point, end: Point, strength: Length, class_: str = "") -> str:
    """An arrow, the stronger the thicker; one with a class of its own stands out."""
    (x, y), (u, v) = start, end
    whole = hypot(u - x, v - y) or 1.0
    a, b = (u - x) / whole, (v - y) / whole
    width = 0.05 + 0.13 * strength
    head = 0.16 + width
    s, t = u - a * (head + 0.1), v - b * (head + 0.1)
    across, along = -0.6 * b * head, 0.6 * a * head
    tip = [(s + a * head, t + b * head), (s + across, t + along), (s - across, t - along)]
    opacity = 0.9 if class_ else 0.35 + 0.55 * strength
    shaft = path(f"arrow {class_}".strip(), outline([start, (s, t)], ""), stroke_width=length(width), opacity=opacity)
    return shaft + path(f"arrow-head {class_}".strip(), outline(tip), opacity=opacity)
