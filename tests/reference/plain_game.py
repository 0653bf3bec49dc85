"""Tic-tac-toe and Hex with the swap in plain Python, with positions built from stones as GTP's `play` builds them."""

from typing import NamedTuple

import numpy as np

from tests.reference.hex import winners
from tests.reference.tic_tac_toe import LINES

BLACK, WHITE = 0, 1
EMPTY = -1
SWAP = 9
RESIGN = -1


class Plain(NamedTuple):
    """A game on 3x3 cells from its start to here; `before` is the game before the last move."""

    is_hex: bool
    cells: tuple[int, ...] = (EMPTY,) * 9
    mover: int = BLACK
    in_turns: bool = True
    is_over: bool = False
    winner: int | None = None
    last: tuple[int, int] | None = None  # colour and action of the last move
    before: "Plain | None" = None

    @property
    def moves(self) -> list[int]:
        """The actions so far."""
        return [] if self.before is None else [*self.before.moves, self.last[1]]

    def legal(self, colour: int) -> list[int]:
        """What a colour may play, if it may play at all; a swap answers the first move of a game, in turn."""
        cells = [cell for cell in range(9) if self.cells[cell] == EMPTY]
        may_swap = self.is_hex and self.in_turns and len(self.moves) == 1 and colour == self.mover and not self.is_over
        return [*cells, SWAP] if may_swap else cells

    def play(self, action: int, colour: int) -> "Plain | None":
        """The game after a move; None if it is not allowed. A finished game takes stones only where it was built."""
        if self.is_over and self.in_turns or action not in self.legal(colour):
            return None
        cells, cell = [*self.cells], action
        if action == SWAP:
            taken = self.moves[0]
            cells[taken], cell = EMPTY, taken % 3 * 3 + taken // 3
        cells[cell] = colour
        after = self._replace(
            cells=tuple(cells),
            mover=1 - colour,
            in_turns=self.in_turns and not self.is_over and colour == self.mover,
            last=(colour, action),
            before=self,
        )
        return after if self.is_over else after._judged(colour)

    def resign(self, colour: int) -> "Plain | None":
        """The game after a resignation; None if it is over."""
        if self.is_over:
            return None
        return self._replace(is_over=True, winner=1 - colour, last=(colour, RESIGN), before=self)

    def undo(self, colour: int | None = None) -> "Plain | None":
        """The game before the last move, or the last of a colour; None if there is none."""
        if self.before is None or colour in (None, self.last[0]):
            return self.before
        return self.before.undo(colour)

    def score(self) -> str | None:
        """As GTP writes it; None if there is none yet."""
        if not self.is_over:
            return None
        resigned = "R" if self.last[1] == RESIGN else ""
        return "0" if self.winner is None else f"{'BW'[self.winner]}+{resigned}"

    def _judged(self, colour: int) -> "Plain":
        if self.is_hex:
            won = colour in winners(np.array(self.cells).reshape(3, 3))
        else:
            won = any(all(self.cells[cell] == colour for cell in line) for line in LINES)
        is_full = not self.is_hex and EMPTY not in self.cells
        return self._replace(is_over=won or is_full, winner=colour if won else None)
