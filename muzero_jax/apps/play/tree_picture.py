"""A search tree as a picture: one SVG that needs nothing else, in a file, a notebook or a browser, light or dark.

The root stands on the left and moves go to the right, a box for every move. Depth and width are limited because a tree
of 64 simulations is already more than a page; what was left out is counted in the node's box. The position that was
searched is drawn beside its root, with the shares that came of it.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from muzero_jax.apps.play import board_picture, tree_view
from muzero_jax.apps.play.board_picture import BoardPicture
from muzero_jax.apps.play.drawing import signed
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Analysis, Thinker
from muzero_jax.apps.play.tree_view import Branch
from muzero_jax.games.notation import Notation
from muzero_jax.own.files import write_whole

BOX_WIDTH, BOX_HEIGHT, COLUMN_GAP, ROW_GAP = 160, 40, 54, 10
MARGIN, HEADER = 16, 72
DEPTH, WIDTH = 4, 4
"""How much of a tree is drawn by default."""

STYLE = """
svg.search-tree { --ground: #ffffff; --box: #f3f4f6; --ink: #1f2933; --faint: #616e7c; --edge: #9aa5b1;
  --best: #b45309; --good: #15803d; --bad: #b91c1c; font-family: system-ui, sans-serif; font-size: 12px; }
@media (prefers-color-scheme: dark) { svg.search-tree { --ground: #14181d; --box: #232a32; --ink: #e6e9ed;
  --faint: #9aa5b1; --edge: #52606d; --best: #f59e0b; --good: #4ade80; --bad: #f87171; } }
.search-tree .ground { fill: var(--ground); }
.search-tree .edge { fill: none; stroke: var(--edge); }
.search-tree .box { fill: var(--box); stroke: var(--edge); }
.search-tree .best { stroke: var(--best); }
.search-tree .box.best { stroke-width: 2; }
.search-tree .dreamt { stroke-dasharray: 4 3; }
.search-tree text { fill: var(--ink); }
.search-tree .move { font-weight: 700; font-size: 14px; }
.search-tree .faint { fill: var(--faint); }
.search-tree .up { fill: var(--good); }
.search-tree .down { fill: var(--bad); }
"""
LEGEND = (
    "A box is a move: N visits, Q its value for the one who moves, P its prior, +n more moves not drawn.",
    "Orange: the move that it plays, on top, then the line that it expects. Dashed: imagined, not legal in the game.",
)


class TreePicture(NamedTuple):
    """A drawing; a notebook shows it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path) -> None:
        """Writes a standalone SVG."""
        write_whole(path, self.svg)


class _Box(NamedTuple):
    branch: Branch
    x: float
    y: float  # of the box's middle
    children: tuple["_Box", ...]


def picture(
    thinker: Thinker,
    position: Position,
    notation: Notation,
    *,
    depth: int = DEPTH,
    width: int = WIDTH,
    num_simulations: int | None = None,
) -> TreePicture:
    """Searches for the side to move and draws the tree: `depth` moves deep, `width` moves a node.

    Raises ValueError if the game is over, a limit is not positive, or the agent's search keeps no tree.
    """
    analysis = thinker.analyse(position, num_simulations=num_simulations)
    return of_analysis(analysis, position, notation, depth=depth, width=width)


def of_analysis(
    analysis: Analysis, position: Position, notation: Notation, *, depth: int = DEPTH, width: int = WIDTH
) -> TreePicture:
    """The tree of an analysis of `position`; errors as `picture`."""
    if analysis.tree is None:
        raise ValueError("there is no tree to draw, because this agent's search keeps none")
    root = tree_view.branches(analysis.tree, analysis.action, depth=depth, width=width, most=analysis.most_value)
    simulations = "1 simulation" if analysis.num_simulations == 1 else f"{analysis.num_simulations} simulations"
    move = notation.write(position.state, analysis.action)
    title = f"{position.name}, move {len(position.plies) + 1}: plays {move} after {simulations}"
    named = tree_view.named(root, position, notation)
    board = board_picture.draw(position, notation, policy=analysis.policy)
    return draw(named, f"{title}, value {signed(analysis.value)} for the player to move", board)


def draw(root: Branch, title: str, board: BoardPicture | None = None) -> TreePicture:
    """Draws a tree whose moves have names, to the right of a board."""
    left = MARGIN + (board.width + MARGIN if board else 0)
    top, bottom = _arrange(root, left, float(HEADER + MARGIN))
    boxes = list(_every(top))
    width = max(max(box.x for box in boxes) + BOX_WIDTH + MARGIN, 720)
    height = max(bottom - ROW_GAP, HEADER + MARGIN + board.height if board else 0) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="search-tree" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
        f"<style>{STYLE}{board_picture.light_style()}</style>",
        f'<rect class="ground" width="{width:g}" height="{height:g}"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 12}" class="move">{escape(title)}</text>',
        *(f'<text x="{MARGIN}" y="{y}" class="faint">{text}</text>' for y, text in zip((48, 65), LEGEND, strict=True)),
        board.placed(MARGIN, HEADER + MARGIN) if board else "",
        *(_edge(box, child, root.visits) for box in boxes for child in box.children),
        *(part for box in boxes for part in _box(box)),
        "</svg>\n",
    ]
    return TreePicture("\n".join(parts))


def _arrange(branch: Branch, left: float, top: float) -> tuple[_Box, float]:
    """The boxes of a branch, of which the first starts at `left` and `top`, and where the next row would."""
    children, bottom = [], top
    for child in branch.children:
        box, bottom = _arrange(child, left + BOX_WIDTH + COLUMN_GAP, bottom)
        children.append(box)
    bottom = max(bottom, top + BOX_HEIGHT + ROW_GAP)
    y = (children[0].y + children[-1].y) / 2 if children else top + BOX_HEIGHT / 2
    return _Box(branch, left, y, tuple(children)), bottom


def _every(box: _Box) -> Iterator[_Box]:
    yield box
    for child in box.children:
        yield from _every(child)


def _classes(kind: str, branch: Branch) -> str:
    return kind + (" best" if branch.is_best else "") + ("" if branch.is_legal else " dreamt")


def _edge(parent: _Box, child: _Box, visits: int) -> str:
    """A curve whose thickness is the square root of its share of the simulations."""
    start, end = parent.x + BOX_WIDTH, child.x
    middle = (start + end) / 2
    thickness = 1 + 5 * (child.branch.visits / max(visits, 1)) ** 0.5
    return (
        f'<path class="{_classes("edge", child.branch)}" stroke-width="{thickness:.1f}" '
        f'd="M{start:g} {parent.y:g} C{middle:g} {parent.y:g} {middle:g} {child.y:g} {end:g} {child.y:g}"/>'
    )


def _box(box: _Box) -> Iterator[str]:
    branch, x, y = box.branch, box.x, box.y
    is_root = branch.action == tree_view.NO_ACTION
    name = "root" if is_root else branch.text
    sign = "up" if branch.q > 0.005 else "down" if branch.q < -0.005 else "faint"
    yield (
        f'<rect class="{_classes("box", branch)}" x="{x:g}" y="{y - BOX_HEIGHT / 2:g}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
    )
    yield f'<text class="move" x="{x + 10:g}" y="{y - 3:g}">{escape(name)}</text>'
    yield f'<text class="faint" text-anchor="end" x="{x + BOX_WIDTH - 10:g}" y="{y - 3:g}">N {branch.visits}</text>'
    if not is_root:  # whose value the title says
        prior = f'<tspan class="faint" dx="8">P {branch.prior:.0%}</tspan>'
        numbers = f'<tspan class="{sign}">Q {signed(branch.q)}</tspan>{prior}'
        yield f'<text x="{x + 10:g}" y="{y + 14:g}">{numbers}</text>'
    if branch.hidden:
        yield f'<text class="faint" text-anchor="end" x="{x + BOX_WIDTH - 10:g}" y="{y + 14:g}">+{branch.hidden}</text>'
