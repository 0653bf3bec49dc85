"""The Go Text Protocol 2: other programs as opponents (`GtpEngine`), and our engine (`GtpSession`).

Our engine speaks it for every game, with the commands for Hex that HexGui and the benzene programs use. Positions may
be built from stones of any colour in any order (`Position.play`). When the game is over, `genmove` changes nothing and
answers `resign` in Hex, as the benzene programs do, and `pass` in every other game.

A swap in Hex takes black's stone off and puts white's on the mirrored cell; the players keep their colours, as in
HexGui. In MoHex the stone stays, and the players exchange their colours. Other programs know no swap. For programs of
the last two kinds, every move after a swap is mirrored and given the other colour, which is the same position.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.engines.engine import Engine, EngineMove, EngineProcess
from muzero_jax.apps.engines.game_clock import GameClock
from muzero_jax.apps.engines.protocol import EngineSession, attempt
from muzero_jax.apps.play import VERSION, drawing
from muzero_jax.apps.play.position import BLACK, WHITE, IllegalMove, Position
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games import sgf
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.notation import LETTERS, PASS, SWAP, Notation
from muzero_jax.types import EnvState

COMMANDS = """quit boardsize clear_board komi play genmove undo all_legal_moves time_settings time_left loadsgf
    swap-pieces muzero-policy muzero-value muzero-variation muzero-gfx""".split()
"""Commands that have a method each."""
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
"""In `muzero-gfx`, the largest number for moves other than the chosen one."""
MOST_SGF_BYTES = 1_000_000


class GtpEngine(Engine):
    """A program that speaks GTP; the user's settings are commands, sent as they are.

    Args:
      columns, rows: size of the board; 0 if its cells have no names.
      komi: the game's, if it has one.
    """

    def __init__(self, process: EngineProcess, columns: int, rows: int, komi: float | None = None):
        super().__init__(process)
        self._columns = columns
        self._rows = rows
        self._komi = komi
        self._has_answered = False
        self._num_told = 0

    def greet(self, settings: Sequence[str]) -> None:
        """Asks for the name and version, then sends the settings."""
        self.title = f"{self.ask('name')} {self.ask('version', may_lack=True)}".strip()
        for line in settings:
            self.ask(line)

    def new_game(self) -> None:
        """Sets up the board. `boardsize` and `komi` may be unknown to programs for games in which they never vary."""
        if self._columns:
            rows = f" {self._rows}" if self._rows != self._columns else ""
            self.ask(f"boardsize {self._columns}{rows}", may_lack=True)
        self.ask("clear_board")
        if self._komi is not None:
            self.ask(f"komi {self._komi:g}", may_lack=True)
        self._num_told = 0

    def choose(self, plies: Sequence[EngineMove], colour: int, state: EnvState | None = None) -> str:
        """Sends new moves, then `genmove`. A forced pass may be rejected, because some programs pass by themselves."""
        for ply in plies[self._num_told :]:
            tell = self.exchange if ply.is_forced_pass else self.ask
            tell(f"play {'bw'[ply.colour]} {ply.text}")
        self._num_told = len(plies) + 1  # including the move that it makes now
        return self.ask(f"genmove {'bw'[colour]}", is_move=True)

    def ask(self, line: str, *, is_move: bool = False, may_lack: bool = False) -> str:
        """The answer to a command; "" if it `may_lack` the command and does. Raises EngineError for an error answer."""
        ok, text = self.exchange(line, is_move=is_move)
        if not ok and not (may_lack and "unknown command" in text.lower()):
            raise self.process.failure(f"rejected {line!r} with {text!r}")
        return text if ok else ""

    def exchange(self, line: str, *, is_move: bool = False) -> tuple[bool, str]:
        """(whether the command succeeded, the text of the answer)."""
        self.process.send(line, is_move=is_move)
        while not re.match("[=?]", answer := self.process.read()):
            if answer and self._has_answered:  # before its first answer it may print a greeting
                raise self.process.failure(f"answered {line!r} with {answer[:60]!r}, which is not GTP")
        self._has_answered = True
        text = " ".join([re.sub("^[=?][0-9]*", "", answer), *iter(self.process.read, "")])
        return answer.startswith("="), text.strip()


class HexEngine(GtpEngine):
    """A GTP engine for Hex; at the start it finds out what the program means by a swap."""

    swaps: str | None = "pieces"
    """What its swap exchanges: pieces or sides; None if it knows no swap."""

    def greet(self, settings: Sequence[str]) -> None:
        """`GtpEngine.greet`, then tries a swap; the legal moves after it show what it means."""
        super().greet(settings)
        self.new_game()
        self.ask("play b b1")
        is_known, _ = self.exchange(f"play w {SWAP}")
        has_list, legal = self.exchange("all_legal_moves") if is_known else (False, "")
        if not is_known or has_list and "b1" not in legal.lower().split():
            self.swaps = "sides" if is_known else None

    def choose(self, plies: Sequence[EngineMove], colour: int, state: EnvState | None = None) -> str:
        """`GtpEngine.choose`, with the moves after a swap translated for programs that mean another one."""
        index = next((i for i, ply in enumerate(plies) if ply.text == SWAP), None)
        if index is None or self.swaps == "pieces":
            return super().choose(plies, colour)
        told = plies[: index + (self.swaps == "sides")]
        later = [ply._replace(colour=1 - ply.colour, text=mirrored(ply.text)) for ply in plies[index + 1 :]]
        return mirrored(super().choose([*told, *later], 1 - colour))


def mirrored(text: str) -> str:
    """The name of a cell with row and column exchanged; other words are unchanged."""
    cell = re.fullmatch("([a-z])([0-9]{1,2})", text.lower())
    if not cell or not 1 <= int(cell[2]) <= len(LETTERS):
        return text
    return f"{LETTERS[int(cell[2]) - 1]}{LETTERS.index(cell[1]) + 1}"


class GtpSession(EngineSession):
    """Our engine. A command that fails raises ValueError, whose text becomes the error answer.

    Args:
      resize: size -> game, agent and notation on that board; raises ValueError if the agent cannot play it.
    """

    def __init__(
        self, *arguments: Any, resize: Callable[[int], tuple[Position, Thinker, Notation]] | None = None, **options: Any
    ):
        super().__init__(*arguments, **options)
        self.resize = resize
        self.clock = GameClock()
        self.final_komi: float | None = None  # for `final_score` only; the agent plays for the komi of its training
        self._commands: dict[str, Callable[[list[str]], str | None]] = {
            "name": lambda _: "muzero_jax",
            "version": lambda _: VERSION,
            "protocol_version": lambda _: "2",
            "known_command": lambda words: "true" if words and words[0] in self._commands else "false",
            "list_commands": lambda _: "\n".join(self._commands),
            "reg_genmove": lambda words: self._genmove(words, is_played=False),
            "showboard": lambda _: "\n" + drawing.plain(drawing.draw(self.position, self.moves)),
            "final_score": lambda _: self.position.score(self.final_komi),
            "hexgui-analyze_commands": lambda _: ANALYZE_COMMANDS,
            "muzero-prior": lambda _: self._pairs(self.thinker.prior(self.position)),
        }
        self._commands |= {word: getattr(self, f"_{word.replace('-', '_')}") for word in COMMANDS}

    def answer(self, line: str) -> str | None:
        """The framed answer, or None if the line holds no command."""
        number, words = parse(line)
        if not number and not words:
            return None
        text, ok = attempt(lambda: self._run(words))
        body = "\n".join(line.rstrip() for i, line in enumerate(text.split("\n")) if line.strip() or not i)
        return f"{'=' if ok else '?'}{number} {body}\n\n"  # a blank line ends the answer, so the body must have none

    def _run(self, words: list[str]) -> str:
        if not words or words[0] not in self._commands:
            raise ValueError("unknown command")
        return self._commands[words[0]](words[1:]) or ""

    def _boardsize(self, words: list[str]) -> None:
        """`boardsize columns [rows]`; starts a new game, because HexGui sends no `clear_board` when it connects."""
        if len(words) not in (1, 2) or not all(re.fullmatch("-?[0-9]{1,8}", word) for word in words):
            raise ValueError("boardsize not an integer")
        columns, rows = int(words[0]), int(words[-1])
        is_other = [columns, rows][: len(words)] != [len(self.moves.columns), len(self.moves.rows)][: len(words)]
        if is_other:
            try:
                if self.resize is None or columns != rows:
                    raise ValueError("the agent plays no such board")
                self.position, self.thinker, self.moves = self.resize(columns)
            except ValueError as error:
                raise ValueError("unacceptable size") from error
        self._clear_board([])
        if is_other and (seconds := self._seconds(BLACK)) is not None:
            self.thinker.prepare(self.position, seconds)

    def _clear_board(self, _: list[str]) -> None:
        self.position = self.position.new()
        self.clock.restart()

    def _komi(self, words: list[str]) -> None:
        if not words or not re.fullmatch(r"[+-]?[0-9]{0,5}\.?[0-9]{1,9}", words[0]):
            raise ValueError("komi not a float")
        self.final_komi = float(words[0])

    def _play(self, words: list[str]) -> None:
        if len(words) != 2:
            raise ValueError("syntax error: play needs a colour and a move")
        colour = self._colour(words[:1])
        if words[1].lower() == "resign":
            self.position = self.position.resign(colour)
        else:
            self.position = self.position.play(self.moves.read(self._view(colour), words[1]), colour)

    def _genmove(self, words: list[str], *, is_played: bool = True) -> str:
        colour = self._colour(words)
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

    def _all_legal_moves(self, words: list[str]) -> str:
        """`all_legal_moves [colour]`, by default of the side to move."""
        if self.position.is_over:
            return ""
        colour = self._colour(words) if words else self.position.colour_to_move
        state = self._view(colour)
        return " ".join(self.moves.write(state, action) for action in self.position.legal_actions(colour))

    def _time_settings(self, words: list[str]) -> None:
        main_time, byo_yomi_time, stones = _numbers(words, 3, "time_settings needs main time, byo-yomi time and stones")
        self.clock.settings(main_time, byo_yomi_time, int(stones))
        seconds = self.clock.allot(self.position.colour_to_move)
        if seconds is not None and not self.position.is_over:
            self.thinker.prepare(self.position, seconds)

    def _time_left(self, words: list[str]) -> None:
        colour = self._colour(words[:1])
        seconds, stones = _numbers(words[1:], 2, "time_left needs a colour, a time and a number of stones")
        self.clock.left(colour, seconds, int(stones))

    def _loadsgf(self, words: list[str]) -> None:
        """`loadsgf file [move]`: the position before that move, by default the last. Moves are in standard notation."""
        if not 1 <= len(words) <= 2 or (len(words) == 2 and not words[1].isdecimal()):
            raise ValueError("syntax error: loadsgf needs a file and perhaps a move number")
        path = Path(words[0])
        try:
            if not path.is_file() or path.stat().st_size > MOST_SGF_BYTES:
                raise ValueError("there is no such file, or it is too large")
            size, moves = sgf.read(path.read_text(encoding="utf-8", errors="replace"))
            self.position = self._replayed(size, moves, int(words[1][:9]) if len(words) == 2 else len(moves) + 1)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot load file: {error}") from None

    def _replayed(self, size: int | None, moves: list[sgf.SgfMove], end: int) -> Position:
        """The position before the move with the number `end`."""
        position = self.position.new()
        notation = make_notation(self.position.environment)
        number = 0
        if size not in (None, len(notation.columns)):
            raise ValueError(f"its board has size {size}, not {len(notation.columns)}")
        for move in moves:
            number += not move.is_setup
            if number >= end:
                break
            if move.text.lower() == "resign":
                position = position.resign(move.colour)
            else:
                action = (notation.read_sgf or partial(notation.read, position.state))(move.text)
                position = position.play(action, move.colour)
        return position

    def _muzero_value(self, _: list[str]) -> str:
        """The search value and the network's own value, for the side to move, in [-1, 1]."""
        analysis = self._analysis()
        search = f"search {analysis.value:+.3f} ({analysis.num_simulations} simulations)"
        return f"{search}, network {analysis.prior_value:+.3f}"

    def _muzero_variation(self, _: list[str]) -> str:
        """The principal variation: the moves of both sides from here, each found by its own search."""
        position = self.position
        words = []
        first = self._analysis().action
        for action in [first, *self.thinker.line(position.play(first), VARIATION_LENGTH - 1)]:
            words.append(self.moves.write(position.state, action))
            position = position.play(action)
        return " ".join(words)

    def _muzero_policy(self, _: list[str]) -> str:
        analysis = self._analysis()
        return self._pairs(analysis.policy, analysis.action)

    def _muzero_gfx(self, _: list[str]) -> str:
        """Numbers in [0, 1] by which HexGui colours cells: 1 for the agent's move, at most `OTHERS_SHADE` for others.

        HexGui has no other mark in this answer; it shows the text in its status line.
        """
        analysis = self._analysis()
        shades = OTHERS_SHADE * analysis.policy / analysis.policy.max()
        shades[analysis.action] = 1.0
        move = self.moves.write(self.position.state, analysis.action)
        pairs = self._pairs(shades, analysis.action)
        return f"INFLUENCE {pairs} TEXT plays {move}, value {analysis.value:+.3f}"

    def _pairs(self, policy, first: int | None = None) -> str:
        """`a1 0.41 b2 0.07 ...`: `first`, then moves of at least 0.01; no swap, because HexGui has no cell for it."""
        state = self.position.state
        order = [int(a) for a in (-policy).argsort(kind="stable") if policy[a] >= 0.01 and a != first]
        words = [(self.moves.write(state, a), policy[a]) for a in ([] if first is None else [first]) + order]
        return " ".join(f"{word} {share:.2f}" for word, share in words if word != SWAP)

    def _analysis(self, colour: int | None = None) -> Analysis:
        seconds = self._seconds(self.position.colour_to_move if colour is None else colour)
        return self.thinker.analyse(self.position, colour, seconds=seconds)

    def _seconds(self, colour: int) -> float | None:
        """Seconds for the next move of `colour`; None searches the agent's usual budget."""
        allotted = self.clock.allot(colour)
        return self.seconds if allotted is None else allotted

    def _view(self, colour: int):
        """The state for reading and writing moves of `colour`; the present one if that colour cannot move."""
        try:
            return self.position.seen_by(colour)
        except IllegalMove:
            return self.position.state

    @staticmethod
    def _colour(words: list[str]) -> int:
        if len(words) != 1 or words[0].lower() not in COLOURS:
            raise ValueError("syntax error: the colour is b or w")
        return COLOURS[words[0].lower()]


def parse(line: str) -> tuple[str, list[str]]:
    """(a command's number or "", its words), without comments and control characters."""
    text = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line.replace("\t", " ")).split("#")[0]
    match = re.match(r"\s*([0-9]+)(?=\s|$)", text)
    return (match[1], text[match.end() :].split()) if match else ("", text.split())


def _numbers(words: list[str], count: int, needed: str) -> list[float]:
    """`count` finite numbers, none below 0; else ValueError."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(0 <= number < math.inf for number in numbers):
        raise ValueError(f"syntax error: {needed}")
    return numbers
