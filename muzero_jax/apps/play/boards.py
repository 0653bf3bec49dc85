"""A board as SVG, the one drawing that the page, a notebook, a film and the picture of a tree show.

A board has three layers. The ground is what no move changes, so that a film draws it once. Above it lie the stones,
the last move and what an overlay says. On top are the cells that a person clicks, which alone know their names, what
they hold and the move that they play: the page needs them and pictures do not. Colours are classes (web/board.css).
"""

from collections.abc import Iterator
from typing import NamedTuple

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.clicks import action_cells, clicked_actions
from muzero_jax.apps.play.drawing import captions
from muzero_jax.apps.play.overlay import NOTHING, Note, Overlay
from muzero_jax.apps.play.position import RESIGN, Position
from muzero_jax.apps.play.shapes import ROW, UNIT, Point, element
from muzero_jax.games import view
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import CHESS, COLUMNS, EMPTY, FIRST, SECOND, TILES, Cell

STRONGEST_ARROWS = 4
HIGHEST = 16
"""Tiles with a colour of their own; larger ones share the last."""
STEPS = {"left": (-1, 0), "up": (0, -1), "right": (1, 0), "down": (0, 1)}
NARROWEST = 6.0
"""A board on the page is at least so many cells wide, so that a small one is not blown up."""
PIECES = {"p": "pawn", "r": "rook", "n": "knight", "b": "bishop", "q": "queen", "k": "king"}

Ends = tuple[Cell, Cell]
"""Where a move of two clicks begins and ends."""


class Look(NamedTuple):
    """How a kind of board draws its cells; lengths are in cells."""

    radius: float = 0.36  # of a stone
    last: float = 0.44  # of the ring of the last move
    has_discs: bool = False  # whether notes and rings are discs, as stones are, or else fill the cell


LOOKS = {
    "go": Look(0.46, 0.2, True),
    "othello": Look(0.41, 0.2, True),
    COLUMNS: Look(0.42, 0.2, True),
    "hex": Look(0.36, 0.2),
    "tic_tac_toe": Look(0.36),
}


class Board:
    """A position on a board of cells: squares, or hexagons where rows lean.

    Args:
      seat: the side that a person plays, whose own side is below; None: the first player is below.
    """

    def __init__(self, position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None):
        self.position, self.notation, self.overlay = position, notation, overlay
        self.view, self.squares = position.game.view, position.squares
        self.page, self.height, self.width = self.view.page, len(self.squares), len(self.squares[0])
        self.is_hex = self.view.leans or self.page == "hex"
        self.is_turned = self.page == CHESS and seat == 1
        self.look = LOOKS.get(self.page or "", Look())
        self.location = action_cells(position)

    # --- where things lie ---------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The class of the whole drawing."""
        return "hex" if self.is_hex else self.page or "plain"

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        near = -1.05 if self.notation.columns else -0.6
        left, top, right, bottom = near, near, self.width - 0.4, self.height - 0.4
        if self.is_hex:
            left, top, bottom = -1.35, -1.2, (self.height - 1) * ROW + 1.2
            right = self.width + (self.height - 1) / 2 + 0.1
        bottom += 0.7 * len(self.captions)
        return left * UNIT, top * UNIT, right * UNIT, bottom * UNIT

    @property
    def captions(self) -> list[str]:
        """Lines below the board: what both hold, and what the game itself says, such as its dice."""
        return captions(self.position)

    def drawn(self, cell: Cell) -> Cell:
        """The row and column in which a cell is drawn."""
        return (self.height - 1 - cell[0], self.width - 1 - cell[1]) if self.is_turned else cell

    def centre(self, cell: Cell) -> Point:
        """The middle of a cell."""
        row, column = self.drawn(cell)
        return ((column + row / 2) * UNIT, row * ROW * UNIT) if self.is_hex else (column * UNIT, row * UNIT)

    def outline(self, cell: Cell, inset: float = 0.0) -> str:
        """The path around a cell, or around what lies `inset` cells within it."""
        at = self.centre(cell)
        return shapes.outline(shapes.hexagon(at, 1 - inset) if self.is_hex else shapes.square(at, (0.5 - inset) * UNIT))

    def every(self) -> list[Cell]:
        """All cells."""
        return [(row, column) for row in range(self.height) for column in range(self.width)]

    def name(self, cell: Cell) -> str:
        """A cell as the labels have it, else by its numbers."""
        columns, rows = self.notation.columns, self.notation.rows
        is_labelled = columns and rows
        return columns[cell[1]] + rows[cell[0]] if is_labelled else f"row {cell[0] + 1}, column {cell[1] + 1}"

    # --- which moves belong where -------------------------------------------------------------------------------------

    def cell_of(self, action: int) -> Cell | None:
        """The cell that a move touches; in a column the lowest free one, where the stone will lie."""
        if self.location[action] < 0:
            return None
        row, column = divmod(int(self.location[action]), self.width)
        if self.page != COLUMNS:
            return row, column
        free = [r for r in range(self.height) if self.squares[r][column] == EMPTY]
        return (free[-1], column) if free else None

    def ends(self, action: int) -> Ends | None:
        """Chess: the squares that a move leads from and to; None where it is not written so."""
        columns, rows = self.notation.columns, self.notation.rows
        text = self.notation.write(self.position.state, action)
        if self.page != CHESS or not (text[0:1] in columns and text[1:2] in rows and text[2:3] in columns):
            return None
        return (rows.index(text[1]), columns.index(text[0])), (rows.index(text[3]), columns.index(text[2]))

    def clicked(self) -> dict[Cell, int]:
        """The action that a click on a cell plays, legal or not."""
        actions = clicked_actions(self.page, (self.height, self.width), self.location)
        found = {cell: int(actions[cell]) for cell in self.every() if actions[cell] >= 0}
        if self.page is None:  # text that happens to lie in cells: only moves that are written as their cells
            state, write = self.position.state, self.notation.write
            return {cell: action for cell, action in found.items() if write(state, action) == self.name(cell)}
        return found

    def paths(self) -> dict[str, tuple[str, str]]:
        """The legal moves of two clicks, by the names of the cells that they lead from and to."""
        found = {action: self.ends(action) for action in self.position.legal_actions()}
        write = self.notation.write
        return {write(self.position.state, a): (self.name(e[0]), self.name(e[1])) for a, e in found.items() if e}

    def loose(self) -> list[int]:
        """The actions of the overlay that have no place on the board."""
        return [action for action in self.overlay.notes if self.cell_of(action) is None and not self.ends(action)]

    # --- what is drawn ------------------------------------------------------------------------------------------------

    def ground(self) -> str:
        """The board without its stones, and its labels."""
        parts = [*self._edges()] if self.view.has_edges or self.page == "hex" else []
        parts += self._lines() if self.page == "go" else self._grounds()
        size = min(0.42, 0.2 + 0.02 * self.width) * UNIT  # on a large board cells are small, and letters not
        for column, label in enumerate(self.notation.columns):
            x = self.centre((0, column))[0]
            at = (x - 0.5 * UNIT, -0.92 * UNIT) if self.is_hex else (x, -0.8 * UNIT)
            parts.append(shapes.text(label, at, "label", size))
        for row, label in enumerate(self.notation.rows if self.page != COLUMNS else ()):
            x = row / 2 - 1.02 if self.is_hex else -0.8
            parts.append(shapes.text(label, (x * UNIT, self.centre((row, 0))[1]), "label", size))
        return "".join(parts)

    def _grounds(self) -> list[str]:
        cells = [[cell for cell in self.every() if sum(self.drawn(cell)) % 2 == odd] for odd in (0, 1)]
        grounds = ("ground", "ground odd") if self.page == CHESS else ("ground", "ground")
        parts = [element("path", class_=c, d="".join(map(self.outline, these))) for c, these in zip(grounds, cells)]
        if self.page == COLUMNS:
            parts += [shapes.circle(self.centre(cell), 0.42 * UNIT, "hole") for cell in self.every()]
        return parts

    def _lines(self) -> list[str]:
        """The lines of a board of Go, and its star points."""
        last = self.width - 1
        near = 3 if last > 12 else 2
        lines = "".join(f"M0 {i * UNIT}h{last * UNIT}M{i * UNIT} 0v{last * UNIT}" for i in range(last + 1))
        stars = [near, last / 2, last - near] if last > 12 else [near, last - near]
        points = [(x * UNIT, y * UNIT) for x in stars for y in stars] + [(last / 2 * UNIT, last / 2 * UNIT)]
        side = (last + 1.1) * UNIT
        wood = element("rect", class_="wood", x=-0.55 * UNIT, y=-0.55 * UNIT, width=side, height=side, rx=4)
        return [wood, element("path", class_="grid", d=lines), *(shapes.circle(at, 3, "star") for at in points)]

    def _edges(self) -> Iterator[str]:
        """The edges that both sides join, the first player's above and below, and whose they are."""
        rows, columns = range(self.height), range(self.width)
        corners = lambda cells, ends: [shapes.hexagon(self.centre(cell))[i] for cell in cells for i in ends]  # noqa: E731
        right, bottom = self.width - 1, self.height - 1
        first, second = self.view.inks
        edges = [
            (second, corners([(r, 0) for r in rows], (5, 4, 3))),
            (second, corners([(r, right) for r in rows], (0, 1, 2))),
            (first, corners([(0, c) for c in columns], (5, 0, 1))),
            (first, corners([(bottom, c) for c in reversed(columns)], (2, 3, 4))),
        ]
        for kind in ("rim", ""):
            for ink, points in edges:
                yield element("path", class_=f"goal {kind or ink}", d=shapes.outline(points).removesuffix("z"))
        (one, other), middle = self.view.colours, bottom / 2
        size = min(0.42, 0.16 + 0.024 * self.width) * UNIT
        for name, x, y, anchor in (
            (one, self.width - 0.35, -0.92, "start"),
            (one, bottom / 2 + right / 2, bottom * ROW + 0.98, "middle"),
            (other, middle / 2 - 1.3, middle * ROW, "end"),
            (other, self.width - 0.2 + middle / 2, middle * ROW, "start"),
        ):
            yield shapes.text(name, (x * UNIT, y * UNIT), f"edge-name {anchor}", size)

    def above(self) -> str:
        """What a move changes, and what the overlay says."""
        notes, arrows, choice = self.noted()
        won, last = self.position.winning_cells, self.last_cells()
        parts = [self.ring("won", cell) for cell in won if not self.look.has_discs]
        parts += [self.shade(cell, note) for cell, note in notes.items()]
        pieces = [(cell, self.squares[cell[0]][cell[1]]) for cell in self.every()]
        parts += [self.piece(self.centre(cell), text) for cell, text in pieces if text != EMPTY]
        parts += [self.ring("won", cell) for cell in won if self.look.has_discs]
        parts += [self.last(cell) for cell in last]
        parts += [self.ring("choice", choice)] if choice else []
        parts += [shapes.text(note.text, self.centre(cell), "number", 0.24 * UNIT) for cell, note in notes.items()]
        return "".join([*parts, *arrows, *self.captioned()])

    def captioned(self) -> Iterator[str]:
        """The lines below the board, as large as there is room for."""
        left, _, right, bottom = self.bounds
        for row, line in enumerate(reversed(self.captions)):
            size = min(0.42 * UNIT, (right - left) / (0.56 * max(1, len(line))))
            yield shapes.text(line, ((left + right) / 2, bottom - (row + 0.4) * 0.7 * UNIT), "caption", size)

    def noted(self) -> tuple[dict[Cell, Note], list[str], Cell | None]:
        """The overlay's notes by the cells that they stand in, its arrows, and the cell of the agent's move."""
        choice = self.overlay.choice
        if self.page == CHESS:
            strongest, ends = self.strongest()
            arrows = [self.arrow(action, note, *ends[action]) for action, note in strongest.items()]
            order = sorted(strongest, key=lambda action: action == choice)  # the agent's own move is written last
            notes = {ends[a][1]: strongest[a]._replace(strength=strongest[a].strength / 2) for a in order}
            return notes, arrows, ends[choice][1] if choice in ends else None
        placed = {self.cell_of(action): note for action, note in self.overlay.notes.items()}
        notes = {cell: note for cell, note in placed.items() if cell is not None}
        return notes, [], None if choice is None else self.cell_of(choice)

    def strongest(self) -> tuple[dict[int, Note], dict[int, Ends]]:
        """The notes that are worth an arrow, the agent's own move among them, and where the arrows begin and end."""
        notes, choice = self.overlay.notes, self.overlay.choice
        every = {action: self.ends(action) for action in [*notes, *([] if choice is None else [choice])]}
        ends = {action: end for action, end in every.items() if end}
        order = sorted((a for a in notes if a in ends), key=lambda action: -notes[action].number)
        kept = [action for rank, action in enumerate(order) if rank < STRONGEST_ARROWS or action == choice]
        kept += [choice] if choice in ends and choice not in kept else []
        return {action: notes.get(action, Note("", 0.0, "share", 0.0)) for action in kept}, ends

    def arrow(self, action: int, note: Note, start: Cell, end: Cell) -> str:
        """The arrow of a move: the larger its number, the thicker."""
        signed = {"share": note.strength, "good": (1 + note.strength) / 2, "bad": (1 - note.strength) / 2}
        kind = "of-choice" if action == self.overlay.choice else ""
        return shapes.arrow(self.centre(start), self.centre(end), signed[note.kind], kind)

    def last_cells(self) -> list[Cell]:
        """Where the last move went."""
        if not self.position.plies or self.position.plies[-1].action == RESIGN:
            return []
        action, before = self.position.plies[-1].action, self.position.undo()
        if self.position.swapped:  # the mirrored stone, alone on the board
            return [cell for cell in self.every() if self.squares[cell[0]][cell[1]] != EMPTY]
        if self.page == CHESS:
            return list(Board(before, self.notation).ends(action) or ())
        if self.page is None and not self.view.marks_last:
            return []
        cell = Board(before, self.notation).cell_of(action)
        return [cell] if cell else []

    def last(self, cell: Cell) -> str:
        """The mark of the last move."""
        if self.page == CHESS:
            return self.ring("last", cell)
        return shapes.circle(self.centre(cell), self.look.last * UNIT, "last")

    def ring(self, class_: str, cell: Cell) -> str:
        """Around, or over, a cell."""
        if self.look.has_discs:
            return shapes.circle(self.centre(cell), 0.42 * UNIT, class_)
        return element("path", class_=class_, d=self.outline(cell, 0.06 * (class_ != "won")))

    def shade(self, cell: Cell, note: Note) -> str:
        """The colour of a note."""
        opacity = 0.12 + 0.75 * note.strength
        if self.look.has_discs:
            return shapes.circle(self.centre(cell), 0.42 * UNIT, f"note {note.kind}", opacity)
        return element("path", class_=f"note {note.kind}", d=self.outline(cell, 0.06), fill_opacity=opacity)

    def piece(self, at: Point, text: str) -> str:
        """A stone or several, a piece of chess, or letters."""
        if self.page == CHESS and text.lower() in PIECES:
            return shapes.chess_piece(text, at)
        if not set(text) <= {FIRST, SECOND}:
            return shapes.text(text, at, "letter", min(0.5, 1.5 / len(text)) * UNIT)
        if self.page == "tic_tac_toe" and self.view.colours == (FIRST, SECOND):
            return self.mark(at, text)
        radius = (self.look.radius if len(text) == 1 else min(0.3, 0.46 / len(text))) * UNIT
        places = [(at[0] + 2 * radius * (i - (len(text) - 1) / 2), at[1]) for i in range(len(text))]
        return "".join(shapes.circle(p, radius, f"stone {self.ink(c)}") for p, c in zip(places, text, strict=True))

    def mark(self, at: Point, text: str) -> str:
        """A cross or a ring."""
        class_ = f"mark {self.ink(text)}"
        if text == SECOND:
            return shapes.circle(at, 0.27 * UNIT, class_)
        return element("path", class_=class_, d=f"M{at[0] - 10:g} {at[1] - 10:g}l20 20m0 -20l-20 20")

    def ink(self, stone: str) -> str:
        """The colour of a side's stones."""
        return self.view.inks[stone == SECOND]

    # --- what is clicked and said -------------------------------------------------------------------------------------

    def cells(self) -> Iterator[str]:
        """The cells, each with its place, its name, what it holds, and the move that a click on it plays."""
        notes, _, choice = self.noted()
        clicked, lasts, won = self.clicked(), self.last_cells(), self.position.winning_cells
        for cell in self.every():
            action, note = clicked.get(cell), notes.get(cell)
            marks = [cell in lasts and "last move", cell in won and "part of the win"]
            marks += [note and note.text and f"agent: {note.text}", cell == choice and "the agent's move"]
            label = ", ".join([self.name(cell), self.holds(self.squares[cell[0]][cell[1]]), *filter(None, marks)])
            move = None if action is None else self.notation.write(self.position.state, action)
            tip = f"{move or self.name(cell)}: {note.text}" if note and note.text else None
            yield self.cell(self.drawn(cell), self.name(cell), self.outline(cell), label, move, tip)

    def cell(self, drawn: Cell, name: str, outline: str, label: str, move: str | None, tip: str | None) -> str:
        """One cell that can be clicked; JavaScript looks for it by its row and column, and moves name it."""
        place = {"data_row": drawn[0], "data_column": drawn[1], "data_cell": name, "data_move": move, "data_tip": tip}
        said = {"role": "button", "tabindex": "-1", "aria_label": label}
        return element("path", class_="cell", d=outline, **place, **said)

    def holds(self, text: str) -> str:
        """What a cell holds, in words."""
        if text == EMPTY:
            return "empty"
        if self.page == CHESS and text.lower() in PIECES:
            return f"{'white' if text.isupper() else 'black'} {PIECES[text.lower()]}"
        if set(text) <= {FIRST, SECOND}:
            return " and ".join(self.view.colours[stone == SECOND] for stone in text)
        return text


class Tiles(Board):
    """A grid of tiles with numbers on them, which slide."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """A rim around the tiles."""
        return -0.6 * UNIT, -0.6 * UNIT, (self.width - 0.4) * UNIT, (self.height - 0.4) * UNIT

    def ground(self) -> str:
        """The tray and its places."""
        width, height = (self.width + 0.1) * UNIT, (self.height + 0.1) * UNIT
        tray = element("rect", class_="tray", x=-0.55 * UNIT, y=-0.55 * UNIT, width=width, height=height, rx=5)
        return tray + element("path", class_="ground", d="".join(self.outline(cell, 0.04) for cell in self.every()))

    def piece(self, at: Point, text: str) -> str:
        """A tile; the larger its number, the stronger its colour."""
        power = int(text).bit_length() - 1 if text.isdecimal() else 0
        level = min(max(power, 1), HIGHEST) if power and int(text) == 2**power else 0
        x, y = at[0] - 0.46 * UNIT, at[1] - 0.46 * UNIT
        tile = element("rect", class_=f"tile t{level}", x=x, y=y, width=0.92 * UNIT, height=0.92 * UNIT, rx=3)
        return tile + shapes.text(text, at, f"tile-number t{level}", min(0.42, 1.15 / len(text)) * UNIT)

    def noted(self) -> tuple[dict[Cell, Note], list[str], Cell | None]:
        """Arrows for the directions, from the middle of the grid."""
        x, y = (self.width - 1) / 2, (self.height - 1) / 2
        arrows = []
        for action, note in self.overlay.notes.items():
            is_choice = action == self.overlay.choice
            across, down = STEPS.get(self.notation.write(self.position.state, action), (0, 0))
            if (across or down) and (note.strength >= 0.02 or is_choice):
                start = (x + 0.3 * across) * UNIT, (y + 0.3 * down) * UNIT
                end = (x + across * self.width / 2.2) * UNIT, (y + down * self.height / 2.2) * UNIT
                arrows.append(shapes.arrow(start, end, note.strength, "of-choice" if is_choice else ""))
        return {}, arrows, None

    def last_cells(self) -> list[Cell]:
        """All tiles slide."""
        return []


def svg(board: Board, *, has_cells: bool = True) -> str:
    """The drawing as one element, as large as its place allows; without cells it is a picture."""
    left, top, right, bottom = board.bounds
    room = max(0.0, NARROWEST * UNIT - (right - left)) / 2
    box = " ".join(map(shapes.value, (left - room, top, right - left + 2 * room, bottom - top)))
    label = f"Board, {board.height} rows of {board.width}"
    said = {"role": "group", "aria_label": label, "aria_describedby": "keys"}
    cells = "".join(board.cells()) if has_cells else ""
    return element("svg", board.ground() + board.above() + cells, class_=f"board {board.kind}", viewBox=box, **said)
