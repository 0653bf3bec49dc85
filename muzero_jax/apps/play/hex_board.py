"""The board of Hex, and of any game with shifted rows: hexagons, and the edges of both sides."""

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.shapes import ROW, Length, Point
from muzero_jax.games.view import Cell


class HexBoard(BoardDrawing):
    """Each row lies half a cell to the right of the one above."""

    kind = "hex"  # type: ignore

    @property
    def bounds(self) -> tuple[Length, Length, Length, Length]:
        right, bottom = self.width + (self.height - 1) / 2 + 0.1, (self.height - 1) * ROW + 1.2
        return -1.35, -1.2, right, bottom + 0.7 * len(self.captions)

    def centre(self, cell: Cell) -> Point:
        return cell[1] + cell[0] / 2, cell[0] * ROW

    def outline(self, cell: Cell, inset: Length = 0.0) -> str:
        return shapes.outline(shapes.hexagon(self.centre(cell), inset))

    def above_column(self, column: int) -> Point:
        return column - 0.5, -0.92

    def before_row(self, row: int) -> Point:
        return row / 2 - 1.02, row * ROW

    def grounds(self) -> list[str]:
        return [*(self._edges() if self.view.has_edges or self.page == "hex" else []), *super().grounds()]

    def _edges(self) -> list[str]:
        """The edges that each side must join, with the sides' names; the first player's are above and below."""
        right, bottom = self.width - 1, self.height - 1
        first, second = self.view.inks
        one, other = self.view.colours
        left_cells, right_cells = ([(row, column) for row in range(self.height)] for column in (0, right))
        top_cells, low_cells = ([(row, column) for column in range(self.width)] for row in (0, bottom))
        parts = []
        for kind in ("rim", ""):
            for ink, cells, corners in (
                (second, left_cells, (5, 4, 3)),
                (second, right_cells, (0, 1, 2)),
                (first, top_cells, (5, 0, 1)),
                (first, low_cells, (4, 3, 2)),
            ):
                points = [shapes.hexagon(self.centre(cell))[corner] for cell in cells for corner in corners]
                parts.append(shapes.path(f"goal {kind or ink}", shapes.outline(points, "")))
        size = min(0.42, 0.16 + 0.024 * self.width)
        middle = (bottom / 4, bottom / 2 * ROW)
        for name, at, side in (
            (one, (self.width - 0.35, -0.92), "start"),
            (one, (bottom / 2 + right / 2, bottom * ROW + 0.98), ""),
            (other, (middle[0] - 1.3, middle[1]), "end"),
            (other, (self.width - 0.2 + (self.height // 2) / 2, middle[1]), "start"),
        ):
            parts.append(shapes.text(name, at, f"edge-name {side}", size))
        return parts
