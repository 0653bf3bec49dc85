"""A game against the agent in the terminal: a coloured board, moves in the game's notation, a few words of command.

It reads any stream of lines, so a pipe or a test plays as a person does; rich leaves colours out where they'd be noise.
"""

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.text import Text

from muzero_jax.games.notation import Notation
from muzero_jax.play import drawing
from muzero_jax.play.position import BLACK, WHITE, Position
from muzero_jax.play.thinking import Analysis, Thinker

STYLES = {
    drawing.LABEL: "dim",
    drawing.EMPTY: "dim",
    drawing.FIRST: "bold red",
    drawing.SECOND: "bold cyan",
    drawing.LAST: "bold reverse",
}
QUIT = ("quit", "exit", "q")
HELP = """\
a move     in the game's notation, e.g. {example}
hint       what the agent would play in your place
eval       how the agent judges the position
undo       take your last move back, and the answer to it
new        start again
resign     give the game up
moves      all legal moves
quit       leave (or Ctrl-D)"""


class TerminalGame:
    """One person at one terminal.

    Args:
      colour: the person's; None asks.
      seconds: the agent's time for a move; None searches its usual budget.
    """

    def __init__(
        self,
        position: Position,
        thinker: Thinker,
        notation: Notation,
        console: Console,
        *,
        colour: int | None = None,
        seconds: float | None = None,
    ):
        self.position, self.thinker, self.notation, self.console = position, thinker, notation, console
        self.colour, self.seconds = colour, seconds
        self.names = position.game.view.colours
        self._commands: dict[str, Callable[[], None]] = {
            "hint": self._hint,
            "eval": self._eval,
            "undo": self._undo,
            "new": self._new,
            "resign": self._resign,
            "moves": self._moves,
            "help": self._help,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Plays until `quit` or the end of `lines`."""
        entered = self._entered(lines)
        if self.colour is None and not self._ask_colour(entered):
            return
        self._help()
        self._go_on()
        for text in entered:
            if text in QUIT:
                return
            try:
                self._obey(text)
            except ValueError as failure:
                self._say(f"{failure}; help lists what I understand")

    def _entered(self, lines: Iterable[str]) -> Iterator[str]:
        """What the person types, after a prompt; empty lines are skipped."""
        self.console.print("> ", end="")
        for line in lines:
            if line.strip():
                yield line.strip()
            self.console.print("> ", end="")
        self.console.print()

    def _ask_colour(self, entered: Iterator[str]) -> bool:
        """False if the person leaves."""
        self._say(f"Which colour do you play, {self.names[BLACK]} (moves first) or {self.names[WHITE]}? b or w")
        for text in entered:
            self.colour = colour_of(text.lower(), self.position)
            if self.colour is not None or text in QUIT:
                break
            self._say("b or w?")
        return self.colour is not None

    def _obey(self, text: str) -> None:
        if text.lower() in self._commands:
            self._commands[text.lower()]()
        else:
            self.position = self.position.play(self.notation.read(self.position.state, text))
            self._go_on()

    def _go_on(self) -> None:
        """The agent's moves until it is the person's turn, then the board."""
        while not self.position.is_over and self.position.colour_to_move != self.colour:
            action = self._analyse().action
            self._say(f"I play {self.notation.write(self.position.state, action)}")
            self.position = self.position.play(action)
        self._show()
        self.thinker.catch_up(self.position)

    def _analyse(self) -> Analysis:
        return self.thinker.analyse(self.position, seconds=self.seconds)

    def _show(self) -> None:
        for line in drawing.draw(self.position, self.notation):
            self.console.print(Text.assemble(*((text, STYLES[kind]) for text, kind in line)), soft_wrap=True)
        if not self.position.is_over:
            self._say(f"{self.names[self.position.colour_to_move]} to move")
            return
        winner = self.position.winner
        result = "a draw" if winner is None else f"{self.names[winner]} wins"
        self._say(f"Game over: {result} ({self.position.score()}). new starts again")

    def _hint(self) -> None:
        """The search's favourites with their shares, and the network's before search."""
        analysis = self._analyse()
        for action in analysis.best(3):
            share, prior = analysis.policy[action], analysis.prior[action]
            move = self.notation.write(self.position.state, action)
            self._say(f"{move:>12}  {share:4.0%} after search, {prior:4.0%} at first sight")

    def _eval(self) -> None:
        analysis = self._analyse()
        mover = self.names[self.position.colour_to_move]
        self._say(
            f"expected result for {mover}, from -1 (lost) to +1 (won): {analysis.value:+.2f} "
            f"after {analysis.num_simulations} simulations, {analysis.prior_value:+.2f} at first sight"
        )

    def _undo(self) -> None:
        """Back to the person's last turn."""
        self.position = self.position.undo(self.colour)
        self._show()

    def _new(self) -> None:
        self.position = self.position.new()
        self._go_on()

    def _resign(self) -> None:
        self.position = self.position.resign(BLACK if self.colour == BLACK else WHITE)
        self._show()

    def _moves(self) -> None:
        state = self.position.state
        self._say(" ".join(self.notation.write(state, action) for action in self.position.legal_actions()))

    def _help(self) -> None:
        legal = self.position.legal_actions()
        example = self.notation.write(self.position.state, legal[0]) if legal else "none now"
        self._say(HELP.format(example=example))

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def colour_of(text: str, position: Position) -> int | None:
    """BLACK (the first mover) or WHITE for the game's own `b`, `w`, `black` or `white`; None for anything else."""
    names = position.game.view.colours
    return next((colour for colour in (BLACK, WHITE) if text in (names[colour], names[colour][0])), None)
