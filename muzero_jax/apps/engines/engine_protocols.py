"""The talk with another program in a match, by GTP 2 and by UCI or USI: a new game, the moves, and whose turn it is.

An engine is told all moves of a game from its opening, so a match needs nothing that only some programs can, such as
positions set up from stones or FEN. Which of them are new to it a GTP engine's client remembers; UCI sends all of them.
"""

import difflib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from muzero_jax.apps.engines.engine_process import EngineProcess
from muzero_jax.types import EnvState

RESIGN = "resign"
START_SECONDS = 60.0
"""The least time that an engine has to say that it is there, and ready: it may load a network, or compile."""
GO = "go movetime 1000"
"""The command by which a UCI engine moves, where its settings have no other."""
VARIANT = "UCI_Variant"
"""The option of programs that play several games."""
MISTAKES = {"(none)", "none", "0000", "win", "pass"}
"""Answers to `go` that no move is, in any of the games: the engine takes the game for over."""


class Ply(NamedTuple):
    """A move of a game."""

    colour: int  # 0 for the first player
    action: int
    text: str  # in the game's notation, as engines are told it
    is_forced_pass: bool = False  # nothing else was legal


class Setup(NamedTuple):
    """A game as an engine is told of it before it begins."""

    columns: int  # of a board whose cells have names, else 0
    rows: int
    komi: float | None = None
    variant: str | None = None  # `Game.variant`


class Engine(ABC):
    """Another program that plays; every method raises EngineError if the program fails."""

    title = ""
    """The name that it gives itself."""

    def __init__(self, process: EngineProcess, setup: Setup, seconds: float):
        self.process, self.setup, self.seconds = process, setup, seconds

    @abstractmethod
    def greet(self, settings: Sequence[str]) -> None:
        """Waits until it is there, and tells it the user's settings."""

    @abstractmethod
    def new_game(self) -> None:
        """Begins a game at its opening."""

    @abstractmethod
    def choose(self, plies: Sequence[Ply], colour: int, state: EnvState | None = None) -> str:
        """Its move after these moves of the game, or `resign`; it is the turn of `colour`.

        `state` is the position, for a program that is told it in place of the moves.
        """

    def _deadline(self, *, is_start: bool = False) -> float:
        return time.monotonic() + (max(self.seconds, START_SECONDS) if is_start else self.seconds)


class GtpEngine(Engine):
    """A program that speaks the Go Text Protocol 2; settings are commands, sent as they are."""

    _has_answered = False
    _num_told = 0

    def greet(self, settings: Sequence[str]) -> None:
        """Asks for its name, and sends each setting."""
        self.title = self.ask("name", is_start=True)
        version = self._try("version")
        self.title += f" {version}" if version else ""
        for line in settings:
            self.ask(line, is_start=True)

    def new_game(self) -> None:
        """A command for what never varies in the engine's game, such as the size of Othello's board, may be unknown."""
        columns, rows, komi, _ = self.setup
        if columns:
            self._try(f"boardsize {columns}" if columns == rows else f"boardsize {columns} {rows}")
        self.ask("clear_board", is_start=True)
        if komi is not None:
            self._try(f"komi {komi:g}")
        self._num_told = 0

    def choose(self, plies: Sequence[Ply], colour: int, state: EnvState | None = None) -> str:
        """Tells it what it does not know yet, and lets it move. Some programs pass by themselves, and refuse a pass."""
        for ply in plies[self._num_told :]:
            line = f"play {'bw'[ply.colour]} {ply.text}"
            if ply.is_forced_pass:
                self._exchange(line)
            else:
                self.ask(line)
        self._num_told = len(plies) + 1  # with the move that it makes now
        return self.ask(f"genmove {'bw'[colour]}")

    def ask(self, line: str, *, is_start: bool = False) -> str:
        """The answer to a command, which it must not refuse."""
        ok, text = self._exchange(line, is_start=is_start)
        if not ok:
            raise self.process.failure(f"refuses {line!r}; it said {text!r}")
        return text

    def _try(self, line: str) -> str | None:
        """`ask`, but None if it knows no such command."""
        ok, text = self._exchange(line, is_start=True)
        if not ok and "unknown command" not in text.lower():
            raise self.process.failure(f"refuses {line!r}; it said {text!r}")
        return text if ok else None

    def _exchange(self, line: str, *, is_start: bool = False) -> tuple[bool, str]:
        """Whether it did what it was told, and the text of its answer."""
        self.process.send(line)
        deadline = self._deadline(is_start=is_start)
        while not re.match("[=?]", answer := self.process.read(deadline)):
            if answer and self._has_answered:  # before that it may greet us
                raise self.process.failure(f"answered {line!r} with {answer[:60]!r}, which is no GTP")
        self._has_answered = True
        rest = iter(lambda: self.process.read(deadline), "")
        text = " ".join([re.sub("^[=?][0-9]*", "", answer), *rest])
        return answer.startswith("="), text.strip()


class UciEngine(Engine):
    """A program that speaks UCI or USI. Settings are options, `NAME=VALUE`, and the words of its `go`."""

    def __init__(self, process: EngineProcess, setup: Setup, seconds: float, protocol: str):
        super().__init__(process, setup, seconds)
        self._protocol, self._go = protocol, GO

    def greet(self, settings: Sequence[str]) -> None:
        """Sets options, of which each must be one that it named."""
        said = self._ask(self._protocol, f"{self._protocol}ok", is_start=True)
        options = {match[1]: line for line in said if (match := re.match(r"option name (.+?) type ", line))}
        self.title = next((line.removeprefix("id name ") for line in said if line.startswith("id name ")), "")
        self._choose_variant(options.get(VARIANT))
        for setting in settings:
            if setting.split()[0] == "go":
                self._go = setting
            else:
                name, _, value = setting.partition("=")
                self._set_option(name.strip(), value.strip(), list(options))

    def new_game(self) -> None:
        """Waits until it is ready."""
        self.process.send(f"{self._protocol}newgame")
        self._ask("isready", "readyok", is_start=True)

    def choose(self, plies: Sequence[Ply], colour: int, state: EnvState | None = None) -> str:
        """Sends the whole game, and the words of `go`."""
        moves = " ".join(["moves", *(ply.text for ply in plies)]) if plies else ""
        self.process.send(f"position startpos {moves}".strip())
        words = self._ask(self._go, "bestmove")[-1].split()
        move = words[1] if len(words) > 1 else "none"
        if move.lower() in MISTAKES:
            raise self.process.failure(f"answered {self._go!r} with {' '.join(words)!r}, but the game goes on")
        return move

    def _choose_variant(self, offered: str | None) -> None:
        """Makes a program of several games play this one; others play one game, and say nothing of it."""
        variant = self.setup.variant
        if offered is None or variant is None:
            return
        if variant not in offered.split():
            raise self.process.failure(f"does not play {variant}: {VARIANT} has no such value")
        self._set_option(VARIANT, variant, [VARIANT])

    def _set_option(self, name: str, value: str, known: Sequence[str]) -> None:
        if name.lower() not in (other.lower() for other in known):
            closest = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.0)) or "none"
            raise self.process.failure(f"has no option {name!r}; the closest are {closest}")
        self.process.send(f"setoption name {name} value {value}" if value else f"setoption name {name}")

    def _ask(self, line: str, last_word: str, *, is_start: bool = False) -> list[str]:
        """All lines that it says up to one that begins with `last_word`."""
        self.process.send(line)
        deadline, said = self._deadline(is_start=is_start), []
        while not said or said[-1].split()[:1] != [last_word]:
            said.append(self.process.read(deadline))
        return said
