"""Boards of squares with stones or letters: the plain one, which fits any game, and those of four known games."""

from collections.abc import Iterator

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing, Look
from muzero_jax.apps.play.overlay import Note
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.games.view import COLUMNS, EMPTY, FIRST, SECOND, Cell


def grid(board: BoardDrawing, inset: Length = 0.0) -> str:
    """The cells without what they hold."""
    return shapes.path("ground", "".join(board.outline(cell, inset) for cell in board.every))


def is_letter(board: BoardDrawing, text: str) -> bool:
    """Whether a cell holds letters, not pieces and not nothing."""
    return text != EMPTY and text not in board.look.pieces and not set(text) <= {FIRST, SECOND}


def stones(board: BoardDrawing, at: Point, text: str) -> str:
    """Stones side by side, or letters."""
    if is_letter(board, text):
        return shapes.text(text, at, "letter", min(0.5, 1.15 / len(text)))
    radius = board.look.radius if len(text) == 1 else min(0.3, 0.46 / len(text))
    middle = (len(text) - 1) / 2
    parts = []
    for index, stone in enumerate(text):
        place = at[0] + 2 * radius * (index - middle), at[1]
        parts.append(shapes.circle(place, radius, f"stone {board.view.inks[stone == SECOND]}"))
    return "".join(parts)


def stones_and_marks(board: BoardDrawing) -> str:
    """Stones, marks of the last move and of the win, and the overlay."""
    notes, arrows, choice = _noted(board)
    won = [_mark(board, "won", cell) for cell in board.position.winning_cells]
    has_discs = "won" in board.look.marks
    under = [] if has_discs else [*won]
    for cell, note in notes.items():
        under.append(_mark(board, "note", cell, note.kind, 0.12 + 0.75 * note.strength))
    over = [*won] if has_discs else []
    over += [_mark(board, "last", cell) for cell in board.last_cells()]
    over += [_mark(board, "choice", choice)] if choice else []
    pieces = []
    for cell in board.every:
        x, y = board.centre(cell)
        text = board.squares[cell[0]][cell[1]]
        note = notes.get(cell)
        raised = 0.2 if note and is_letter(board, text) else 0.0  # so that both can be read
        pieces += [board.look.piece(board, (x, y - raised), text)] if text != EMPTY else []
        over += [shapes.text(note.text, (x, y + raised), "number", 0.24)] if note else []
    return "".join([*under, *pieces, *over, *arrows])


def _mark(board: BoardDrawing, kind: str, cell: Cell, more: str = "", opacity: float | None = None) -> str:
    """A circle in a cell, or the cell filled: to its edges if it is a part of the win. `more` is another class."""
    class_ = f"{kind} {more}".strip()
    if kind in board.look.marks:
        return shapes.circle(board.centre(cell), board.look.marks[kind], class_, opacity)
    return shapes.path(class_, board.outline(cell, 0.0 if kind == "won" else 0.06), fill_opacity=opacity)


def _noted(board: BoardDrawing) -> tuple[dict[Cell, Note], list[str], Cell | None]:
    """(the overlay's notes by cell, its arrows, the cell of the agent's move); an arrow's number is at its tip."""
    choice = board.overlay.choice
    if not board.look.ends:
        placed = {board.cell_of(action): note for action, note in board.overlay.notes.items()}
        notes = {cell: note for cell, note in placed.items() if cell is not None}
        return notes, list(_directions(board)), None if choice is None else board.cell_of(choice)
    moves = board.strongest()
    arrows = [board.arrow(action, note, *map(board.centre, ends)) for action, (note, ends) in moves.items()]
    order = sorted(moves.items(), key=lambda item: item[0] == choice)  # the agent's last, so it replaces others
    notes = {ends[1]: note._replace(strength=note.strength / 2) for _, (note, ends) in order}
    return notes, arrows, moves[choice][1][1] if choice in moves else None


def _directions(board: BoardDrawing) -> Iterator[str]:
    """Arrows for the moves that are a direction, from the middle of the board."""
    x, y = (board.width - 1) / 2, (board.height - 1) / 2
    for action, note in board.overlay.notes.items():
        across, down = board.look.arrows.get(board.write(action), (0, 0))
        if (across or down) and (note.strength >= 0.02 or action == board.overlay.choice):
            start = x + 0.3 * across, y + 0.3 * down
            end = x + across * board.width / 2.2, y + down * board.height / 2.2
            yield board.arrow(action, note, start, end)


def _cells(board: BoardDrawing) -> Iterator[str]:
    """The cells, each with its place, name and content, and the move that a click on it plays."""
    notes, _, choice = _noted(board)
    lasts = board.last_cells()
    won = board.position.winning_cells
    for cell in board.every:
        name = board.look.name(board, cell)
        note = notes[cell].text if cell in notes else ""
        said = {
            name: True,
            _held(board, board.squares[cell[0]][cell[1]]): True,
            "last move": cell in lasts,
            "part of the win": cell in won,
            f"agent: {note}": note,
            "the agent's move": cell == choice,
        }
        move = board.write(board.clicked[cell]) if cell in board.clicked else None
        label = ", ".join(words for words, is_so in said.items() if is_so)
        yield board.cell(cell, label, move, f"{move or name}: {note}" if note else None)


def _held(board: BoardDrawing, text: str) -> str:
    """The content of a cell in words."""
    if text == EMPTY:
        return "empty"
    if is_letter(board, text):
        return text
    return board.look.pieces.get(text) or " and ".join(board.view.colours[stone == SECOND] for stone in text)


def _name(board: BoardDrawing, cell: Cell) -> str:
    """The name of a cell by the board's labels, else by row and column numbers."""
    columns = board.notation.columns
    rows = board.notation.rows
    return columns[cell[1]] + rows[cell[0]] if columns and rows else f"row {cell[0] + 1}, column {cell[1] + 1}"


PLAIN = Look(
    kind="plain",
    squares=lambda position, viewer: position.squares,
    place=lambda cell: (cell[1], cell[0]),
    shape=shapes.square,
    ground=grid,
    piece=stones,
    above=stones_and_marks,
    cells=_cells,
    name=_name,
)

# --- games ------------------------------------------------------------------------------------------------------------


def _lines(board: BoardDrawing) -> str:
    """The lines and star points of a Go board."""
    last = board.width - 1
    near = 3 if last >= 12 else 2
    middle = [last // 2] * (last % 2 == 0)
    stars = [near, *middle * (last > 12), last - near]
    points = [(x, y) for x in stars for y in stars] + [(m, m) for m in middle]
    lines = "".join(
        shapes.outline([(0, i), (last, i)], "") + shapes.outline([(i, 0), (i, last)], "") for i in range(last + 1)
    )
    wood = shapes.box(-0.55, -0.55, last + 1.1, last + 1.1, "wood", 0.1)
    return "".join([wood, shapes.path("grid", lines), *(shapes.circle(at, 0.08, "star") for at in points)])


def _rack(board: BoardDrawing) -> str:
    """The rack of Connect Four with its holes."""
    rack = shapes.box(-0.5, -0.5, board.width, board.height, "ground", 0.1)
    return rack + "".join(shapes.circle(board.centre(cell), 0.42, "hole") for cell in board.every)


def _cross_or_nought(board: BoardDrawing, at: Point, text: str) -> str:
    """A cross or a nought, if these are the names of the sides."""
    if board.view.colours != (FIRST, SECOND) or is_letter(board, text):
        return stones(board, at, text)
    class_ = f"mark {board.view.inks[text == SECOND]}"
    if text == SECOND:
        return shapes.circle(at, 0.27, class_)
    (left, top), (right, low) = shapes.square(at, 0.25)[::2]
    bars = shapes.outline([(left, top), (right, low)], ""), shapes.outline([(left, low), (right, top)], "")
    return shapes.path(class_, "".join(bars))


ON_STONES = {"last": 0.2, "won": 0.42, "note": 0.42, "choice": 0.42}
"""Marks on boards whose stones nearly fill their cells."""
GO = PLAIN._replace(kind="go", ground=_lines, radius=0.46, marks=ON_STONES)
OTHELLO = PLAIN._replace(kind="othello", radius=0.41, marks=ON_STONES)
TIC_TAC_TOE = PLAIN._replace(kind="tic_tac_toe", piece=_cross_or_nought)
CONNECT_FOUR = PLAIN._replace(kind=COLUMNS, ground=_rack, is_by_column=True, radius=0.42, marks=ON_STONES)
