"""The screen of an arcade game; pixels that were lit shortly before fade."""

from collections.abc import Iterator
from itertools import groupby

from muzero_jax.apps.play import shapes
from muzero_jax.apps.play.boards import BoardDrawing
from muzero_jax.apps.play.shapes import Length
from muzero_jax.games.view import FADING, LIT

CLASSES = {LIT: "lit", FADING: "fading"}


class Screen(BoardDrawing):
    """A position of a game on a screen. No click plays a move."""

    cell_size = 8

    @property
    def bounds(self) -> tuple[Length, Length, Length, Length]:
        return -2, -2, self.width + 1, self.height + 1

    def ground(self) -> str:
        left, top, right, bottom = self.bounds
        return shapes.box(left, top, right - left, bottom - top, "screen", 1.0)

    def above(self) -> str:
        """The lit pixels; neighbours in a row are drawn as one bar."""
        return "".join(shapes.path(class_, "".join(self._bars(sign))) for sign, class_ in CLASSES.items())

    def _bars(self, sign: str) -> Iterator[str]:
        for row, signs in enumerate(self.squares):
            column = 0
            for found, group in groupby(signs):
                length = len(list(group))
                if found == sign:
                    left, top, wide = (shapes.length(cells) for cells in (column - 0.5, row - 0.5, length))
                    yield f"M{left} {top}h{wide}v{shapes.UNIT}h-{wide}z"
                column += length

    def cells(self) -> Iterator[str]:
        return iter(())
