"""The board of 2048 and games like it: a grid of sliding tiles with numbers."""

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.overlay import Note
from muzero_jax.apps.play.shapes import Length, Point
from muzero_jax.games.view import Cell

HIGHEST = 16
"""Levels (powers of two) with a colour each; higher ones share the last colour."""
STEPS = {"left": (-1, 0), "up": (0, -1), "right": (1, 0), "down": (0, 1)}


class Tiles(BoardDrawing):
    """A position of a game of sliding tiles."""

    @property
    def bounds(self) -> tuple[Length, Length, Length, Length]:
        return -0.6, -0.6, self.width - 0.4, self.height - 0.4

    def ground(self) -> str:
        tray = shapes.box(-0.55, -0.55, self.width + 0.1, self.height + 0.1, "tray", 0.12)
        return tray + shapes.path("ground", "".join(self.outline(cell, 0.04) for cell in self.every))

    def piece(self, at: Point, text: str) -> str:
        """A tile; the larger its number, the stronger its colour."""
        power = int(text).bit_length() - 1 if text.isdecimal() else 0
        level = min(power, HIGHEST) if text == str(2**power) else 0
        tile = shapes.box(at[0] - 0.46, at[1] - 0.46, 0.92, 0.92, f"tile t{level}", 0.08)
        return tile + shapes.text(text, at, f"tile-number t{level}", min(0.42, 1.15 / len(text)))

    def noted(self) -> tuple[dict[Cell, Note], list[str], Cell | None]:
        """Arrows for the directions, from the middle of the grid."""
        x, y = (self.width - 1) / 2, (self.height - 1) / 2
        arrows = []
        for action, note in self.overlay.notes.items():
            across, down = STEPS.get(self.write(action), (0, 0))
            if (across or down) and (note.strength >= 0.02 or action == self.overlay.choice):
                start = x + 0.3 * across, y + 0.3 * down
                end = x + across * self.width / 2.2, y + down * self.height / 2.2
                arrows.append(self.arrow(action, note, start, end))
        return {}, arrows, None

    def last_cells(self) -> list[Cell]:
        """Empty, because all tiles slide."""
        return []
