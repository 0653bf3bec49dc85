"""Shapes in SVG, from which boards are drawn: a cell is `UNIT` wide, and a colour is a class, as web/board.css has it."""

from html import escape
from math import cos, hypot, pi, sin, sqrt

UNIT = 40
ROW = sqrt(3) / 2
"""The distance of two rows of hexagons, in cells."""

Point = tuple[float, float]

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


def element(name: str, content: str = "", **attributes: str | float | None) -> str:
    """One element; `class_` and `font_size` are written class and font-size, and None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{value(given)}"' for key, given in attributes.items() if given is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def value(given: str | float) -> str:
    """An attribute's value: numbers to two places, text without what would end it."""
    return escape(given) if isinstance(given, str) else f"{round(given, 2) + 0.0:g}"


def text(content: str, at: Point, class_: str, size: float | None = None) -> str:
    """A text around a point."""
    return element("text", escape(content), class_=class_, x=at[0], y=at[1], dy=".35em", font_size=size)


def circle(at: Point, radius: float, class_: str, opacity: float | None = None) -> str:
    """A disc or a ring."""
    return element("circle", class_=class_, cx=at[0], cy=at[1], r=radius, fill_opacity=opacity)


def outline(points: list[Point]) -> str:
    """The path around a polygon."""
    return "M" + "L".join(f"{value(x)} {value(y)}" for x, y in points) + "z"


def square(at: Point, half: float) -> list[Point]:
    """The corners of a square."""
    x, y = at
    return [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]


def hexagon(at: Point, scale: float = 1.0) -> list[Point]:
    """The corners of a cell of Hex from the top one clockwise; it stands on a corner and is one cell wide."""
    radius = scale * UNIT / sqrt(3)
    angles = [pi / 3 * index - pi / 2 for index in range(6)]
    return [(at[0] + radius * cos(angle), at[1] + radius * sin(angle)) for angle in angles]


def chess_piece(letter: str, at: Point) -> str:
    """A piece; white's have capital letters."""
    place = f"translate({value(at[0] - 0.46 * UNIT)} {value(at[1] - 0.48 * UNIT)}) scale({value(0.0206 * UNIT)})"
    kind = "white" if letter.isupper() else "black"
    return element("path", class_=f"piece {kind}", d=CHESS_PIECES[letter.lower()], transform=place)


def arrow(start: Point, end: Point, strength: float, class_: str = "") -> str:
    """An arrow, the stronger the thicker; `of-choice` stands out."""
    (x, y), (u, v) = start, end
    length = hypot(u - x, v - y) or 1.0
    a, b = (u - x) / length, (v - y) / length
    width = (0.05 + 0.13 * strength) * UNIT
    head = 0.16 * UNIT + width
    s, t = u - a * (head + 4), v - b * (head + 4)
    tip = [(s + a * head, t + b * head), (s - b * head * 0.6, t + a * head * 0.6), (s + b * head * 0.6, t - a * head * 0.6)]
    opacity = 0.9 if class_ else 0.35 + 0.55 * strength
    line = f"M{value(x)} {value(y)}L{value(s)} {value(t)}"
    shaft = element("path", class_=f"arrow {class_}".strip(), d=line, stroke_width=width, opacity=opacity)
    return shaft + element("path", class_=f"arrow-head {class_}".strip(), d=outline(tip), opacity=opacity)
