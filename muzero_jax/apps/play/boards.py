"""A board as SVG: the drawing in the web page, notebooks, films and pictures of trees.

A board has three layers. The ground does not change in a game, so that a film draws it once. Above it lie the stones,
the last move and the overlay. On top are the cells that a person clicks, with their names, contents and moves; only the
page needs them. Colours are classes (web/board.css).
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.drawing import captions
from muzero_jax.apps.play.overlay import NOTHING, Note, Overlay
from muzero_jax.apps.play.position import RESIGN, Position
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.games.layout import cells_first
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import CHESS, COLUMNS, EMPTY, FIRST, POINTS, SECOND, Cell

STRONGEST_ARROWS = 4
Ends = tuple[Cell, Cell]
"""The cells where a move of two clicks begins and ends."""


def action_cells(page: str | None, shape: tuple[int, int], location: Int[np.ndarray, " A"]) -> Int[np.ndarray, " A"]:
    """The cell of the drawn board (row * width + column) that each action touches; -1 for none or unknown.

    If a game has fewer actions than cells and only the default locations, its actions may mean anything, so they get
    -1, unless they are the columns of a board of columns.

    Args:
      location: of the game's layout (`Board.action_location`).
    """
    num_actions = len(location)
    is_fit = num_actions == shape[1] if page == COLUMNS else num_actions >= shape[0] * shape[1]
    is_default = np.array_equal(location, cells_first(shape, num_actions))
    return np.asarray(location) if is_fit or not is_default else np.full(num_actions, -1)


class Look(NamedTuple):
    """How a kind of board draws its cells."""

    radius: float = 0.36  # of a stone
    last: float = 0.44  # radius of the mark of the last move
    has_discs: bool = False  # whether marks are discs instead of filling the cell


LOOKS = {"go": Look(0.46, 0.2, True), "othello": Look(0.41, 0.2, True), COLUMNS: Look(0.42, 0.2, True)}
LOOKS |= {"hex": Look(0.36, 0.2)}


class BoardDrawing:
    """A position on a board of squares.

    Args:
      seat: the side that a person plays, drawn at the bottom; None: the first player is at the bottom.
    """

    cell_size = 46
    """Pixels of a cell in a picture that stands alone."""

    def __init__(self, position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None):
        self.position = position
        self.notation = notation
        self.overlay = overlay
        self.view = position.game.view
        self.squares = position.squares
        self.page = self.view.page
        self.height = len(self.squares)
        self.width = len(self.squares[0])
        self.seat = seat
        self.look = LOOKS.get(self.kind, Look())
        shape = (self.height, self.width)
        board = position.environment.board
        location = cells_first(shape, position.environment.num_actions)
        if board is not None and board.shape == shape:
            location = np.asarray(board.action_location)
        elif self.page is None:
            location = np.full_like(location, -1)
        self.location = action_cells(self.page, shape, location)

    @property
    def kind(self) -> str:
        """The CSS class of the whole drawing."""
        return self.page or "plain"

    # --- where things lie ---------------------------------------------------------------------------------------------

    @property
    def bounds(self) -> tuple[Length, Length, Length, Length]:
        """Left, top, right and bottom."""
        near = -1.05 if self.notation.columns else -0.6
        return near, near, self.width - 0.4, self.height - 0.4 + 0.7 * len(self.captions)

    @property
    def captions(self) -> list[str]:
        """Lines of text below the board: what both sides hold, and the view's caption."""
        return captions(self.position)

    @cached_property
    def every(self) -> list[Cell]:
        """All cells."""
        return [(row, column) for row in range(self.height) for column in range(self.width)]

    def drawn(self, cell: Cell) -> Cell:
        """The row and column in which a cell is drawn."""
        return cell

    def centre(self, cell: Cell) -> Point:
        """The middle of a cell."""
        row, column = self.drawn(cell)
        return column, row

    def outline(self, cell: Cell, inset: Length = 0.0) -> str:
        """The path around a cell, made smaller by `inset` on each side."""
        return shapes.outline(shapes.square(self.centre(cell), inset))

    def name(self, cell: Cell) -> str:
        """The name of a cell by the board's labels, else by row and column numbers."""
        columns, rows = self.notation.columns, self.notation.rows
        return columns[cell[1]] + rows[cell[0]] if columns and rows else f"row {cell[0] + 1}, column {cell[1] + 1}"

    # --- which moves belong where -------------------------------------------------------------------------------------

    def write(self, action: int) -> str:
        """A move as text."""
        return self.notation.write(self.position.state, action)

    def cell_of(self, action: int) -> Cell | None:
        """The cell that a move touches; on a board of columns, the lowest free cell of the column."""
        if self.location[action] < 0:
            return None
        row, column = divmod(int(self.location[action]), self.width)
        if self.page != COLUMNS:
            return row, column
        free = [r for r in range(self.height) if self.squares[r][column] == EMPTY]
        return (free[-1], column) if free else None

    def ends(self, action: int) -> Ends | None:
        """The cells where a move of two clicks begins and ends; None for other moves."""
        return None

    def paths(self) -> dict[str, tuple[str, str]]:
        """The legal moves of two clicks: text -> names of their first and last cell."""
        found = {action: self.ends(action) for action in self.position.legal_actions()}
        return {self.write(action): (self.name(ends[0]), self.name(ends[1])) for action, ends in found.items() if ends}

    @cached_property
    def clicked(self) -> dict[Cell, int]:
        """The action that one click plays, legal or not: the only one in that cell or column."""
        if self.page in (CHESS, POINTS):
            return {}
        num_places = self.width if self.page == COLUMNS else self.height * self.width
        actions: dict[int, list[int]] = {}
        for action in np.flatnonzero(self.location >= 0).tolist():
            actions.setdefault(int(self.location[action]) % num_places, []).append(action)
        found = {cell: actions.get((cell[0] * self.width + cell[1]) % num_places, []) for cell in self.every}
        single = {cell: these[0] for cell, these in found.items() if len(these) == 1}
        # Without a known page, only moves that are written like the cell are surely meant by a click.
        return {cell: a for cell, a in single.items() if self.page or self.write(a) == self.name(cell)}

    @property
    def num_clicks(self) -> int:
        """How many clicks on the board play a move; 0 if only buttons and keys play moves."""
        return 2 if self.page in (CHESS, POINTS) else 1 if self.clicked else 0

    def loose(self) -> list[int]:
        """The actions in the overlay that touch no cell of the board."""
        return [action for action in self.overlay.notes if self.cell_of(action) is None and not self.ends(action)]

    # --- what is drawn ------------------------------------------------------------------------------------------------

    def ground(self) -> str:
        """The board without its stones, and its labels."""
        size = min(0.42, 0.2 + 0.02 * self.width)  # relative to a cell, so larger on large boards
        places = [(text, self.above_column(column)) for column, text in enumerate(self.notation.columns)]
        rows = self.notation.rows if self.page != COLUMNS else []
        places += [(text, self.before_row(row)) for row, text in enumerate(rows)]
        labels = [shapes.text(text, at, "label", size) for text, at in places]
        return "".join([*self.grounds(), *labels])

    def above_column(self, column: int) -> Point:
        """Where the label of a column stands."""
        return self.centre((0, column))[0], -0.8

    def before_row(self, row: int) -> Point:
        """Where the label of a row stands."""
        return -0.8, self.centre((row, 0))[1]

    def grounds(self) -> list[str]:
        """The cells; or the rack of Connect Four with its holes; or the lines of a Go board."""
        if self.page == COLUMNS:
            rack = shapes.box(-0.5, -0.5, self.width, self.height, "ground", 0.1)
            return [rack, *(self.circle("hole", cell, 0.42) for cell in self.every)]
        return self._lines() if self.page == "go" else [shapes.path("ground", "".join(map(self.outline, self.every)))]

    def _lines(self) -> list[str]:
        """The lines and star points of a Go board."""
        last = self.width - 1
        near = 3 if last > 12 else 2
        stars = [near, last / 2, last - near] if last > 12 else [near, last - near]
        points = [(x, y) for x in stars for y in stars] + [(last / 2, last / 2)]
        lines = "".join(
            shapes.outline([(0, i), (last, i)], "") + shapes.outline([(i, 0), (i, last)], "") for i in range(last + 1)
        )
        wood = shapes.box(-0.55, -0.55, last + 1.1, last + 1.1, "wood", 0.1)
        return [wood, shapes.path("grid", lines), *(shapes.circle(at, 0.08, "star") for at in points)]

    def above(self) -> str:
        """Stones, marks of the last move and of the win, and the overlay."""
        notes, arrows, choice = self.noted()
        won = self.position.winning_cells
        patches = [self.patch("won", cell) for cell in won]
        under = [] if self.look.has_discs else patches
        under += [self.patch(f"note {note.kind}", cell, 0.12 + 0.75 * note.strength) for cell, note in notes.items()]
        over = (patches if self.look.has_discs else []) + [self.last(cell) for cell in self.last_cells()]
        over += [self.patch("choice", choice)] if choice else []
        pieces = []
        for cell in self.every:
            x, y = self.centre(cell)
            text = self.squares[cell[0]][cell[1]]
            note = notes.get(cell)
            raised = 0.2 if note and self.is_letter(text) else 0.0  # so that both can be read
            pieces += [self.piece((x, y - raised), text)] if text != EMPTY else []
            over += [shapes.text(note.text, (x, y + raised), "number", 0.24)] if note else []
        return "".join([*under, *pieces, *over, *arrows, *self.captioned()])

    def captioned(self) -> Iterator[str]:
        """The captions below the board, as large as their length allows."""
        left, _, right, bottom = self.bounds
        for row, line in enumerate(reversed(self.captions)):
            size = min(0.42, (right - left) / (0.56 * max(1, len(line))))
            yield shapes.text(line, ((left + right) / 2, bottom - (row + 0.4) * 0.7), "caption", size)

    def noted(self) -> tuple[dict[Cell, Note], list[str], Cell | None]:
        """(the overlay's notes by cell, its arrows, the cell of the agent's move)."""
        placed = {self.cell_of(action): note for action, note in self.overlay.notes.items()}
        notes = {cell: note for cell, note in placed.items() if cell is not None}
        return notes, [], None if self.overlay.choice is None else self.cell_of(self.overlay.choice)

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

    def last_cells(self) -> list[Cell]:
        """The cells of the last move."""
        if not self.position.plies or self.position.plies[-1].action == RESIGN:
            return []
        if self.position.swapped:  # the mirrored stone, the only one on the board
            return [cell for cell in self.every if self.squares[cell[0]][cell[1]] != EMPTY]
        action = self.position.plies[-1].action
        before = type(self)(self.position.undo(), self.notation)
        cell = before.cell_of(action) if self.page or self.view.marks_last else None
        return list(before.ends(action) or ([cell] if cell else []))

    def last(self, cell: Cell) -> str:
        """The mark of the last move."""
        return self.circle("last", cell, self.look.last)

    def patch(self, class_: str, cell: Cell, opacity: float | None = None) -> str:
        """A mark that fills a cell or is a disc in it; winning cells are filled to their edges."""
        if self.look.has_discs:
            return self.circle(class_, cell, 0.42, opacity)
        return shapes.path(class_, self.outline(cell, 0.0 if class_ == "won" else 0.06), fill_opacity=opacity)

    def circle(self, class_: str, cell: Cell, radius: float, opacity: float | None = None) -> str:
        """A circle in the middle of a cell."""
        return shapes.circle(self.centre(cell), radius, class_, opacity)

    def is_letter(self, text: str) -> bool:
        """Whether a cell holds letters, not stones and not nothing."""
        return text != EMPTY and not set(text) <= {FIRST, SECOND}

    def piece(self, at: Point, text: str) -> str:
        """The drawing of a cell's content."""
        if self.is_letter(text):
            return shapes.text(text, at, "letter", min(0.5, 1.15 / len(text)))
        if self.page == "tic_tac_toe" and self.view.colours == (FIRST, SECOND):
            return self.mark(at, text)
        radius = self.look.radius if len(text) == 1 else min(0.3, 0.46 / len(text))
        middle = (len(text) - 1) / 2
        stones = [((at[0] + 2 * radius * (i - middle), at[1]), self.ink(c)) for i, c in enumerate(text)]
        return "".join(shapes.circle(place, radius, f"stone {ink}") for place, ink in stones)

    def mark(self, at: Point, text: str) -> str:
        """A cross or a nought."""
        class_, (left, top), (right, low) = f"mark {self.ink(text)}", *shapes.square(at, 0.25)[::2]
        if text == SECOND:
            return shapes.circle(at, 0.27, class_)
        bars = shapes.outline([(left, top), (right, low)], ""), shapes.outline([(left, low), (right, top)], "")
        return shapes.path(class_, "".join(bars))

    def ink(self, stone: str) -> str:
        """The colour of a side's stones."""
        return self.view.inks[stone == SECOND]

    # --- what is clicked and said -------------------------------------------------------------------------------------

    def cells(self) -> Iterator[str]:
        """The clickable cells, each with its place, name and content, and the move that a click on it plays."""
        notes, _, choice = self.noted()
        lasts = self.last_cells()
        won = self.position.winning_cells
        for cell in self.every:
            name = self.name(cell)
            note = notes[cell].text if cell in notes else ""
            said = {
                name: True,
                self.holds(self.squares[cell[0]][cell[1]]): True,
                "last move": cell in lasts,
                "part of the win": cell in won,
                f"agent: {note}": note,
                "the agent's move": cell == choice,
            }
            move = self.write(self.clicked[cell]) if cell in self.clicked else None
            label = ", ".join(words for words, is_so in said.items() if is_so)
            yield self.cell(cell, self.outline(cell), label, move, f"{move or name}: {note}" if note else None)

    def cell(self, cell: Cell, outline: str, label: str, move: str | None, tip: str | None) -> str:
        """One clickable cell; JavaScript finds it by its row and column as drawn, or by its name."""
        row, column = map(str, self.drawn(cell))
        acts = {"role": "button", "tabindex": "-1"} if self.num_clicks else {"role": "img"}
        data = {
            "data_row": row,
            "data_column": column,
            "data_cell": self.name(cell),
            "data_move": move,
            "data_tip": tip,
        }
        return shapes.path("cell", outline, **data, **acts, aria_label=label)

    def holds(self, text: str) -> str:
        """The content of a cell in words."""
        if self.is_letter(text):
            return text
        if text == EMPTY:
            return "empty"
        return " and ".join(self.view.colours[stone == SECOND] for stone in text)


def svg(board: BoardDrawing) -> str:
    """The drawing with its clickable cells as one SVG element that fills its place."""
    left, top, right, bottom = board.bounds
    parts = board.ground() + board.above() + "".join(board.cells())
    frame = " ".join(map(shapes.length, (left, top, right - left, bottom - top)))
    label = f"Board, {board.height} rows of {board.width}"
    acts = {"role": "group", "aria_label": label, "aria_describedby": "keys"}
    return shapes.element("svg", parts, f"board {board.kind}", viewBox=frame, **acts)
