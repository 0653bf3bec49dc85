"""The boards of Hex, chess, 2048 and arcade games, and the table of all looks.

A new kind of board is a record here: `PLAIN` with what is special. Its name stands in `games.view.PAGES`, and the
colours of its classes in web/board.css.
"""

from collections.abc import Iterator
from itertools import groupby

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing, Ends
from muzero_jax.apps.play.overlay import NOTHING, Overlay
from muzero_jax.apps.play.points_board import POINTS_BOARD
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import ROW, UNIT, Point
from muzero_jax.apps.play.stones_board import CONNECT_FOUR, GO, OTHELLO, PLAIN, TIC_TAC_TOE, grid, stones
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import CHESS, FADING, LIT, PIXELS, TILES

# --- Hex --------------------------------------------------------------------------------------------------------------


def _hexes(board: BoardDrawing) -> str:
    """The cells, on the edges that each side must join, with the sides' names; the first player's are above and below.

    A game of one's own with shifted rows need not have such edges.
    """
    if not (board.view.has_edges or board.view.page):
        return grid(board)
    right, bottom = board.width - 1, board.height - 1
    first, second = board.view.inks
    one, other = board.view.colours
    left_cells, right_cells = ([(row, column) for row in range(board.height)] for column in (0, right))
    top_cells, low_cells = ([(row, column) for column in range(board.width)] for row in (0, bottom))
    parts = []
    for kind in ("rim", ""):
        for ink, cells, corners in (
            (second, left_cells, (5, 4, 3)),
            (second, right_cells, (0, 1, 2)),
            (first, top_cells, (5, 0, 1)),
            (first, low_cells, (4, 3, 2)),
        ):
            points = [shapes.hexagon(board.centre(cell))[corner] for cell in cells for corner in corners]
            parts.append(shapes.path(f"goal {kind or ink}", shapes.outline(points, "")))
    size = min(0.42, 0.16 + 0.024 * board.width)
    middle = (bottom / 4, bottom / 2 * ROW)
    for name, at, side in (
        (one, (board.width - 0.35, -0.92), "start"),
        (one, (bottom / 2 + right / 2, bottom * ROW + 0.98), ""),
        (other, (middle[0] - 1.3, middle[1]), "end"),
        (other, (board.width - 0.2 + (board.height // 2) / 2, middle[1]), "start"),
    ):
        parts.append(shapes.text(name, at, f"edge-name {side}", size))
    return "".join(parts) + grid(board)


HEX = PLAIN._replace(
    kind="hex",
    place=lambda cell: (cell[1] + cell[0] / 2, cell[0] * ROW),
    shape=shapes.hexagon,
    ground=_hexes,
    margins=(1.6, 1.2, 1.1, 1.2),
    column_labels=(-0.5, -0.92),
    row_labels=(-1.02, 0),
    marks={"last": 0.2},
)
"""Each row lies half a cell to the right of the one above."""


# --- chess ------------------------------------------------------------------------------------------------------------

PATHS = {
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
"""SVG paths of the pieces in a box of 45 x 45, drawn for this project."""
NAMES = {"p": "pawn", "r": "rook", "n": "knight", "b": "bishop", "q": "queen", "k": "king"}


def _chequered(board: BoardDrawing) -> str:
    """Light squares, and the dark ones on them."""
    odd = [board.outline(cell) for cell in board.every if sum(board.drawn(cell)) % 2]
    return grid(board) + shapes.path("odd", "".join(odd))


def _chess_piece(board: BoardDrawing, at: Point, text: str) -> str:
    """A piece; capital letters are white's."""
    if text not in board.look.pieces:
        return stones(board, at, text)
    place = f"translate({shapes.length(at[0] - 0.46)} {shapes.length(at[1] - 0.48)}) scale({0.0206 * UNIT:g})"
    return shapes.path(f"piece {'white' if text.isupper() else 'black'}", PATHS[text.lower()], transform=place)


def _squares_of(board: BoardDrawing, action: int) -> Ends | None:
    """The two squares in a move's text; None if it is not written by two squares."""
    text = board.write(action)
    columns = board.notation.columns
    rows = board.notation.rows
    if not (text[0] in columns and text[1:2] in rows and text[2:3] in columns):
        return None
    return (rows.index(text[1]), columns.index(text[0])), (rows.index(text[3]), columns.index(text[2]))


CHESS_BOARD = PLAIN._replace(
    kind=CHESS,
    ground=_chequered,
    piece=_chess_piece,
    ends=_squares_of,
    is_turned=True,
    marks={},
    pieces={p.upper(): f"white {name}" for p, name in NAMES.items()}
    | {p: f"black {name}" for p, name in NAMES.items()},
)


# --- single-player games ----------------------------------------------------------------------------------------------

HIGHEST = 16
"""Levels (powers of two) with a colour each; higher ones share the last colour."""


def _tray(board: BoardDrawing) -> str:
    tray = shapes.box(-0.55, -0.55, board.width + 0.1, board.height + 0.1, "tray", 0.12)
    return tray + grid(board, 0.04)


def _tile(board: BoardDrawing, at: Point, text: str) -> str:
    """A tile; the larger its number, the stronger its colour."""
    power = int(text).bit_length() - 1 if text.isdecimal() else 0
    level = min(power, HIGHEST) if text == str(2**power) else 0
    tile = shapes.box(at[0] - 0.46, at[1] - 0.46, 0.92, 0.92, f"tile t{level}", 0.08)
    return tile + shapes.text(text, at, f"tile-number t{level}", min(0.42, 1.15 / len(text)))


def _screen(board: BoardDrawing) -> str:
    left, top, right, bottom = board.bounds
    return shapes.box(left, top, right - left, bottom - top, "screen", 1.0)


def _pixels(board: BoardDrawing) -> str:
    """The lit pixels, and those that were lit shortly before; neighbours in a row are drawn as one bar."""
    classes = {LIT: "lit", FADING: "fading"}
    return "".join(shapes.path(class_, "".join(_bars(board, sign))) for sign, class_ in classes.items())


def _bars(board: BoardDrawing, sign: str) -> Iterator[str]:
    for row, signs in enumerate(board.squares):
        column = 0
        for found, group in groupby(signs):
            length = len(list(group))
            if found == sign:
                left, top, wide = (shapes.length(cells) for cells in (column - 0.5, row - 0.5, length))
                yield f"M{left} {top}h{wide}v{UNIT}h-{wide}z"
            column += length


TILES_BOARD = PLAIN._replace(
    kind=TILES,
    ground=_tray,
    piece=_tile,
    arrows={"left": (-1, 0), "up": (0, -1), "right": (1, 0), "down": (0, 1)},
)
SCREEN = PLAIN._replace(
    kind=PIXELS, ground=_screen, above=_pixels, cells=lambda board: iter(()), margins=(2, 2, 2, 2), cell_size=8
)


# --- all --------------------------------------------------------------------------------------------------------------

OF_STONES = GO, OTHELLO, TIC_TAC_TOE, CONNECT_FOUR
LOOKS = {look.kind: look for look in (*OF_STONES, HEX, CHESS_BOARD, TILES_BOARD, POINTS_BOARD, SCREEN)}
"""By `View.page`."""


def board_of(
    position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None
) -> BoardDrawing:
    """The board that the game's view names; arguments as in `BoardDrawing`."""
    view = position.game.view
    look = LOOKS.get(view.page or "", HEX if view.leans else PLAIN)
    return BoardDrawing(look, position, notation, overlay, seat)
