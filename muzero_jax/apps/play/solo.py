"""A single-player game in the terminal: a person plays and may ask the agent for hints, or watches it play.

Chance depends only on the position's seed and the number of moves, so a move that is taken back and played again has
the same outcome.
"""

from collections.abc import Iterable

from muzero_jax.apps.play.drawing import counted, judged
from muzero_jax.apps.play.position import BLACK
from muzero_jax.apps.play.terminal import TerminalGame

SOLO_HELP = """\
a move     in the game's notation, e.g. {example}
hint       what the agent would play
watch N    let the agent play N moves (10 without a number)
eval       the return that the agent expects from here
undo       take back your last move
new        start again
moves      all legal moves
quit       leave (or Ctrl-D)"""
WATCHED = 10
MOST_WATCHED = 1000
NOT_HERE = ("side", "resign")


class SoloGame(TerminalGame):
    """A single-player game of one person in the terminal."""

    help_text = SOLO_HELP

    def run(self, lines: Iterable[str]) -> None:
        """Plays until `quit` or the end of `lines`."""
        self.colour = BLACK
        for name in NOT_HERE:
            self._commands.pop(name, None)
        super().run(lines)

    def _obey(self, text: str) -> None:
        word, _, count = text.lower().partition(" ")
        if word != "watch":
            super()._obey(text)
        elif count and not (count.isdecimal() and 1 <= int(count[:9]) <= MOST_WATCHED):
            raise ValueError(f"watch takes a number of moves, from 1 to {MOST_WATCHED}")
        else:
            self._watch(int(count or WATCHED))

    def _watch(self, num_moves: int) -> None:
        """Plays the agent's moves, prints them in one line, then shows the board."""
        moves = []
        while len(moves) < num_moves and not self.position.is_over:
            action = self._analyse().action
            moves.append(self.notation.write(self.position.state, action))
            self._play(action)
        self._say(f"I played {' '.join(moves)}" if moves else "the game is over")
        self._show()

    def _standing(self) -> str:
        return f"{counted(self.position.total, 'point')} after {counted(len(self.position.plies), 'move')}"

    def _eval(self) -> None:
        self._say(f"expected from here: {judged(self._analyse())}")
