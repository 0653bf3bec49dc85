"""The Universal Chess Interface: other programs as opponents (`UciEngine`), and our engine (`UciSession`).

Opponents may speak USI instead, like shogi programs. Our engine plays chess and (with moves a1 to e5) Gardner's chess.
Its search is one compiled program that cannot be interrupted, so `go` answers once its budget is searched; only with
`infinite` or `ponder` does the answer wait for `stop` or `ponderhit`. UCI has no error answers: a command that fails is
answered by an `info string` and leaves the position unchanged. Depth, mate and `searchmoves` are ignored.
"""

import difflib
import itertools
import math
import re
from collections.abc import Callable, Sequence

from muzero_jax.agent.analysis import Analysis
from muzero_jax.apps.engines.engine import Engine, EngineMove, EngineProcess
from muzero_jax.apps.engines.protocol import MOVES_TO_GO, EngineSession, attempt, share
from muzero_jax.apps.play import VERSION
from muzero_jax.apps.play.position import BLACK, WHITE
from muzero_jax.apps.play.thinking import MOST_SIMULATIONS
from muzero_jax.types import EnvState

GO = "go movetime 1000"
"""The command that asks another program for a move, unless its settings give another `go`."""
VARIANT = "UCI_Variant"
"""The option that chooses the game in programs that play several."""
NO_MOVE = "0000"
COMMANDS = "uci isready ucinewgame setoption position go stop ponderhit quit".split()
LIMITS = ("wtime", "btime", "winc", "binc", "movestogo", "nodes", "movetime")


class UciEngine(Engine):
    """A program that speaks UCI or USI. Settings are options, `NAME=VALUE`, or the whole `go` command.

    Args:
      protocol: uci or usi, also the first command that it is sent.
      variant: the game's name among the values of `UCI_Variant` (`Game.variant`).
    """

    def __init__(self, process: EngineProcess, protocol: str, variant: str | None = None):
        super().__init__(process)
        self._protocol = protocol
        self._variant = variant
        self._go = GO

    def greet(self, settings: Sequence[str]) -> None:
        """Sets the options; raises EngineError for one that the program did not list."""
        said = self._ask(self._protocol, f"{self._protocol}ok")
        options = {match[1]: line.split() for line in said if (match := re.match(r"option name (.+?) type ", line))}
        self.title = next((line.removeprefix("id name ") for line in said if line.startswith("id name ")), "")
        if self._variant and VARIANT in options:  # programs without it play one game, which they do not name
            if self._variant not in options[VARIANT]:
                raise self.process.failure(f"does not play {self._variant}: {VARIANT} has no such value")
            settings = [f"{VARIANT}={self._variant}", *settings]
        for setting in settings:
            if setting.split()[0] == "go":
                self._go = setting
            else:
                self._set_option(setting, list(options))

    def new_game(self) -> None:
        """Announces a new game, and waits until the program is ready."""
        self.process.send(f"{self._protocol}newgame")
        self._ask("isready", "readyok")

    def choose(self, plies: Sequence[EngineMove], colour: int, state: EnvState | None = None) -> str:
        """Sends all moves of the game, then `go`; returns the program's move."""
        moves = " ".join([" moves", *(ply.text for ply in plies)]) if plies else ""
        self.process.send(f"position startpos{moves}")
        _, move, *_ = [*self._ask(self._go, "bestmove", is_move=True)[-1].split(), ""]
        return move  # not a legal move if the program considers the game over

    def _set_option(self, setting: str, known: Sequence[str]) -> None:
        name, _, value = (part.strip() for part in setting.partition("="))
        if name.lower() not in (other.lower() for other in known):
            closest = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.0)) or "none"
            raise self.process.failure(f"has no option {name!r}; the closest are {closest}")
        self.process.send(f"setoption name {name} value {value}" if value else f"setoption name {name}")

    def _ask(self, line: str, last_word: str, *, is_move: bool = False) -> list[str]:
        """All lines of the answer, up to one that begins with `last_word`."""
        self.process.send(line, is_move=is_move)
        said = [self.process.read()]
        while said[-1].split()[:1] != [last_word]:
            said.append(self.process.read())
        return said


class UciSession(EngineSession):
    """Our engine, a method for each command. UCI's white is `BLACK` here, because white moves first in chess."""

    def answer(self, line: str) -> str:
        """The lines that answer one line, often none. Unknown words before a command are skipped, as UCI demands."""
        words = list(itertools.dropwhile(lambda word: word not in COMMANDS, line.split()))
        if not words:
            return ""
        command: Callable[[list[str]], list[str] | None] = getattr(self, f"_{words[0]}")
        text, ok = attempt(lambda: "".join(f"{said}\n" for said in command(words[1:]) or []))
        return text if ok else f"info string {text}\n"

    def _uci(self, _: list[str]) -> list[str]:
        default = self.thinker.num_simulations
        return [
            f"id name muzero_jax {VERSION}",
            "id author the authors of muzero_jax",
            f"option name Simulations type spin default {default} min 1 max {max(default, MOST_SIMULATIONS)}",
            "uciok",
        ]

    def _isready(self, _: list[str]) -> list[str]:
        """Compiles the search, because a GUI waits for this answer."""
        if not self.position.is_over:
            self.thinker.prepare(self.position, self.seconds)
        return ["readyok"]

    def _ucinewgame(self, _: list[str]) -> None:
        self.position = self.position.new()

    def _setoption(self, words: list[str]) -> None:
        """`setoption name Simulations value 128`."""
        name, _, value = " ".join(words).removeprefix("name ").partition(" value ")
        if name.lower() != "simulations":
            raise ValueError(f"no such option: {name[:40]!r}")
        digits = re.fullmatch("0*([0-9]{1,9})", value.strip())
        if not digits or not 1 <= int(digits[1]) <= MOST_SIMULATIONS:
            raise ValueError(f"Simulations must be a whole number from 1 to {MOST_SIMULATIONS}")
        self.thinker.num_simulations = int(digits[1])

    def _position(self, words: list[str]) -> None:
        """`position startpos|fen FEN [moves ...]`."""
        start, _, moves = (part.split() for part in " ".join(words).partition("moves"))
        if start[:1] == ["fen"] and self.position.game.read_fen:
            state, colour = self.position.game.read_fen(" ".join(start[1:]))
            position = self.position.new(state, BLACK if colour == 0 else WHITE)
        elif start == ["startpos"]:
            position = self.position.new()
        else:
            raise ValueError("position needs startpos or fen")
        for move in moves:
            position = position.play(self.moves.read(position.state, move))
        self.position = position

    def _go(self, words: list[str]) -> list[str]:
        self.held = None
        if self.position.is_over:
            return [f"bestmove {NO_MOVE}"]
        limits = _limits(words)
        nodes = min(limits.get("nodes", 0), MOST_SIMULATIONS)
        analysis = self.thinker.analyse(
            self.position,
            num_simulations=1 << (nodes.bit_length() - 1) if nodes else None,
            seconds=None if "infinite" in words else self._time(limits),
        )
        best = f"bestmove {self.moves.write(self.position.state, analysis.action)}"
        if "infinite" in words or "ponder" in words:
            self.held = best
            return [self._info(analysis)]
        return [self._info(analysis), best]

    def _time(self, limits: dict[str, int]) -> float | None:
        """Seconds for this move: `movetime`, a share of the clock, or the session's default."""
        if "movetime" in limits:
            return share(limits["movetime"] / 1000, 1)
        side = "w" if self.position.colour_to_move == BLACK else "b"
        if f"{side}time" in limits:
            increment = limits.get(f"{side}inc", 0) / 1000
            return share(limits[f"{side}time"] / 1000, limits.get("movestogo", MOVES_TO_GO), increment)
        return self.seconds

    def _info(self, analysis: Analysis) -> str:
        """The `info` line. The value becomes centipawns by 290.68 tan(1.5481 v): +0.3 is 146."""
        centipawns = round(290.68 * math.tan(1.5481 * max(-1.0, min(1.0, analysis.value))))
        milliseconds = max(1, round(analysis.seconds * 1000))
        speed = analysis.num_simulations * 1000 // milliseconds
        move = self.moves.write(self.position.state, analysis.action)
        counts = f"nodes {analysis.num_simulations} nps {speed} time {milliseconds}"
        return f"info depth 1 score cp {centipawns} {counts} pv {move}"

    def _stop(self, _: list[str]) -> list[str]:
        held = self.held
        self.held = None
        return [held] if held else []

    _ponderhit = _stop


def _limits(words: list[str]) -> dict[str, int]:
    """The limits of a `go` command by name; at least 0, nodes at least 1; words without a number are left out."""
    return {
        name: max(int(name == "nodes"), int(value))
        for name, value in itertools.pairwise(words)
        if name in LIMITS and re.fullmatch("-?[0-9]{1,12}", value)
    }
