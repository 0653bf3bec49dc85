"""Pictures of positions that no board of cells shows: tiles with numbers, a board of points with its dice, plain text.

A dot is a stroke of no length with round ends, and a tile a thick stroke, so that a film of a whole game stays small.
"""

from collections.abc import Callable, Iterator
from html import escape

from muzero_jax.apps.play import drawing
from muzero_jax.apps.play.framing import DARK, INKS, Scene, centred
from muzero_jax.apps.play.position import Position
from muzero_jax.games import view
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import EMPTY, Checkers

TILE, GAP = 56, 6
TILE_COLOURS = (
    "#efe6d5 #ecd9b0 #f2bd7c #ef9f62 #ec7f56 #dd5a3f #f0d675 #e9c94e #e1bd33 #d3a81a #b5860b #4f9667 #2a7f61 #2b77a6 "
    "#4a4fb0 #33334d"
).split()
"""The tiles 2, 4, 8 and so on; larger ones share the last colour, as in the browser."""
STEP, POINT, BOARD_HEIGHT, RADIUS = 30.0, 122.0, 320.0, 12.5
EDGE = 8.0
HALVES = (EDGE, EDGE + 7 * STEP)
BAR, HOME, BOARD_WIDTH = EDGE + 6.5 * STEP, EDGE + 13.6 * STEP, EDGE + 14.4 * STEP
WOOD, FIELD, POINTS = "#a07c52", "#ecdcba", ("#b08a62", "#c9b187")
MOST_DRAWN = 5
SPOTS = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
LINE_HEIGHT, LETTER = 20, 8.6


def tiles(position: Position, notation: Notation) -> Scene:
    """A grid of tiles."""
    del notation
    rows, size = position.squares, TILE + GAP
    width, height = GAP + size * len(rows[0]), GAP + size * len(rows)
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#cdc1b0"/>'
    cells = [(text, GAP + c * size, GAP + r * size) for r, row in enumerate(rows) for c, text in enumerate(row)]
    blank = "".join(f"M{x} {y + TILE // 2}h{TILE}" for _, x, y in cells)
    ground += f'<path d="{blank}" stroke="#dcd3c5" stroke-width="{TILE}"/>'
    full = [cell for cell in cells if cell[0] != EMPTY]
    strokes = "".join(f'<path d="M{x} {y + TILE // 2}h{TILE}" stroke="{_colour(text)}"/>' for text, x, y in full)
    numbers = "".join(_number(*cell) for cell in full)
    texts = f'<g font-weight="700" text-anchor="middle" fill="{DARK}">{numbers}</g>'
    return Scene(ground, f'<g stroke-width="{TILE}">{strokes}</g>{texts}', float(width), float(height))


def _colour(text: str) -> str:
    power = int(text).bit_length() - 1 if text.isdecimal() else 1
    return TILE_COLOURS[min(max(power, 1), len(TILE_COLOURS)) - 1]


def _number(text: str, x: int, y: int) -> str:
    size = min(24, 80 // len(text))
    ink = ' fill="#fff"' if _colour(text) in TILE_COLOURS[3:6] + TILE_COLOURS[10:] else ""
    return f'<text x="{x + TILE // 2}" y="{y + TILE // 2 + size // 3}" font-size="{size}"{ink}>{escape(text)}</text>'


def points(position: Position, notation: Notation) -> Scene:
    """A board of points, from the first player's side."""
    del notation
    look = position.game.view
    assert look.checkers is not None
    board = look.checkers(position.state)
    first, second = (INKS[ink] for ink in look.inks)
    stones = [*_stones(board, first, 1), *_stones(board, second, -1)]
    dice = [] if position.is_over else _dice(board, (first, second)[position.colour_to_move], position.colour_to_move)
    return Scene(_board(), "".join([*stones, *dice]), BOARD_WIDTH, BOARD_HEIGHT + 40)


def _board() -> str:
    """The wood, the points and their numbers."""
    whole = f'<rect width="{BOARD_WIDTH:g}" height="{BOARD_HEIGHT + 40:g}" rx="8" fill="{WOOD}"/>'
    fields = "".join(
        f'<rect x="{left:g}" y="20" width="{6 * STEP:g}" height="{BOARD_HEIGHT:g}" fill="{FIELD}"/>' for left in HALVES
    )
    shapes = ["", ""]
    for point in range(1, 25):
        x, edge, up = _column(point), *((20 + BOARD_HEIGHT, -1) if point <= 12 else (20.0, 1))
        shapes[point % 2] += f"M{x - STEP / 2:g} {edge:g}l{STEP / 2:g} {up * POINT:g} {STEP / 2:g} {-up * POINT:g}z"
    triangles = "".join(f'<path d="{d}" fill="{ink}"/>' for d, ink in zip(shapes, POINTS, strict=True))
    labels = "".join(
        centred(str(point), _column(point), BOARD_HEIGHT + 30 if point <= 12 else 10.0, "#fff")
        for point in range(1, 25)
    )
    return whole + fields + triangles + labels


def _column(point: int) -> float:
    """Where a point stands, from the left."""
    index = 12 - point if point <= 12 else point - 13
    return HALVES[index >= 6] + (index % 6 + 0.5) * STEP


def _stones(board: Checkers, ink: str, sign: int) -> Iterator[str]:
    """The checkers of one side: dots, and the number of a stack that is too high."""
    side = 0 if sign == 1 else 1
    stacks = [(_column(n), n <= 12, max(0, sign * count)) for n, count in enumerate(board.points, start=1)]
    stacks += [(BAR, side == 0, board.bar[side]), (HOME, side == 0, board.off[side])]
    dots, numbers = "", ""
    for x, is_below, count in stacks:
        edge, up = (20 + BOARD_HEIGHT, -1) if is_below else (20, 1)
        heights = [edge + up * (RADIUS + 2 * RADIUS * depth) for depth in range(min(count, MOST_DRAWN))]
        dots += "".join(f"M{x:g} {y:g}h0" for y in heights)
        numbers += centred(str(count), x, heights[-1], "#fff") if count > MOST_DRAWN else ""
    if dots:
        for width, colour in ((2 * RADIUS, "#2b2010"), (2 * RADIUS - 2.5, ink)):
            yield f'<path d="{dots}" stroke="{colour}" stroke-width="{width:g}" stroke-linecap="round"/>'
    yield numbers


def _dice(board: Checkers, ink: str, side: int) -> Iterator[str]:
    """The mover's dice, the first player's on the right; one that was played is pale."""
    middle, y = HALVES[1 - side] + 3 * STEP, 20 + BOARD_HEIGHT / 2
    for index, (die, is_left) in enumerate(board.dice):
        x = middle + 30 * (index - (len(board.dice) - 1) / 2)
        dots = "".join(f"M{x + 7 * (at % 3 - 1):g} {y + 7 * (at // 3 - 1):g}h0" for at in SPOTS[die - 1])
        yield (
            f'<g opacity="{1 if is_left else 0.3}"><path d="M{x - 12:g} {y:g}h24" stroke="{ink}" stroke-width="24"/>'
            f'<path d="{dots}" stroke="#fff" stroke-width="5" stroke-linecap="round"/></g>'
        )


def text(position: Position, notation: Notation) -> Scene:
    """The position as the terminal prints it."""
    lines = drawing.plain(drawing.draw(position, notation)).splitlines()
    parts = "".join(
        f'<text x="0" y="{LINE_HEIGHT * (row + 0.8):g}" xml:space="preserve">{escape(line)}</text>'
        for row, line in enumerate(lines)
    )
    above = f'<g font-family="ui-monospace, monospace" font-size="14" fill="{DARK}">{parts}</g>'
    return Scene("", above, LETTER * max(map(len, lines), default=1), float(LINE_HEIGHT * len(lines)))


OF_PAGE: dict[str | None, Callable[[Position, Notation], Scene]] = {view.TILES: tiles, view.POINTS: points}
