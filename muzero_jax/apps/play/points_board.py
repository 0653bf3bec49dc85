"""The board of backgammon: two rows of twelve points with the bar between them, the checkers that are home, the dice.

A cell is a point, the bar or the home of one side, in two rows of fourteen; row 1 lies nearer to the viewer. A move is
written FROM/TO, as the one who makes it counts the points.
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import Board, Ends
from muzero_jax.apps.play.overlay import NOTHING, Note, Overlay
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import UNIT, Point, element
from muzero_jax.games.notation import Notation
from muzero_jax.games.view import Cell

COLUMNS, BAR, HOME = 14, 6, 13
BOTTOM, LONG, MIDDLE = 11.4, 4.7, 5.7
"""The lower edge of the board (the upper one is 0), a point's length, and the line of the dice."""
MOST_DRAWN, RADIUS = 5, 0.43
"""Checkers drawn one by one, of which a number stands for more."""
SPOTS = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
FROM_TO = re.compile(r"(bar|\d+)/(off|\d+)")


class Points(Board):
    """A position of backgammon; the person's home is below, on the right, and points are numbered as they count."""

    def __init__(self, position: Position, notation: Notation, overlay: Overlay = NOTHING, seat: int | None = None):
        super().__init__(position, notation, overlay, seat)
        assert self.view.checkers is not None
        self.checkers = self.view.checkers(position.state)
        self.height, self.width = 2, COLUMNS
        self.viewer = seat or 0
        self.counts = position.colour_to_move if seat is None else seat

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The frame."""
        return -0.75 * UNIT, -0.85 * UNIT, (COLUMNS - 0.2) * UNIT, (BOTTOM + 0.85) * UNIT

    @property
    def captions(self) -> list[str]:
        """The dice are drawn."""
        return []

    def centre(self, cell: Cell, depth: float = 2) -> Point:
        """Where a checker lies, the edge being at depth 0."""
        reach = 0.5 + 2 * RADIUS * depth
        return cell[1] * UNIT, (reach if cell[0] == 0 else BOTTOM - reach) * UNIT

    def drawn(self, cell: Cell) -> Cell:
        """Cells are those of the drawing."""
        return cell

    def cell_of(self, action: int) -> Cell | None:
        """Two clicks name a move."""
        return None

    def clicked(self) -> dict[Cell, int]:
        """Two clicks name a move."""
        return {}

    def place(self, name: str, side: int) -> Cell:
        """The cell of a place, "13", "bar" or "off", as `side` counts."""
        near = int(side == self.viewer)
        if name in ("bar", "off"):
            return near, BAR if name == "bar" else HOME
        point = int(name) if near else 25 - int(name)
        column = point - 13 if point > 12 else 12 - point
        return int(point <= 12), column + (column >= BAR)

    def point(self, cell: Cell) -> int:
        """The number of a point as the viewer counts."""
        index = cell[1] - (cell[1] > BAR)
        return 13 + index if cell[0] == 0 else 12 - index

    def name(self, cell: Cell) -> str:
        """A place by the numbers of the one who counts; the far bar and home are the other side's."""
        if cell[1] in (BAR, HOME):
            return ("their " if cell[0] == 0 else "") + ("bar" if cell[1] == BAR else "off")
        return str(self.point(cell) if self.counts == self.viewer else 25 - self.point(cell))

    def held(self, cell: Cell) -> tuple[int, int]:
        """How many checkers lie in a cell, and whose."""
        owner = self.viewer if cell[0] == 1 else 1 - self.viewer
        if cell[1] in (BAR, HOME):
            return (self.checkers.bar if cell[1] == BAR else self.checkers.off)[owner], owner
        count = self.checkers.points[(25 - self.point(cell) if self.viewer else self.point(cell)) - 1]
        return abs(count), int(count < 0)

    def ends(self, action: int) -> Ends | None:
        """Where a move of the side to move begins and ends."""
        return self._ends(self.notation.write(self.position.state, action), self.position.colour_to_move)

    def _ends(self, text: str, side: int) -> Ends | None:
        found = FROM_TO.match(text)
        return found and (self.place(found[1], side), self.place(found[2], side))

    def ground(self) -> str:
        """The wood and the triangles."""
        frame = {"x": -0.7 * UNIT, "y": -0.8 * UNIT, "width": (COLUMNS + 0.45) * UNIT, "height": (BOTTOM + 1.6) * UNIT}
        parts = [element("rect", class_="frame", rx=10, **frame)]
        for x, width, y, height, class_ in (
            (-0.5, 6, 0, BOTTOM, "field"),
            (6.5, 6, 0, BOTTOM, "field"),
            (HOME - 0.44, 0.88, 0, 4.85, "slot"),
            (HOME - 0.44, 0.88, BOTTOM - 4.85, 4.85, "slot"),
        ):
            place = {"x": x * UNIT, "y": y * UNIT, "width": width * UNIT, "height": height * UNIT}
            parts.append(element("rect", class_=class_, **place))
        for odd, class_ in enumerate(("point", "point odd")):
            points = [c for c in self.every() if c[1] not in (BAR, HOME) and sum(c) % 2 == odd]
            parts.append(element("path", class_=class_, d="".join(map(self._triangle, points))))
        return "".join(parts)

    def _triangle(self, cell: Cell) -> str:
        edge, tip = (0.0, LONG) if cell[0] == 0 else (BOTTOM, BOTTOM - LONG)
        corners = [(-0.48, edge), (0.0, tip), (0.48, edge)]
        return shapes.outline([((cell[1] + x) * UNIT, y * UNIT) for x, y in corners])

    def above(self) -> str:
        """Numbers of the points, checkers, dice, the last turn, and what the overlay says."""
        parts = [part for cell in self.every() for part in self._stack(cell)]
        parts += self._dice() if not self.position.is_over else []
        parts += self._last_turn()
        strongest, ends = self.strongest()
        for action, note in strongest.items():
            parts.append(self.arrow(action, note, *ends[action]))
            x, y = self.top(ends[action][1], 1)
            at = (x, y + (0.62 if ends[action][1][0] == 0 else -0.62) * UNIT)  # beyond the checkers, which would hide it
            parts.append(shapes.text(note.text, at, "number", 0.42 * UNIT))
        return "".join(parts)

    def _stack(self, cell: Cell) -> Iterator[str]:
        """A place's number and the checkers on it; those that are home lie on their edges."""
        count, owner = self.held(cell)
        ink = self.view.inks[owner]
        if cell[1] == HOME:
            for index in range(count):
                y = 0.1 + 0.31 * index if cell[0] == 0 else BOTTOM - 0.41 - 0.31 * index
                place = {"x": (HOME - 0.38) * UNIT, "y": y * UNIT, "width": 0.76 * UNIT, "height": 0.28 * UNIT}
                yield element("rect", class_=f"stone {ink}", rx=3, **place)
            return
        if cell[1] != BAR:
            at = cell[1] * UNIT, (-0.4 if cell[0] == 0 else BOTTOM + 0.4) * UNIT
            yield shapes.text(self.name(cell), at, "label", 0.5 * UNIT)
        for depth in range(min(count, MOST_DRAWN)):
            yield shapes.circle(self.centre(cell, depth), RADIUS * UNIT, f"stone {ink}")
        if count > MOST_DRAWN:
            yield shapes.text(str(count), self.centre(cell, MOST_DRAWN - 1), f"count {ink}", 0.5 * UNIT)

    def _dice(self) -> Iterator[str]:
        """The mover's dice, on their half; one that is played is pale."""
        middle = 9.5 if self.position.colour_to_move == self.viewer else 2.5
        ink = self.view.inks[self.position.colour_to_move]
        for index, (die, is_left) in enumerate(self.checkers.dice):
            x, y = middle + 1.1 * (index - (len(self.checkers.dice) - 1) / 2), MIDDLE
            place = {"x": (x - 0.45) * UNIT, "y": (y - 0.45) * UNIT, "width": 0.9 * UNIT, "height": 0.9 * UNIT}
            box = element("rect", class_=ink, rx=6, **place)
            spots = [((x + 0.25 * (at % 3 - 1)) * UNIT, (y + 0.25 * (at // 3 - 1)) * UNIT) for at in SPOTS[die - 1]]
            said = {"role": "img", "aria_label": f"die {die}{'' if is_left else ', played'}"}
            content = box + "".join(shapes.circle(spot, 3.4, "spot") for spot in spots)
            yield element("g", content, class_="die" if is_left else "die played", **said)

    def _last_turn(self) -> Iterator[str]:
        """Arrows for the moves of the last turn, or of this one as far as it goes."""
        plies = self.position.plies
        turn = list(takewhile(lambda ply: ply.colour == plies[-1].colour, reversed(plies)))
        for index, ply in enumerate(reversed(turn), start=len(plies) - len(turn)):
            before = plies[index - 1].state if index else self.position.start
            if ends := self._ends(self.notation.write(before, ply.action), ply.colour):
                yield shapes.arrow(self.top(ends[0], 1), self.top(ends[1], 0), 0.1, "last-move")

    def top(self, cell: Cell, more: int) -> Point:
        """The middle of the last checker in a cell, or `more` places beyond it; a home's is its middle."""
        depth = 2 if cell[1] == HOME else max(0, min(self.held(cell)[0] - 1 + more, MOST_DRAWN - 1))
        return self.centre(cell, depth)

    def arrow(self, action: int, note: Note, start: Cell, end: Cell) -> str:
        """From the checker that moves to where it would lie."""
        kind = "of-choice" if action == self.overlay.choice else ""
        return shapes.arrow(self.top(start, 0), self.top(end, 1), note.strength, kind)

    def cells(self) -> Iterator[str]:
        """The places, and a rim around the checkers that can move."""
        strongest, ends = self.strongest()
        notes = {ends[action][1]: note.text for action, note in strongest.items() if note.text}
        starts = {ends[0] for ends in map(self.ends, self.position.legal_actions()) if ends}
        for cell in self.every():
            if cell in starts:
                yield shapes.circle(self.centre(cell, min(self.held(cell)[0], MOST_DRAWN) - 1), RADIUS * UNIT, "movable")
            top, height = (0.0, MIDDLE - 0.6) if cell[0] == 0 else (MIDDLE + 0.6, BOTTOM - MIDDLE - 0.6)
            left, right = (cell[1] - 0.5) * UNIT, (cell[1] + 0.5) * UNIT
            corners = [(left, y) for y in (top * UNIT, (top + height) * UNIT)] + [(right, (top + height) * UNIT)]
            outline, name = shapes.outline([*corners, (right, top * UNIT)]), self.name(cell)
            note = notes.get(cell)
            yield self.cell(cell, name, outline, self._said(cell, note), None, f"to {name}: {note}" if note else None)

    def _said(self, cell: Cell, note: str | None) -> str:
        """A place and what it holds, in words."""
        (count, owner), name = self.held(cell), self.name(cell).split()[-1]
        place = {"bar": "bar", "off": "home"}.get(name)
        colour = self.view.colours[owner]
        parts = [f"{colour}'s {place}" if place else f"point {name}", f"{count} of {colour}" if count else "empty"]
        return ", ".join([*parts, *([f"agent: {note}"] if note else [])])
