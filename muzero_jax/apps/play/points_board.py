"""The board of backgammon: two rows of twelve points with the bar between them, the checkers borne off, the dice.

A cell is a point, one side's bar or one side's home, in two rows of fourteen; row 1 is the lower one. A move is written
FROM/TO, with points numbered from the mover's side.
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing, Ends
from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.apps.play.stones_board import PLAIN
from muzero_jax.games.view import FIRST, POINTS, SECOND, Cell, Squares

COLUMNS = 14
BAR = 6
HOME = 13
BOTTOM, LONG, MIDDLE = 11.4, 4.7, 5.7
"""The lower edge of the board (the upper one is 0), a point's length, and the line of the dice."""
MOST_DRAWN, RADIUS = 5, 0.43
"""The most checkers that are drawn in a cell (a number stands for more), and their radius."""
SPOTS = ((4,), (0, 8), (0, 4, 8), (0, 2, 6, 8), (0, 2, 4, 6, 8), (0, 2, 3, 5, 6, 8))
FROM_TO = re.compile(r"(bar|\d+)/(off|\d+)")


def _squares(position: Position, viewer: int) -> Squares:
    """The checkers in each cell as stones, "XXX" or ""; the viewer's home is on the lower right."""
    assert position.game.view.checkers is not None
    checkers = position.game.view.checkers(position.state)

    def stones(row: int, column: int) -> str:
        if column in (BAR, HOME):
            owner = viewer if row == 1 else 1 - viewer
            return (FIRST, SECOND)[owner] * (checkers.bar if column == BAR else checkers.off)[owner]
        number = _number((row, column))
        count = checkers.points[24 - number if viewer else number - 1]
        return (SECOND if count < 0 else FIRST) * abs(count)

    return [[stones(row, column) for column in range(COLUMNS)] for row in (0, 1)]


def _centre(cell: Cell, depth: Length = 2) -> Point:
    """The centre of a checker; depth 0 lies at the edge of the board."""
    reach = 0.5 + 2 * RADIUS * depth
    return cell[1], reach if cell[0] == 0 else BOTTOM - reach


def _half(at: Point, inset: Length) -> list[Point]:
    """The corners of a cell, which reaches almost to the line of the dice."""
    low, high = (0.0, MIDDLE - 0.6) if at[1] < MIDDLE else (BOTTOM - MIDDLE + 0.6, BOTTOM)
    return [(at[0] - 0.5, low), (at[0] + 0.5, low), (at[0] + 0.5, high), (at[0] - 0.5, high)]


def _number(cell: Cell) -> int:
    """The number of a point for the viewer; the other side's is 25 less this one."""
    index = cell[1] - (cell[1] > BAR)
    return 13 + index if cell[0] == 0 else 12 - index


def _cell(place: str, is_viewers: bool) -> Cell:
    """The cell of a place, "13", "bar" or "off", in the words of the viewer or of the other side."""
    if place in ("bar", "off"):
        return int(is_viewers), BAR if place == "bar" else HOME
    point = int(place) if is_viewers else 25 - int(place)
    column = point - 13 if point > 12 else 12 - point
    return int(point <= 12), column + (column >= BAR)


def _name(board: BoardDrawing, cell: Cell) -> str:
    """The name of a place for the person, else for the mover; the upper bar and home are the other side's."""
    if cell[1] in (BAR, HOME):
        return ("their " if cell[0] == 0 else "") + ("bar" if cell[1] == BAR else "off")
    side = board.position.colour_to_move if board.seat is None else board.seat
    return str(_number(cell) if side == board.viewer else 25 - _number(cell))


def _held(board: BoardDrawing, cell: Cell) -> tuple[int, int]:
    """How many checkers lie in a cell, and whose."""
    stones = board.squares[cell[0]][cell[1]]
    row_owner = board.viewer if cell[0] == 1 else 1 - board.viewer
    return len(stones), row_owner if cell[1] in (BAR, HOME) else int(SECOND in stones)


def _top(board: BoardDrawing, cell: Cell, more: int) -> Point:
    """The centre of the last checker in a cell, or `more` places beyond it; for a home, its middle."""
    depth = 2 if cell[1] == HOME else max(0, min(_held(board, cell)[0] - 1 + more, MOST_DRAWN - 1))
    return _centre(cell, depth)


def _ends(board: BoardDrawing, text: str, side: int) -> Ends | None:
    """The cells where a move of `side` begins and ends."""
    found = FROM_TO.match(text)
    is_viewers = side == board.viewer
    return found and (_cell(found[1], is_viewers), _cell(found[2], is_viewers))


def _ground(board: BoardDrawing) -> str:
    parts = [shapes.box(-0.7, -0.8, COLUMNS + 0.45, BOTTOM + 1.6, "frame", 0.25)]
    parts += [shapes.box(left, 0, 6, BOTTOM, "field") for left in (-0.5, 6.5)]
    parts += [shapes.box(HOME - 0.44, top, 0.88, 4.85, "slot") for top in (0, BOTTOM - 4.85)]
    for odd, class_ in enumerate(("point", "point odd")):
        points = [cell for cell in board.every if cell[1] not in (BAR, HOME) and sum(cell) % 2 == odd]
        parts.append(shapes.path(class_, "".join(map(_triangle, points))))
    return "".join(parts)


def _triangle(cell: Cell) -> str:
    edge, tip = (0.0, LONG) if cell[0] == 0 else (BOTTOM, BOTTOM - LONG)
    return shapes.outline([(cell[1] - 0.48, edge), (cell[1], tip), (cell[1] + 0.48, edge)])


def _above(board: BoardDrawing) -> str:
    """Numbers of the points, checkers, dice, arrows of the last turn, and the overlay."""
    parts = [part for cell in board.every for part in _stack(board, cell)]
    parts += [*([] if board.position.is_over else _dice(board)), *_last_turn(board)]
    for action, (note, (start, end)) in board.strongest().items():
        x, y = _top(board, end, 1)
        parts.append(board.arrow(action, note, _top(board, start, 0), (x, y)))
        beyond = y + (0.62 if end[0] == 0 else -0.62)  # where no checker hides it
        parts.append(shapes.text(note.text, (x, beyond), "number", 0.42))
    return "".join(parts)


def _stack(board: BoardDrawing, cell: Cell) -> Iterator[str]:
    """A place's number and its checkers; checkers that were borne off are seen from the side."""
    count, owner = _held(board, cell)
    class_ = f"stone {board.view.inks[owner]}"
    if cell[1] == HOME:
        for index in range(count):
            y = 0.1 + 0.31 * index if cell[0] == 0 else BOTTOM - 0.41 - 0.31 * index
            yield shapes.box(HOME - 0.38, y, 0.76, 0.28, class_, 0.08)
        return
    if cell[1] != BAR:
        yield shapes.text(_name(board, cell), (cell[1], -0.4 if cell[0] == 0 else BOTTOM + 0.4), "label", 0.5)
    yield from (shapes.circle(_centre(cell, i), RADIUS, class_) for i in range(min(count, MOST_DRAWN)))
    if count > MOST_DRAWN:
        yield shapes.text(str(count), _top(board, cell, 0), "count", 0.5)


def _dice(board: BoardDrawing) -> Iterator[str]:
    """The mover's dice, on the mover's half; a die that was played is pale."""
    assert board.view.checkers is not None
    dice = board.view.checkers(board.position.state).dice
    mover = board.position.colour_to_move
    for index, (die, is_left) in enumerate(dice):
        x = (9.5 if mover == board.viewer else 2.5) + 1.1 * (index - (len(dice) - 1) / 2)
        spots = [(x + 0.25 * (at % 3 - 1), MIDDLE + 0.25 * (at // 3 - 1)) for at in SPOTS[die - 1]]
        parts = [shapes.box(x - 0.45, MIDDLE - 0.45, 0.9, 0.9, board.view.inks[mover], 0.16)]
        parts += [shapes.circle(spot, 0.085, "spot") for spot in spots]
        class_, said = ("die", f"die {die}") if is_left else ("die played", f"die {die}, played")
        yield shapes.element("g", "".join(parts), class_, role="img", aria_label=said)


def _last_turn(board: BoardDrawing) -> Iterator[str]:
    """Arrows for the moves of the last turn, or of the present turn so far."""
    plies = [ply for _, ply in board.position.told]
    texts = board.position.texts(board.notation)
    turn = len(list(takewhile(lambda ply: ply.colour == plies[-1].colour, reversed(plies))))
    for text in texts[len(plies) - turn :]:
        if ends := _ends(board, text, plies[-1].colour):
            yield shapes.arrow(_top(board, ends[0], 1), _top(board, ends[1], 0), 0.1, "last-move")


def _cells(board: BoardDrawing) -> Iterator[str]:
    """The clickable places, with a rim around checkers that can move."""
    notes = {ends[1]: note.text for note, ends in board.strongest().values() if note.text}
    starts = {ends[0] for ends in map(board.ends, board.position.legal_actions()) if ends}
    for cell in board.every:
        count, owner = _held(board, cell)
        name = _name(board, cell)
        note = notes.get(cell)
        colour = board.view.colours[owner]
        place = {BAR: "bar", HOME: "home"}.get(cell[1])
        said = [f"{colour}'s {place}" if place else f"point {name}", f"{count} of {colour}" if count else "empty"]
        label = ", ".join([*said, *([f"agent: {note}"] if note else [])])
        if cell in starts:
            yield shapes.circle(_top(board, cell, 0), RADIUS, "movable")
        yield board.cell(cell, label, None, f"to {name}: {note}" if note else None)


POINTS_BOARD = PLAIN._replace(
    kind=POINTS,
    squares=_squares,
    place=_centre,
    shape=_half,
    ground=_ground,
    above=_above,
    cells=_cells,
    name=_name,
    ends=lambda board, action: _ends(board, board.write(action), board.position.colour_to_move),
    margins=(0.75, 0.85, 0.8, 0.85 + 0.5 + 4 * RADIUS),
    has_captions=False,  # the dice are drawn
)
"""The person's home is on the lower right, and points have the person's numbers."""
