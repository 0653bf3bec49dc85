"""Basic SVG shapes for boards. Lengths are in cells; colours are classes of web/board.css."""

from html import escape
from math import cos, hypot, pi, sin, sqrt

UNIT = 40
"""SVG units per cell."""
ROW = sqrt(3) / 2
"""The distance between two rows of hexagons, in cells."""

Length = int | float
Point = tuple[Length, Length]


def element(name: str, content: str = "", class_: str = "", **attributes: str | Length | None) -> str:
    """One SVG element; `font_size` is written font-size, and attributes that are None are left out."""
    given = {"class": class_ or None} | {key.replace("_", "-"): value for key, value in attributes.items()}
    written = "".join(f' {key}="{escape(_number(value))}"' for key, value in given.items() if value is not None)
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def _number(value: str | Length) -> str:
    return value if isinstance(value, str) else f"{round(value, 2) + 0.0:g}"


def length(cells: Length) -> str:
    """A length in SVG units, as text."""
    return _number(cells * UNIT)


def text(content: str, at: Point, class_: str, size: Length) -> str:
    """A text centred on a point."""
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
    """The corners of a square cell, made smaller by `inset` on each side."""
    half = 0.5 - inset
    return [(at[0] + x * half, at[1] + y * half) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def hexagon(at: Point, inset: Length = 0.0) -> list[Point]:
    """The corners of a cell of Hex from the top one clockwise; it stands on a corner and is one cell wide."""
    radius = (1 - inset) / sqrt(3)
    angles = [pi / 3 * index - pi / 2 for index in range(6)]
    return [(at[0] + radius * cos(angle), at[1] + radius * sin(angle)) for angle in angles]


def arrow(start: Point, end: Point, strength: Length, class_: str = "") -> str:
    """An arrow whose width grows with `strength`; one with a class is drawn opaque."""
    x, y = start
    u, v = end
    whole = hypot(u - x, v - y) or 1.0
    a, b = (u - x) / whole, (v - y) / whole
    width = 0.05 + 0.13 * strength
    head = 0.16 + width
    s = u - a * (head + 0.1)
    t = v - b * (head + 0.1)
    across = -0.6 * b * head
    along = 0.6 * a * head
    tip = [(s + a * head, t + b * head), (s + across, t + along), (s - across, t - along)]
    opacity = 0.9 if class_ else 0.35 + 0.55 * strength
    shaft = path(f"arrow {class_}".strip(), outline([start, (s, t)], ""), stroke_width=length(width), opacity=opacity)
    return shaft + path(f"arrow-head {class_}".strip(), outline(tip), opacity=opacity)
