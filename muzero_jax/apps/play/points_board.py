"""The board of backgammon: two rows of twelve points with the bar between them, the checkers borne off, the dice.

A cell is a point, one side's bar or one side's home, in two rows of fourteen; row 1 is the lower one. A move is written
FROM/TO, with points numbered from the mover's side.
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing, Ends
from muzero_jax.apps.play.overlay import NOTHING, Overlay
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import Cell

COLUMNS = 14
BAR = 6
HOME = 13
BOTTOM, LONG, MIDDLE = 11.4, 4.7, 5.7
"""The lower edge of the board (the upper one is 0), a point's length, and the line of the dice."""
MOST_DRAWN, RADIUS = 5, 0.43
"""The most checkers that are drawn in a cell (a number stands for more), and their radius."""
SPOTS = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
FROM_TO = re.compile(r"(bar|\d+)/(off|\d+)")


class PointsBoard(BoardDrawing):
    """A position of backgammon. The person's home is on the lower right, and points have the person's numbers."""

    captions = []  # the dice are drawn  # type: ignore
    bounds = (-0.75, -0.85, COLUMNS - 0.2, BOTTOM + 0.85)  # type: ignore

    def __init__(self, position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None):
        super().__init__(position, notation, overlay, seat)
        assert self.view.checkers is not None
        self.checkers = self.view.checkers(position.state)
        self.height, self.width = 2, COLUMNS
        self.viewer = seat or 0
        self.counts = position.colour_to_move if seat is None else seat

    def centre(self, cell: Cell, depth: Length = 2) -> Point:
        """The centre of a checker; depth 0 lies at the edge of the board."""
        reach = 0.5 + 2 * RADIUS * depth
        return cell[1], reach if cell[0] == 0 else BOTTOM - reach

    def outline(self, cell: Cell, inset: Length = 0.0) -> str:
        left = cell[1] - 0.5
        right = cell[1] + 0.5
        half = MIDDLE - 0.6
        top, low = (0.0, half) if cell[0] == 0 else (BOTTOM - half, BOTTOM)
        return shapes.outline([(left, top), (right, top), (right, low), (left, low)])

    def place(self, name: str, side: int) -> Cell:
        """The cell of a place, "13", "bar" or "off", by the numbers of `side`."""
        near = int(side == self.viewer)
        if name in ("bar", "off"):
            return near, BAR if name == "bar" else HOME
        point = int(name) if near else 25 - int(name)
        column = point - 13 if point > 12 else 12 - point
        return int(point <= 12), column + (column >= BAR)

    def point(self, cell: Cell, side: int) -> int:
        """The number of a point for `side`."""
        index = cell[1] - (cell[1] > BAR)
        number = 13 + index if cell[0] == 0 else 12 - index
        return number if side == self.viewer else 25 - number

    def name(self, cell: Cell) -> str:
        """The name of a place by the numbers of `self.counts`; the upper bar and home are the other side's."""
        if cell[1] in (BAR, HOME):
            return ("their " if cell[0] == 0 else "") + ("bar" if cell[1] == BAR else "off")
        return str(self.point(cell, self.counts))

    def held(self, cell: Cell) -> tuple[int, int]:
        """How many checkers lie in a cell, and whose."""
        owner = self.viewer if cell[0] == 1 else 1 - self.viewer
        if cell[1] in (BAR, HOME):
            return (self.checkers.bar if cell[1] == BAR else self.checkers.off)[owner], owner
        count = self.checkers.points[self.point(cell, 0) - 1]
        return abs(count), int(count < 0)

    def top(self, cell: Cell, more: int) -> Point:
        """The centre of the last checker in a cell, or `more` places beyond it; for a home, its middle."""
        depth = 2 if cell[1] == HOME else max(0, min(self.held(cell)[0] - 1 + more, MOST_DRAWN - 1))
        return self.centre(cell, depth)

    def cell_of(self, action: int) -> Cell | None:
        """None, because a move takes two clicks."""
        return None

    def ends(self, action: int) -> Ends | None:
        return self._ends(self.write(action), self.position.colour_to_move)

    def _ends(self, text: str, side: int) -> Ends | None:
        found = FROM_TO.match(text)
        return found and (self.place(found[1], side), self.place(found[2], side))

    def ground(self) -> str:
        parts = [shapes.box(-0.7, -0.8, COLUMNS + 0.45, BOTTOM + 1.6, "frame", 0.25)]
        parts += [shapes.box(left, 0, 6, BOTTOM, "field") for left in (-0.5, 6.5)]
        parts += [shapes.box(HOME - 0.44, top, 0.88, 4.85, "slot") for top in (0, BOTTOM - 4.85)]
        for odd, class_ in enumerate(("point", "point odd")):
            points = [cell for cell in self.every if cell[1] not in (BAR, HOME) and sum(cell) % 2 == odd]
            parts.append(shapes.path(class_, "".join(map(self._triangle, points))))
        return "".join(parts)

    def _triangle(self, cell: Cell) -> str:
        edge, tip = (0.0, LONG) if cell[0] == 0 else (BOTTOM, BOTTOM - LONG)
        return shapes.outline([(cell[1] - 0.48, edge), (cell[1], tip), (cell[1] + 0.48, edge)])

    def above(self) -> str:
        """Numbers of the points, checkers, dice, arrows of the last turn, and the overlay."""
        parts = [part for cell in self.every for part in self._stack(cell)]
        parts += [*([] if self.position.is_over else self._dice()), *self._last_turn()]
        for action, (note, (start, end)) in self.strongest().items():
            x, y = self.top(end, 1)
            parts.append(self.arrow(action, note, self.top(start, 0), (x, y)))
            beyond = y + (0.62 if end[0] == 0 else -0.62)  # where no checker hides it
            parts.append(shapes.text(note.text, (x, beyond), "number", 0.42))
        return "".join(parts)

    def _stack(self, cell: Cell) -> Iterator[str]:
        """A place's number and its checkers; checkers that were borne off are seen from the side."""
        count, owner = self.held(cell)
        class_ = f"stone {self.view.inks[owner]}"
        if cell[1] == HOME:
            for index in range(count):
                y = 0.1 + 0.31 * index if cell[0] == 0 else BOTTOM - 0.41 - 0.31 * index
                yield shapes.box(HOME - 0.38, y, 0.76, 0.28, class_, 0.08)
            return
        if cell[1] != BAR:
            yield shapes.text(self.name(cell), (cell[1], -0.4 if cell[0] == 0 else BOTTOM + 0.4), "label", 0.5)
        yield from (shapes.circle(self.centre(cell, i), RADIUS, class_) for i in range(min(count, MOST_DRAWN)))
        if count > MOST_DRAWN:
            yield shapes.text(str(count), self.top(cell, 0), "count", 0.5)

    def _dice(self) -> Iterator[str]:
        """The mover's dice, on the mover's half; a die that was played is pale."""
        dice = self.checkers.dice
        mover = self.position.colour_to_move
        for index, (die, is_left) in enumerate(dice):
            x = (9.5 if mover == self.viewer else 2.5) + 1.1 * (index - (len(dice) - 1) / 2)
            spots = [(x + 0.25 * (at % 3 - 1), MIDDLE + 0.25 * (at // 3 - 1)) for at in SPOTS[die - 1]]
            parts = [shapes.box(x - 0.45, MIDDLE - 0.45, 0.9, 0.9, self.view.inks[mover], 0.16)]
            parts += [shapes.circle(spot, 0.085, "spot") for spot in spots]
            class_, said = ("die", f"die {die}") if is_left else ("die played", f"die {die}, played")
            yield shapes.element("g", "".join(parts), class_, role="img", aria_label=said)

    def _last_turn(self) -> Iterator[str]:
        """Arrows for the moves of the last turn, or of the present turn so far."""
        plies = self.position.plies
        texts = self.position.texts(self.notation)
        turn = len(list(takewhile(lambda ply: ply.colour == plies[-1].colour, reversed(plies))))
        for text in texts[len(plies) - turn :]:
            if ends := self._ends(text, plies[-1].colour):
                yield shapes.arrow(self.top(ends[0], 1), self.top(ends[1], 0), 0.1, "last-move")

    def cells(self) -> Iterator[str]:
        """The clickable places, with a rim around checkers that can move."""
        notes = {ends[1]: note.text for note, ends in self.strongest().values() if note.text}
        starts = {ends[0] for ends in map(self.ends, self.position.legal_actions()) if ends}
        for cell in self.every:
            count, owner = self.held(cell)
            name = self.name(cell)
            note = notes.get(cell)
            colour = self.view.colours[owner]
            place = {BAR: "bar", HOME: "home"}.get(cell[1])
            said = [f"{colour}'s {place}" if place else f"point {name}", f"{count} of {colour}" if count else "empty"]
            label = ", ".join([*said, *([f"agent: {note}"] if note else [])])
            if cell in starts:
                yield shapes.circle(self.top(cell, 0), RADIUS, "movable")
            yield self.cell(cell, self.outline(cell), label, None, f"to {name}: {note}" if note else None)
