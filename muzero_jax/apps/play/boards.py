"""A board as SVG: the drawing in the web page, notebooks, films and pictures of trees.

`BoardDrawing` draws any position. What a kind of board has of its own is a record, `Look`: numbers and functions that
can be combined freely. `stones_board.PLAIN` is a grid of squares, and `looks.LOOKS` has the kinds by name.

A board has three layers. The ground does not change in a game, so that a film draws it once. Above it lie the stones,
the last move and the overlay. On top are the cells that a person clicks, with their names, contents and moves; only the
page needs them. Colours are classes (web/board.css).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from muzero_jax.apps.play import drawing, shapes
from muzero_jax.apps.play.overlay import NOTHING, Note, Overlay
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.games.layout import cells_first
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import EMPTY, Cell, Squares

STRONGEST_ARROWS = 4
LABELLED = 1.05
"""The least distance from the first cells to the border if rows and columns have labels."""
LINE = 0.7
"""The height of a line of text below the board."""
Ends = tuple[Cell, Cell]
"""The cells where a move of two clicks begins and ends."""
Bounds = tuple[Length, Length, Length, Length]
"""Left, top, right and bottom."""


class Look(NamedTuple):
    """A kind of board; lengths are in cells."""

    kind: str  # the CSS class of the whole drawing
    squares: Callable[[Position, int], Squares]  # (position, the side at the bottom) -> what each cell holds
    place: Callable[[Cell], Point]  # the middle of a cell
    shape: Callable[[Point, Length], list[Point]]  # (middle, inset) -> the corners of a cell, made smaller by the inset
    ground: Callable[["BoardDrawing"], str]  # the board without stones and labels
    piece: Callable[["BoardDrawing", Point, str], str]  # (board, middle, text of a cell) -> what the cell holds
    above: Callable[["BoardDrawing"], str]  # stones, marks and overlay
    cells: Callable[["BoardDrawing"], Iterator[str]]  # what a person can click
    name: Callable[["BoardDrawing", Cell], str]  # of a cell
    ends: Callable[["BoardDrawing", int], Ends | None] | None = None  # of an action; None: a move takes one click
    margins: Bounds = (0.6, 0.6, 0.6, 0.6)  # from the middles of the outermost cells
    column_labels: Point = (0, -0.8)  # from the middles of the first row
    row_labels: Point = (-0.8, 0)  # from the middles of the first column
    has_captions: bool = True  # whether lines of text stand below
    is_by_column: bool = False  # whether a click chooses a column, whose lowest free cell is meant
    is_turned: bool = False  # whether a person who plays the second side sees it at the bottom
    cell_size: int = 46  # pixels, in a picture that stands alone
    radius: Length = 0.36  # of a stone
    marks: Mapping[str, Length] = MappingProxyType({"last": 0.44})
    """radii of the marks that are circles, by class: `last` move, `won`, `note` and `choice`; others fill their cell"""
    pieces: Mapping[str, str] = MappingProxyType({})  # text that `piece` draws instead of writing it -> its name
    arrows: Mapping[str, Point] = MappingProxyType({})  # moves that the overlay shows by arrows from the middle


def action_cells(look: Look, shape: tuple[int, int], location: Int[np.ndarray, " A"]) -> Int[np.ndarray, " A"]:
    """The cell of the drawn board that each action touches; -1 for none or unknown.

    If a game has fewer actions than cells and only the default locations, its actions may mean anything, so they get
    -1, unless they are the columns of a board of columns.

    Args:
      location: of the game's layout (`Board.action_location`).
    """
    num_actions = len(location)
    is_fit = num_actions == shape[1] if look.is_by_column else num_actions >= shape[0] * shape[1]
    is_default = np.array_equal(location, cells_first(shape, num_actions))
    return np.asarray(location) if is_fit or not is_default else np.full(num_actions, -1)


class BoardDrawing:
    """A position on a board.

    Args:
      seat: the side that a person plays, drawn at the bottom; None: the first player is at the bottom.
    """

    def __init__(
        self, look: Look, position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None
    ):
        self.look = look
        self.position = position
        self.notation = notation
        self.overlay = overlay
        self.seat = seat
        self.viewer = seat or 0  # the side at the bottom
        self.view = position.game.view
        self.squares = look.squares(position, self.viewer)
        self.height = len(self.squares)
        self.width = len(self.squares[0])
        self.every = [(row, column) for row in range(self.height) for column in range(self.width)]
        self.captions = drawing.captions(position) if look.has_captions else []
        shape = (self.height, self.width)
        board = position.environment.board
        location = cells_first(shape, position.environment.num_actions)
        if board is not None and board.shape == shape:
            location = np.asarray(board.action_location)
        elif self.view.page is None:
            location = np.full_like(location, -1)
        self.location = action_cells(look, shape, location)

    # --- where things lie ---------------------------------------------------------------------------------------------

    @property
    def bounds(self) -> Bounds:
        """Left, top, right and bottom."""
        left, top, right, bottom = self.look.margins
        least = LABELLED if self.notation.columns else 0.0
        x, y = self.look.place((self.height - 1, self.width - 1))
        return -max(left, least), -max(top, least), x + right, y + bottom + LINE * len(self.captions)

    def drawn(self, cell: Cell) -> Cell:
        """The row and column in which a cell is drawn."""
        is_upside_down = self.look.is_turned and self.viewer == 1
        return (self.height - 1 - cell[0], self.width - 1 - cell[1]) if is_upside_down else cell

    def centre(self, cell: Cell) -> Point:
        """The middle of a cell."""
        return self.look.place(self.drawn(cell))

    def outline(self, cell: Cell, inset: Length = 0.0) -> str:
        """The path around a cell, made smaller by `inset` on each side."""
        return shapes.outline(self.look.shape(self.centre(cell), inset))

    def labels(self) -> Iterator[tuple[str, Point]]:
        """The names of columns and rows, and where they stand."""
        right, down = self.look.column_labels
        for column, text in enumerate(self.notation.columns):
            x, y = self.look.place((0, self.drawn((0, column))[1]))
            yield text, (x + right, y + down)
        right, down = self.look.row_labels
        for row, text in enumerate([] if self.look.is_by_column else self.notation.rows):
            x, y = self.look.place((self.drawn((row, 0))[0], 0))
            yield text, (x + right, y + down)

    # --- which moves belong where -------------------------------------------------------------------------------------

    def write(self, action: int) -> str:
        """A move as text."""
        return self.notation.write(self.position.state, action)

    def cell_of(self, action: int) -> Cell | None:
        """The cell that a move of one click touches."""
        if self.look.ends or self.location[action] < 0:
            return None
        row, column = divmod(int(self.location[action]), self.width)
        if not self.look.is_by_column:
            return row, column
        free = [r for r in range(self.height) if self.squares[r][column] == EMPTY]
        return (free[-1], column) if free else None

    def ends(self, action: int) -> Ends | None:
        """The cells where a move of two clicks begins and ends; None for other moves."""
        return self.look.ends(self, action) if self.look.ends else None

    def paths(self) -> dict[str, tuple[str, str]]:
        """The legal moves of two clicks: text -> names of their first and last cell."""
        found = {action: self.ends(action) for action in self.position.legal_actions()}
        name = partial(self.look.name, self)
        return {self.write(action): (name(ends[0]), name(ends[1])) for action, ends in found.items() if ends}

    @cached_property
    def clicked(self) -> dict[Cell, int]:
        """The action that one click plays, legal or not: the only one in that cell or column."""
        if self.look.ends:
            return {}
        num_places = self.width if self.look.is_by_column else self.height * self.width
        actions: dict[int, list[int]] = {}
        for action in np.flatnonzero(self.location >= 0).tolist():
            actions.setdefault(int(self.location[action]) % num_places, []).append(action)
        found = {cell: actions.get((cell[0] * self.width + cell[1]) % num_places, []) for cell in self.every}
        single = {cell: these[0] for cell, these in found.items() if len(these) == 1}
        # Without a known page, only moves that are written like the cell are surely meant by a click.
        return {cell: a for cell, a in single.items() if self.view.page or self.write(a) == self.look.name(self, cell)}

    @property
    def num_clicks(self) -> int:
        """How many clicks on the board play a move; 0 if only buttons and keys play moves."""
        return 2 if self.look.ends else 1 if self.clicked else 0

    def loose(self) -> list[int]:
        """The actions in the overlay that touch no cell of the board."""
        return [action for action in self.overlay.notes if self.cell_of(action) is None and not self.ends(action)]

    def last_cells(self) -> list[Cell]:
        """The cells of the last move."""
        action = self.position.last_action
        if action is None:
            return []
        if self.position.swapped:  # the mirrored stone, the only one on the board
            return [cell for cell in self.every if self.squares[cell[0]][cell[1]] != EMPTY]
        before = BoardDrawing(self.look, self.position.undo(), self.notation)
        cell = before.cell_of(action) if self.view.page or self.view.marks_last else None
        return list(before.ends(action) or ([cell] if cell else []))

    # --- layers -------------------------------------------------------------------------------------------------------

    def ground(self) -> str:
        """The board without its stones, and its labels."""
        size = min(0.42, 0.2 + 0.02 * self.width)  # relative to a cell, so larger on large boards
        return self.look.ground(self) + "".join(shapes.text(text, at, "label", size) for text, at in self.labels())

    def above(self) -> str:
        """What lies on the board, and the captions below it, as large as their length allows."""
        parts = [self.look.above(self)]
        left, _, right, bottom = self.bounds
        for row, line in enumerate(reversed(self.captions)):
            size = min(0.42, (right - left) / (0.56 * max(1, len(line))))
            parts.append(shapes.text(line, ((left + right) / 2, bottom - (row + 0.4) * LINE), "caption", size))
        return "".join(parts)

    def layer(self, content: str, **attributes: str | Length) -> str:
        """A layer, or several, as one SVG element."""
        left, top, right, bottom = self.bounds
        frame = " ".join(map(shapes.length, (left, top, right - left, bottom - top)))
        return shapes.element("svg", content, f"board {self.look.kind}", viewBox=frame, **attributes)

    def svg(self) -> str:
        """The drawing with its clickable cells as one SVG element that fills its place."""
        layers = self.ground() + self.above() + "".join(self.look.cells(self))
        label = f"Board, {self.height} rows of {self.width}"
        return self.layer(layers, role="group", aria_label=label, aria_describedby="keys")

    # --- for the functions of a look ----------------------------------------------------------------------------------

    def strongest(self) -> dict[int, tuple[Note, Ends]]:
        """The moves of two clicks that get an arrow: those with the largest numbers, and the agent's own."""
        notes = dict(self.overlay.notes)
        choice = self.overlay.choice
        if choice is not None:
            notes.setdefault(choice, Note("", 0.0, "share", -1.0))
        ends = {action: found for action in notes if (found := self.ends(action))}
        order = sorted(ends, key=lambda action: -notes[action].number)
        return {a: (notes[a], ends[a]) for i, a in enumerate(order) if i < STRONGEST_ARROWS or a == choice}

    def arrow(self, action: int, note: Note, start: Point, end: Point) -> str:
        """The arrow of a move; a larger number makes it thicker."""
        strength = {"share": note.strength, "good": (1 + note.strength) / 2, "bad": (1 - note.strength) / 2}
        return shapes.arrow(start, end, strength[note.kind], "of-choice" if action == self.overlay.choice else "")

    def cell(self, cell: Cell, label: str, move: str | None, tip: str | None) -> str:
        """One clickable cell; JavaScript finds it by its row and column as drawn, or by its name."""
        row, column = map(str, self.drawn(cell))
        acts = {"role": "button", "tabindex": "-1"} if self.num_clicks else {"role": "img"}
        data = {
            "data_row": row,
            "data_column": column,
            "data_cell": self.look.name(self, cell),
            "data_move": move,
            "data_tip": tip,
        }
        return shapes.path("cell", self.outline(cell), **data, **acts, aria_label=label)
