"""A game against the agent in the terminal: a coloured board, moves in the game's notation, a few commands.

It reads any stream of lines, so that a pipe or a test can play; rich leaves out colours if the output is no terminal.
"""

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.play import drawing
from muzero_jax.apps.play.drawing import Piece, judged
from muzero_jax.apps.play.position import BLACK, WHITE, Position
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games.notation import Notation

INKS = {
    "black": "bold bright_white on black",
    "white": "bold black on bright_white",
    "red": "bold red",
    "yellow": "bold yellow",
    "blue": "bold bright_blue",
}
"""The style of a side's letters; black and white differ on any background."""
MARKS = {drawing.LAST: "underline", drawing.EDGE: "not bold", drawing.WON: "not dim bold green"}
QUIT = ("quit", "exit", "q")
HELP = """\
a move     in the game's notation, e.g. {example}
hint       what the agent would play in your place
eval       how the agent judges the position
undo       take back your last move and the answer to it
new        start again
side       change sides
resign     give the game up
moves      all legal moves
quit       leave (or Ctrl-D)"""


class TerminalGame:
    """A game between one person and the agent.

    Args:
      colour: the person's; if None, the person is asked.
      seconds: the agent's time for a move; if None, it searches its usual budget.
    """

    help_text = HELP

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
        self.position = position
        self.thinker = thinker
        self.notation = notation
        self.console = console
        self.colour = colour
        self.seconds = seconds
        self.names = position.game.view.colours
        self._commands: dict[str, Callable[[], None]] = {
            "hint": self._hint,
            "eval": self._eval,
            "undo": self._undo,
            "new": self._new,
            "side": self._change_sides,
            "resign": self._resign,
            "moves": self._moves,
            "help": self._help,
        }

    def run(self, lines: Iterable[str]) -> None:
        """Plays until `quit` or the end of `lines`."""
        entered = self._entered(lines)
        self._say_goal()
        if self.colour is None and not self._ask_colour(entered):
            return
        self._say_usage()
        self._go_on()
        for text in entered:
            if text.lower() in QUIT:
                return
            try:
                self._obey(text)
            except ValueError as failure:
                self._say(f"{failure}; help lists what I understand")

    def _entered(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines that the person types after each prompt; empty lines are skipped."""
        self.console.print("> ", end="")
        for line in lines:
            if line.strip():
                yield line.strip()
            self.console.print("> ", end="")
        self.console.print()

    def _ask_colour(self, entered: Iterator[str]) -> bool:
        """Asks for the person's side; False if the person quits."""
        question = f"{self.names[BLACK][0]} or {self.names[WHITE][0]}".lower()
        self._say(f"Which side do you play, {self.names[BLACK]} (moves first) or {self.names[WHITE]}? {question}")
        for text in entered:
            self.colour = colour_of(text.lower(), self.position)
            if self.colour is not None or text.lower() in QUIT:
                break
            self._say(f"{question}? (quit leaves)")
        return self.colour is not None

    def _obey(self, text: str) -> None:
        if text.lower() in self._commands:
            self._commands[text.lower()]()
        else:
            self._play(self.notation.read(self.position.state, text))
            self._go_on()

    def _play(self, action: int) -> None:
        """Plays a move of either side; a swap is announced, because it changes stones on the board."""
        self.position = self.position.play(action)
        if self.position.swapped:
            first, second = self.names
            self._say(f"{second} swapped: {first}'s stone became {second}'s, mirrored")

    def _go_on(self) -> None:
        """Plays the agent's moves until it is the person's turn, then shows the board."""
        while not self.position.is_over and self.position.colour_to_move != self.colour:
            told = len(self._seen.told)
            self._play(self._analyse().action)
            if len(self._seen.told) > told:
                self._say(f"I play {self._seen.texts(self.notation)[-1]}")
        self._show()
        self.thinker.catch_up(self.position)

    def _analyse(self) -> Analysis:
        return self.thinker.analyse(self.position, seconds=self.seconds)

    def _show(self) -> None:
        for line in drawing.draw(self._seen, self.notation):
            self.console.print(Text.assemble(*((piece.text, self._style(piece)) for piece in line)), soft_wrap=True)
        self._say_status()

    @property
    def _seen(self) -> Position:
        return self.position._replace(viewer=self.colour)

    def _say_status(self) -> None:
        """Prints whose turn it is, or the result in a frame."""
        if not self.position.is_over:
            self._say(self._standing())
            return
        self.console.print(Panel.fit(Text(f"Game over: {self._standing()}", style="bold"), padding=(0, 2)))
        self._say("new starts again, undo takes a move back")

    def _standing(self) -> str:
        """Whose turn it is, or how the game ended."""
        return self.position.result or f"{self.names[self.position.colour_to_move]} to move"

    def _style(self, piece: Piece) -> Style:
        first, second = (INKS[ink] for ink in self.position.game.view.inks)
        style = {drawing.FIRST: first, drawing.SECOND: second}.get(piece.kind, "dim")
        return Style.parse(style) + Style.parse(MARKS.get(piece.mark, ""))

    def _hint(self) -> None:
        """Prints the agent's move, then the likeliest moves with their shares by search and by the network."""
        analysis = self._analyse()
        self._say(f"I would play {self.notation.write(self.position.state, analysis.action)}")
        for action in analysis.best(3):
            share = analysis.policy[action]
            prior = analysis.prior[action]
            move = self.notation.write(self.position.state, action)
            self._say(f"{move:>12}  {share:4.0%} after search, {prior:4.0%} at first sight")
        if analysis.policy[analysis.action] < analysis.policy.max():
            self._say(self.thinker.why)

    def _eval(self) -> None:
        analysis = self._analyse()
        to_move = self.names[self.position.colour_to_move]
        most = self.thinker.most_value
        self._say(f"expected result for {to_move}, from {-most:g} (lost) to +{most:g} (won): {judged(analysis)}")

    def _undo(self) -> None:
        """Goes back to the person's last turn."""
        self.position = self.position.undo(self.colour)
        self._show()

    def _change_sides(self) -> None:
        """The person continues with the other side."""
        assert self.colour is not None
        if self._seen.is_veiled:
            self._say("the other side would see what was hidden from you; new, then side, changes sides")
            return
        self.colour = 1 - self.colour
        self._say(f"you play {self.names[self.colour]} now")
        self._go_on()

    def _new(self) -> None:
        self.position = self.position.new()
        self._say_goal()
        self._go_on()

    def _resign(self) -> None:
        self.position = self.position.resign(BLACK if self.colour == BLACK else WHITE)
        self._show()

    def _moves(self) -> None:
        state = self.position.state
        self._say(" ".join(self.notation.write(state, action) for action in self.position.legal_actions()))

    def _help(self) -> None:
        self._say_goal()
        self._say_usage()

    def _say_goal(self) -> None:
        """Prints the game, its rules in short, and what letters around the board mean."""
        game = self.position.game
        first, second = drawing.letters(self.position)
        self.console.print(f"{game.title}: {game.goal}" if game.goal else game.title, markup=False, highlight=False)
        if game.view.has_edges:
            names = " and ".join(self.names)
            self._say(f"Small {first.lower()} and {second.lower()} around the board are the edges of {names}.")

    def _say_usage(self) -> None:
        legal = self.position.legal_actions()
        example = self.notation.write(self.position.state, legal[0]) if legal else "none now"
        self._say(self.help_text.format(example=example))

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def colour_of(text: str, position: Position) -> int | None:
    """BLACK (the first player) or WHITE for a side's name or its initial; None for anything else.

    In games whose sides have other names, `b` or `black` is also the first player, and `w` or `white` the second.
    """
    names = [name.lower() for name in position.game.view.colours]
    initials = [name[0] for name in names]
    for known in (names, initials, ["black", "white"], ["b", "w"]):
        if text.lower() in known:
            return (BLACK, WHITE)[known.index(text.lower())]
    return None
