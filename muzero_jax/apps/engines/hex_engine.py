"""Programs that play Hex by GTP, and the ways in which they understand `swap-pieces`.

Here a swap takes black's stone off and puts white's on the mirrored cell; the players keep their colours. HexGui and
our own engine mean the same. On MoHex's board the stone stays, and the players exchange their colours. Others know no
swap. Which one it is shows what an engine calls legal after a swap. Where it is not the first, the engine is told every
later move mirrored and in the other colour, for that is the same position.
"""

import re
from collections.abc import Sequence

from muzero_jax.apps.engines.engine import Ply
from muzero_jax.apps.engines.gtp import GtpEngine
from muzero_jax.games.notation import LETTERS, SWAP
from muzero_jax.types import EnvState

PIECES, SIDES, NONE = "pieces", "sides", "none"
"""Things that a program exchanges in a swap; none: it refuses to."""


class HexEngine(GtpEngine):
    """A GTP engine that is asked, when it has started, what it means by a swap."""

    swaps = PIECES

    def greet(self, settings: Sequence[str]) -> None:
        """`GtpEngine.greet`, and a swap to try."""
        super().greet(settings)
        self.new_game()
        self.ask("play b b1")
        is_known, _ = self.exchange(f"play w {SWAP}")
        has_list, legal = self.exchange("all_legal_moves") if is_known else (False, "")
        if not is_known:
            self.swaps = NONE
        elif has_list:
            self.swaps = PIECES if "b1" in legal.lower().split() else SIDES

    def choose(self, plies: Sequence[Ply], colour: int, state: EnvState | None = None) -> str:
        """`GtpEngine.choose` in the words that it understands."""
        index = next((i for i, ply in enumerate(plies) if ply.text == SWAP), None)
        if index is None or self.swaps == PIECES:
            return super().choose(plies, colour)
        told = plies[: index + (self.swaps == SIDES)]
        later = [ply._replace(colour=1 - ply.colour, text=mirrored(ply.text)) for ply in plies[index + 1 :]]
        return mirrored(super().choose([*told, *later], 1 - colour))


def mirrored(text: str) -> str:
    """The name of a cell with row and column exchanged; other words stay as they are."""
    cell = re.fullmatch("([a-z])([0-9]{1,2})", text.lower())
    if not cell or not 1 <= int(cell[2]) <= len(LETTERS):
        return text
    return f"{LETTERS[int(cell[2]) - 1]}{LETTERS.index(cell[1]) + 1}"
