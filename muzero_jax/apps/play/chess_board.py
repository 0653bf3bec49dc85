"""The board of chess: pieces, arrows for moves, and moves by two clicks."""

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing, Ends
from muzero_jax.apps.play.overlay import Note
from muzero_jax.apps.play.shapes import UNIT, Point
from muzero_jax.games.view import Cell

SHAPES = {
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


class ChessBoard(BoardDrawing):
    """A position of chess, with the person's side at the bottom."""

    def drawn(self, cell: Cell) -> Cell:
        return (self.height - 1 - cell[0], self.width - 1 - cell[1]) if self.seat == 1 else cell

    def ends(self, action: int) -> Ends | None:
        """The two squares in a move's text; None if it is not written by two squares."""
        text = self.write(action)
        columns = self.notation.columns
        rows = self.notation.rows
        if not (text[0] in columns and text[1:2] in rows and text[2:3] in columns):
            return None
        return (rows.index(text[1]), columns.index(text[0])), (rows.index(text[3]), columns.index(text[2]))

    def cell_of(self, action: int) -> Cell | None:
        """None, because a move takes two clicks."""
        return None

    def grounds(self) -> list[str]:
        odd = [self.outline(cell) for cell in self.every if sum(self.drawn(cell)) % 2]
        return [*super().grounds(), shapes.path("odd", "".join(odd))]

    def noted(self) -> tuple[dict[Cell, Note], list[str], Cell | None]:
        """Arrows for the strongest moves and for the agent's own, with their numbers at the tips."""
        arrows = self.strongest()
        choice = self.overlay.choice
        drawn = [self.arrow(action, note, *map(self.centre, ends)) for action, (note, ends) in arrows.items()]
        order = sorted(arrows.items(), key=lambda item: item[0] == choice)  # the agent's last, so it replaces others
        notes = {ends[1]: note._replace(strength=note.strength / 2) for _, (note, ends) in order}
        return notes, drawn, arrows[choice][1][1] if choice in arrows else None

    def last(self, cell: Cell) -> str:
        return self.patch("last", cell)

    def is_letter(self, text: str) -> bool:
        return text.lower() not in NAMES and super().is_letter(text)

    def piece(self, at: Point, text: str) -> str:
        """A piece; capital letters are white's."""
        if text.lower() not in NAMES:
            return super().piece(at, text)
        place = f"translate({shapes.length(at[0] - 0.46)} {shapes.length(at[1] - 0.48)}) scale({0.0206 * UNIT:g})"
        return shapes.path(f"piece {_colour(text)}", SHAPES[text.lower()], transform=place)

    def holds(self, text: str) -> str:
        return f"{_colour(text)} {NAMES[text.lower()]}" if text.lower() in NAMES else super().holds(text)


def _colour(text: str) -> str:
    return "white" if text.isupper() else "black"
