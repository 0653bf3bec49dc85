"""The Go Text Protocol 2, with the dialect of Hex that HexGui and the benzene programs speak, for every game.

Commands are the methods of `GtpSession`, by name. Positions may be built from stones of any colour in any order
(`Position.play`). When the game is over, `genmove` answers `resign` in Hex, as the benzene programs do, and `pass` in
every other game, and changes nothing. Moves follow `notation`; `resign` is understood in all of them.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path

from muzero_jax.apps.engines import sgf_record
from muzero_jax.apps.engines.clock import Clock, seconds_of
from muzero_jax.apps.engines.protocol import Session, attempt, frame, parse
from muzero_jax.apps.play import VERSION, drawing
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, Position
from muzero_jax.apps.play.thinking import Analysis, Thinker
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.notation import PASS, SWAP, Notation

COLOURS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
ANALYZE_COMMANDS = """\
pspairs/Search policy/muzero-policy
pspairs/Network policy/muzero-prior
gfx/Search policy in colour/muzero-gfx
string/Value/muzero-value
var/Principal variation/muzero-variation
varc/Best move/reg_genmove %c
plist/Legal moves/all_legal_moves
string/Final score/final_score"""
VARIATION_LENGTH = 6
OTHERS_SHADE = 0.7
"""In `muzero-gfx`, the largest number of a move that it would not play."""


class GtpSession(Session):
    """A method for each command. A command that cannot be carried out raises ValueError, whose text is the answer.

    Args:
      resize: the game, the agent and the notation on a board of another size; ValueError if the agent plays none such.
    """

    def __init__(
        self,
        position: Position,
        thinker: Thinker,
        moves: Notation,
        *,
        seconds: float | None = None,
        resize: Callable[[int], tuple[Position, Thinker, Notation]] | None = None,
    ):
        super().__init__(position, thinker, moves, seconds=seconds)
        self.resize = resize
        self.clock = Clock()
        self.komi: float | None = None  # the game's
        self._commands: dict[str, Callable[[list[str]], str | None]] = {
            "name": lambda _: "muzero_jax",
            "version": lambda _: VERSION,
            "protocol_version": lambda _: "2",
            "known_command": self._known_command,
            "list_commands": lambda _: "\n".join(self._commands),
            "quit": self._quit,
            "boardsize": self._boardsize,
            "clear_board": self._clear_board,
            "komi": self._komi,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": lambda arguments: self._genmove(arguments, is_played=False),
            "undo": self._undo,
            "showboard": lambda _: "\n" + drawing.plain(drawing.draw(self.position, self.moves)),
            "final_score": lambda _: self.position.score(self.komi),
            "all_legal_moves": self._all_legal_moves,
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "loadsgf": self._loadsgf,
            "hexgui-analyze_commands": lambda _: ANALYZE_COMMANDS,
            SWAP: self._swap_pieces,
            "muzero-policy": self._policy,
            "muzero-prior": lambda _: self._pairs(self.thinker.prior(self.position)),
            "muzero-value": self._value,
            "muzero-variation": self._variation,
            "muzero-gfx": self._gfx,
        }

    def answer(self, line: str) -> str | None:
        """The framed answer, or None if the line holds no command."""
        command = parse(line)
        if command is None:
            return None
        text, ok = attempt(lambda: self._run(command.name, command.arguments) or "")
        return frame(command, text, ok=ok)

    def _run(self, name: str, arguments: list[str]) -> str | None:
        if name not in self._commands:
            raise ValueError("unknown command")
        return self._commands[name](arguments)

    def _known_command(self, arguments: list[str]) -> str:
        return "true" if arguments and arguments[0] in self._commands else "false"

    def _quit(self, _: list[str]) -> None:
        self.is_done = True

    def _boardsize(self, arguments: list[str]) -> None:
        """`boardsize columns [rows]`; it starts a new game, for HexGui sends no `clear_board` when it connects."""
        if len(arguments) not in (1, 2) or not all(re.fullmatch("-?[0-9]{1,8}", text) for text in arguments):
            raise ValueError("boardsize not an integer")
        requested, size = [int(text) for text in arguments], [len(self.moves.columns), len(self.moves.rows)]
        if requested != size[: len(requested)]:
            self._resize(requested[0], requested[-1])
        self._clear_board([])

    def _resize(self, columns: int, rows: int) -> None:
        """Moves the agent to another board, if its network fits that."""
        if self.resize is None or columns != rows:
            raise ValueError("unacceptable size")
        try:
            self.position, self.thinker, self.moves = self.resize(columns)
        except ValueError as error:
            raise ValueError("unacceptable size") from error
        if self.seconds:
            self.thinker.prepare(self.position, self.seconds)

    def _clear_board(self, _: list[str]) -> None:
        self.position = self.position.new()

    def _komi(self, arguments: list[str]) -> None:
        """Sets Go's komi for `final_score` alone: an agent plays for the komi that it was trained under."""
        try:
            komi = float(arguments[0])
        except (IndexError, ValueError):
            komi = math.nan
        if not abs(komi) < 1e6:
            raise ValueError("komi not a float")
        self.komi = komi

    def _play(self, arguments: list[str]) -> None:
        if len(arguments) != 2:
            raise ValueError("syntax error: play needs a colour and a move")
        colour = self._colour(arguments[:1])
        if arguments[1].lower() == "resign":
            self.position = self.position.resign(colour)
        else:
            self.position = self.position.play(self.moves.read(self._view(colour), arguments[1]), colour)

    def _genmove(self, arguments: list[str], *, is_played: bool = True) -> str:
        colour = self._colour(arguments)
        if self.position.is_over:
            return PASS if self.moves.swap is None else "resign"
        analysis = self._analysis(colour)
        text = self.moves.write(self._view(colour), analysis.action)
        if is_played:
            self.clock.spend(colour, analysis.seconds)
            self.position = self.position.play(analysis.action, colour)
        return text

    def _undo(self, _: list[str]) -> None:
        if not self.position.plies:
            raise ValueError("cannot undo")
        self.position = self.position.undo()

    def _swap_pieces(self, _: list[str]) -> None:
        """Swaps for the side to move, as `play w swap-pieces` does."""
        if self.moves.swap is None:
            raise ValueError("illegal move")
        self.position = self.position.play(self.moves.swap)

    def _all_legal_moves(self, arguments: list[str]) -> str:
        """`all_legal_moves [colour]`, by default of the side to move."""
        if self.position.is_over:
            return ""
        colour = self._colour(arguments) if arguments else self.position.colour_to_move
        state = self._view(colour)
        return " ".join(self.moves.write(state, action) for action in self.position.legal_actions(colour))

    def _time_settings(self, arguments: list[str]) -> None:
        try:
            main_time, byo_yomi_time, stones = arguments
            self.clock.settings(seconds_of(main_time), seconds_of(byo_yomi_time), int(seconds_of(stones)))
        except ValueError:
            raise ValueError("syntax error: time_settings needs main time, byo-yomi time and byo-yomi stones") from None
        seconds = self.clock.allot(self.position.colour_to_move)
        if seconds is not None and not self.position.is_over:
            self.thinker.prepare(self.position, seconds)

    def _time_left(self, arguments: list[str]) -> None:
        if len(arguments) != 3:
            raise ValueError("syntax error: time_left needs a colour, a time and a number of stones")
        colour = self._colour(arguments[:1])
        try:
            self.clock.left(colour, seconds_of(arguments[1]), int(seconds_of(arguments[2])))
        except ValueError:
            raise ValueError("syntax error: not a time") from None

    def _loadsgf(self, arguments: list[str]) -> None:
        """`loadsgf file [move]`: the position before that move, by default the last. Moves are in standard notation."""
        if not 1 <= len(arguments) <= 2 or (len(arguments) == 2 and not arguments[1].isdecimal()):
            raise ValueError("syntax error: loadsgf needs a file and perhaps a move number")
        standard = make_notation(self.position.environment)
        before = min(int(arguments[1][:9]), 10**6) if len(arguments) == 2 else None
        try:
            self.position = sgf_record.load(Path(arguments[0]), self.position, standard, before)
        except OSError:
            raise ValueError("cannot load file") from None

    def _value(self, _: list[str]) -> str:
        """The value by search and by the network alone, for the side to move, in [-1, 1]."""
        analysis = self._analysis()
        search = f"search {analysis.value:+.3f} ({analysis.num_simulations} simulations)"
        return f"{search}, network {analysis.prior_value:+.3f}"

    def _variation(self, _: list[str]) -> str:
        """The expected line: moves that both sides would play from here, each found by its own search."""
        position, words = self.position, []
        first = self._analysis().action
        for action in [first, *self.thinker.line(position.play(first), VARIATION_LENGTH - 1)]:
            words.append(self.moves.write(position.state, action))
            position = position.play(action)
        return " ".join(words)

    def _policy(self, _: list[str]) -> str:
        analysis = self._analysis()
        return self._pairs(analysis.policy, analysis.action)

    def _gfx(self, _: list[str]) -> str:
        """HexGui colours cells by a number in [0, 1]: 1 for the move that it would play, less for all others.

        It knows no other mark in this answer; the text goes into its status line.
        """
        analysis = self._analysis()
        shades = OTHERS_SHADE * analysis.policy / analysis.policy.max()
        shades[analysis.action] = 1.0
        move = self.moves.write(self.position.state, analysis.action)
        pairs = self._pairs(shades, analysis.action)
        return f"INFLUENCE {pairs} TEXT plays {move}, value {analysis.value:+.3f}"

    def _pairs(self, policy, first: int | None = None) -> str:
        """`a1 0.41 b2 0.07 ...`: `first`, then moves with at least a hundredth. HexGui has no cell for a swap."""
        state = self.position.state
        order = [int(a) for a in (-policy).argsort(kind="stable") if policy[a] >= 0.01 and a != first]
        words = [(self.moves.write(state, a), policy[a]) for a in ([] if first is None else [first]) + order]
        return " ".join(f"{word} {share:.2f}" for word, share in words if word != SWAP)

    def _analysis(self, colour: int | None = None) -> Analysis:
        allotted = self.clock.allot(self.position.colour_to_move if colour is None else colour)
        return self.thinker.analyse(self.position, colour, seconds=self.seconds if allotted is None else allotted)

    def _view(self, colour: int):
        """The state that a move of `colour` is written from; after the end, any."""
        try:
            return self.position.seen_by(colour)
        except IllegalMove:
            return self.position.state

    @staticmethod
    def _colour(arguments: list[str]) -> int:
        if len(arguments) != 1 or arguments[0].lower() not in COLOURS:
            raise ValueError("syntax error: the colour is b or w")
        return COLOURS[arguments[0].lower()]
