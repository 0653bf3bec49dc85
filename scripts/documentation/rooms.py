"""docs/pictures/rooms.svg, the packages of muzero_jax and who imports whom: python -m scripts.documentation.rooms

The imports are read from the sources. An arrow is left out where a longer way leads to the same package, so a package
may import whatever lies below it along arrows. A test wants the picture to be that of the sources.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/pictures/rooms.svg"
PLACES = {
    "commands": (1.5, 0),
    "run": (1.0, 1),
    "play": (2.0, 1),
    "evaluation": (1.5, 2),
    "agent": (1.5, 3),
    "building": (1.5, 4),
    "search": (0.0, 5),
    "games": (1.0, 5),
    "networks": (2.0, 5),
    "training": (3.0, 5),
    "learning": (3.5, 6),
    "storage": (1.5, 7),
    "arithmetic": (2.5, 7),
    "types": (1.25, 8),
}
"""the column and the row of each package."""
Knows = dict[str, set[str]]
"""The packages that each package imports."""


def read_imports(package: Path = ROOT / "muzero_jax") -> Knows:
    """Who imports whom; a package is a folder of muzero_jax, or a module beside the folders."""
    knows: Knows = {room: set() for room in PLACES}
    for path in package.rglob("*.py"):
        room = path.relative_to(package).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if room in knows and isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("muzero_jax."):
                imported = {f"{node.module}.{alias.name}".split(".")[1] for alias in node.names}
                knows[room] |= imported & set(knows) - {room}
    return knows


def arrows(knows: Knows) -> list[tuple[str, str]]:
    """The imports that no longer way implies."""

    def below(room: str) -> set[str]:
        return knows[room].union(*map(below, knows[room]))

    return sorted((room, to) for room in knows for to in knows[room] if not any(to in below(on) for on in knows[room]))


def draw(knows: Knows) -> str:
    """The picture as SVG: boxes of 110 by 34, in columns of 150 and rows of 66."""
    centres = {room: (75 + 150 * column, 37 + 66 * row) for room, (column, row) in PLACES.items()}
    width, height = (75 + max(x for x, _ in centres.values())), (37 + max(y for _, y in centres.values()))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif">',
        "<title>The packages of muzero_jax, and who imports whom</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#444"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" rx="10" fill="#fff"/>',
    ]
    for room, to in arrows(knows):
        (x, y), (to_x, to_y) = centres[room], centres[to]
        ends = f"M{x:g} {y + 17:g} L{to_x:g} {to_y - 19:g}"
        lines.append(f'<path d="{ends}" fill="none" stroke="#444" stroke-width="1.4" marker-end="url(#tip)"/>')
    for room, (x, y) in centres.items():
        corner = f'x="{x - 55:g}" y="{y - 17:g}"'
        lines.append(f'<rect {corner} width="110" height="34" rx="8" fill="#d7e6f5" stroke="#444"/>')
        lines.append(f'<text x="{x:g}" y="{y + 5:g}" font-size="15" text-anchor="middle">{room}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(read_imports()), encoding="utf-8")
