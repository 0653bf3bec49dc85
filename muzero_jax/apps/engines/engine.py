"""Another program that plays: its process (`EngineProcess`), and the interface that a match uses (`Engine`).

Its pipes are read only while an answer is awaited, in the thread that asks; otherwise the program may fill them and
block. Each command has one deadline. The process leads its own group, so that Ctrl-C in a terminal does not reach it
directly, and so that programs started by a wrapper script end with it.
"""

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import connection
from typing import Any, NamedTuple

from muzero_jax.own.faults import shown
from muzero_jax.types import EnvState

RESIGN = "resign"
START_SECONDS = 60.0
"""The least time for everything except moves, because an engine may first load a network or compile."""
LONGEST_SECONDS = 1e6
"""The longest time that system calls accept."""
GRACE_SECONDS = 1.0
"""How long after the deadline lines that arrived before it are still read."""
QUIT_SECONDS, EXIT_SECONDS = 2.0, 1.0
"""Time to obey `quit`, and to exit after closing its output."""
MOST_BYTES = 10_000_000
"""The longest answer to one command."""
PIECE = 65_536
"""Bytes that are read at once, and kept of a line."""
QUOTED = 120
"""Characters of its output that an error message quotes."""


class EngineError(ValueError):
    """An engine failed; the message names it and quotes its output."""


class EngineProcess:
    """A running engine. `with` ends it: by `quit`, or by force after an exception. EngineError if it cannot be started.

    Args:
      command: the words of its command.
      name: how error messages call it.
      seconds: the longest time for a move.
      in_order: stderr is merged into stdout, so that all output is read in order.
    """

    def __init__(self, command: Sequence[str], name: str, *, seconds: float, in_order: bool = False):
        self.name = name
        self.seconds = min(seconds, LONGEST_SECONDS)
        pipe = subprocess.PIPE
        stderr = subprocess.STDOUT if in_order else pipe
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True)
        except OSError as error:
            raise EngineError(f"the engine {name} cannot be started: {error.strerror}") from None
        self._pipes: list[Any] = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe]  # still open
        self._begun = dict.fromkeys(self._pipes, b"")  # the start of an unfinished line
        self._lines: deque[str] = deque()  # not read yet
        self._last: deque[str] = deque(maxlen=3)  # read since the last command
        self._complaints: deque[str] = deque(maxlen=3)  # the last lines of stderr
        self._asked = "anything"
        self._num_bytes = 0
        self._deadline = time.monotonic() + max(self.seconds, START_SECONDS)

    def __enter__(self) -> "EngineProcess":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self.close(politely=failure is None)

    def send(self, line: str, *, is_move: bool = False) -> None:
        """Writes a line and starts the deadline of its answer; raises EngineError if the engine has ended."""
        assert self._process.stdin is not None
        seconds = self.seconds if is_move else max(self.seconds, START_SECONDS)
        self._asked = repr(shown(line, QUOTED))
        self._num_bytes = 0
        self._deadline = time.monotonic() + seconds
        self._last.clear()
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._death() from None

    def read(self) -> str:
        """The next line of output; raises EngineError if the engine ends, or at the deadline."""
        while not self._lines:
            if self._process.stdout not in self._pipes:
                raise self._death()
            left = self._deadline - time.monotonic()
            ready = connection.wait(self._pipes, max(0.0, left))
            if not ready or left < -GRACE_SECONDS:
                raise self.failure(
                    f"did not answer {self._asked} in time (--engine-seconds allows more){self._quote()}"
                )
            for pipe in ready:
                self._take(pipe)
            if self._num_bytes > MOST_BYTES:
                raise self.failure(f"sent more than {MOST_BYTES:,} bytes in answer to {self._asked}{self._quote()}")
        line = self._lines.popleft()
        if line:
            self._last.append(line)
        return line

    def failure(self, what: str) -> EngineError:
        """An error with the message that the engine did `what`."""
        return EngineError(f"the engine {self.name} {what}")

    def close(self, *, politely: bool = True) -> None:
        """Ends the process: by `quit` and the end of its input, else by force. May be called twice."""
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return
        with suppress(OSError, EngineError):
            if politely:
                self.send("quit")
                self._deadline = time.monotonic() + QUIT_SECONDS
                stdin.close()
            while politely:
                self.read()
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (stdin, *self._begun):
            with suppress(OSError):
                pipe.close()

    def _take(self, pipe: Any) -> None:
        """Reads what is in a pipe; at its end, forgets the pipe."""
        data = pipe.read1(PIECE)
        if not data:
            self._pipes.remove(pipe)
            data = b"\n" if self._begun[pipe] else b""
        *whole, begun = (self._begun[pipe] + data).split(b"\n")
        self._begun[pipe] = begun[:PIECE]
        if pipe is self._process.stdout:
            self._num_bytes += len(data)
            self._lines.extend(map(_text, whole))
        else:
            self._complaints.extend(filter(None, map(_text, whole)))

    def _death(self) -> EngineError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        for pipe in connection.wait(self._pipes, 0):  # its last words
            self._take(pipe)  # type: ignore
        status = self._process.returncode
        how = "closed its output"
        if status is not None:
            how = f"ended ({f'exit status {status}' if status >= 0 else signal.strsignal(-status)})"
        return self.failure(f"{how} when asked {self._asked}{self._quote()}")

    def _quote(self) -> str:
        """Its last output, as the end of an error message."""
        said = self._last or self._complaints
        return f"; it said {shown(' '.join(said), QUOTED)!r}" if said else ""


class EngineMove(NamedTuple):
    """A move of a game."""

    colour: int  # 0 for the first player
    action: int
    text: str  # in the game's notation, as sent to engines
    is_forced_pass: bool = False  # nothing else was legal


class Engine(ABC):
    """Another program as a player. All methods raise EngineError if it fails."""

    title = ""
    """The program's own name for itself."""

    def __init__(self, process: EngineProcess):
        self.process = process

    @abstractmethod
    def greet(self, settings: Sequence[str]) -> None:
        """Waits until the program is ready, and sends the user's settings."""

    @abstractmethod
    def new_game(self) -> None:
        """Begins a game at its opening."""

    @abstractmethod
    def choose(self, plies: Sequence[EngineMove], colour: int, state: EnvState | None = None) -> str:
        """The program's move for `colour` after these moves, or `resign`.

        `state` is the position, for programs that take it instead of the moves.
        """


def _text(line: bytes) -> str:
    """A line without its end and without control characters."""
    return "".join(c for c in line.decode("utf-8", errors="replace") if c >= " " or c == "\t").rstrip()
