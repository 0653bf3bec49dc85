"""A search tree as a picture: one self-contained SVG for a file, a notebook or a browser, light or dark.

The root is on the left and moves go to the right, with a box for every move. Depth and width are limited, because a
tree of 64 simulations already exceeds a page; each box says how many of its moves were left out. The searched position
is drawn next to the root, with the search policy over its cells.
"""

from html import escape
from typing import NamedTuple

from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.play import board_picture, tree_view
from muzero_jax.apps.play.board_picture import BoardPicture
from muzero_jax.apps.play.drawing import counted, signed
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import Length, element, path
from muzero_jax.apps.play.tree_view import Branch
from muzero_jax.games.notation import Notation

BOX_WIDTH = 160
BOX_HEIGHT = 40
COLUMN_GAP = 54
ROW_GAP = 10
MARGIN = 16
HEADER = 88
NARROWEST = 720
DEPTH, WIDTH = 4, 4
"""The depth and the moves of a node that are drawn by default."""

STYLE = """
svg.search-tree { --ground: #ffffff; --box: #f3f4f6; --ink: #1f2933; --faint: #616e7c; --edge: #9aa5b1;
  --best: #b45309; --up: #15803d; --down: #b91c1c; font-family: system-ui, sans-serif; font-size: 12px; }
@media (prefers-color-scheme: dark) { svg.search-tree { --ground: #14181d; --box: #232a32; --ink: #e6e9ed;
  --faint: #9aa5b1; --edge: #52606d; --best: #f59e0b; --up: #4ade80; --down: #f87171; } }
.search-tree .paper { fill: var(--ground); }
.search-tree .edge { fill: none; stroke: var(--edge); }
.search-tree .box { fill: var(--box); stroke: var(--edge); }
.search-tree .best { stroke: var(--best); }
.search-tree .box.best { stroke-width: 2; }
.search-tree .dreamt { stroke-dasharray: 4 3; }
.search-tree text { fill: var(--ink); }
.search-tree .move { font-weight: 700; font-size: 14px; }
.search-tree .far { text-anchor: end; }
.search-tree .faint { fill: var(--faint); }
.search-tree .up { fill: var(--up); }
.search-tree .down { fill: var(--down); }
"""
LEGEND = (
    "A box is a move: N visits, Q its value for the one who moves, P its prior, +n more moves not drawn.",
    "Orange: the move that it plays, on top, then the line that it expects. Dashed: imagined, not legal in the game.",
)


def picture(
    analysis: Analysis, position: Position, notation: Notation, *, depth: int = DEPTH, width: int = WIDTH
) -> BoardPicture:
    """The tree of an analysis of `position`: `depth` moves deep, `width` moves at each node.

    Raises ValueError if the agent's search keeps no tree.
    """
    if analysis.tree is None:
        raise ValueError("there is no tree to draw, because this agent's search keeps none")
    root = tree_view.branches(analysis, depth=depth, width=width)
    move = notation.write(position.state, analysis.action)
    simulations = counted(analysis.num_simulations, "simulation")
    title = f"{position.name}, move {len(position.plies) + 1}: plays {move} after {simulations}"
    board = board_picture.draw(position, notation, policy=analysis.policy)
    named = tree_view.named(root, position, notation)
    return draw(named, f"{title}, value {signed(analysis.value)} for the player to move", board)


def draw(root: Branch, title: str, board: BoardPicture | None = None) -> BoardPicture:
    """Draws a tree whose moves have names (`tree_view.named`), to the right of a board."""
    left = MARGIN + (board.width + MARGIN if board else 0.0)
    tree = _drawn(root, left, float(HEADER), root.visits)
    width = max(tree.right + MARGIN, NARROWEST)
    height = max(tree.bottom - ROW_GAP, HEADER + board.height if board else 0) + MARGIN
    lines = [("move", title, MARGIN + 12.0), ("faint", LEGEND[0], 48.0), ("faint", LEGEND[1], 65.0)]
    parts = [
        f"<style>{STYLE}{board_picture.light_style()}</style>",
        element("rect", "", "paper", width=width, height=height),
        *(_text(class_, text, MARGIN, y) for class_, text, y in lines),
        board.placed(MARGIN, HEADER) if board else "",
        *tree.parts,
    ]
    size = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    said = {"role": "img", "aria_label": title, "xmlns": "http://www.w3.org/2000/svg"}
    return BoardPicture(element("svg", "\n".join(parts), "search-tree", **said, **size) + "\n", width, height)


class _Drawn(NamedTuple):
    """The drawing of a branch and all below it."""

    parts: list[str]
    y: float  # of the middle of its box
    right: float
    bottom: float  # where the next row would begin


def _drawn(branch: Branch, left: float, top: float, visits: int) -> _Drawn:
    """Draws a branch: its box begins at `left`, its first row at `top`; edges with more visits are thicker."""
    below = []
    bottom = top
    end = left + BOX_WIDTH
    for child in branch.children:
        below.append(_drawn(child, end + COLUMN_GAP, bottom, visits))
        bottom = below[-1].bottom
    y = (below[0].y + below[-1].y) / 2 if below else top + BOX_HEIGHT / 2
    parts = []
    for child, drawn in zip(branch.children, below, strict=True):
        middle = end + COLUMN_GAP / 2
        start = end + COLUMN_GAP
        curve = f"M{end:g} {y:g} C{middle:g} {y:g} {middle:g} {drawn.y:g} {start:g} {drawn.y:g}"
        thickness = 1 + 5 * (child.visits / max(visits, 1)) ** 0.5
        parts.append(path(_classes("edge", child), curve, stroke_width=f"{thickness:.1f}"))
    parts += [part for drawn in below for part in drawn.parts] + _box(branch, left, y)
    right = max((drawn.right for drawn in below), default=end)
    return _Drawn(parts, y, right, max(bottom, top + BOX_HEIGHT + ROW_GAP))


def _classes(kind: str, branch: Branch) -> str:
    return kind + (" best" if branch.is_best else "") + ("" if branch.is_legal else " dreamt")


def _text(class_: str, content: str, x: Length, y: Length) -> str:
    return element("text", escape(content), class_, x=x, y=y)


def _box(branch: Branch, left: float, y: float) -> list[str]:
    is_root = branch.action == tree_view.NO_ACTION
    near = left + 10
    far = left + BOX_WIDTH - 10
    size = {"width": BOX_WIDTH, "height": BOX_HEIGHT, "rx": 6}
    parts = [
        element("rect", "", _classes("box", branch), x=left, y=y - BOX_HEIGHT / 2, **size),
        _text("move", "root" if is_root else branch.text, near, y - 3),
        _text("faint far", f"N {branch.visits}", far, y - 3),
    ]
    if not is_root:  # its value is in the title
        sign = "up" if branch.q > 0.005 else "down" if branch.q < -0.005 else "faint"
        value = element("tspan", f"Q {signed(branch.q)}", sign)
        numbers = value + element("tspan", f"P {branch.prior:.0%}", "faint", dx=8)
        parts.append(element("text", numbers, x=near, y=y + 14))
    return parts + ([_text("faint far", f"+{branch.hidden}", far, y + 14)] if branch.hidden else [])
