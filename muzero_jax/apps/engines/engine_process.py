"""Another program as a process that is asked by lines: a limit on every answer, and always an end.

A thread for each pipe reads what it writes, so that none fills up and no reading waits for ever. It is the head of a
process group of its own: Ctrl-C in a terminal is ours to pass on, and what a wrapper script started ends with it.
"""

import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

MOST_BYTES = 65_536
"""The longest line that is read as one."""
MOST_LINES = 10_000
"""Lines that may wait to be read; an engine that says more is kept waiting."""
MOST_ANSWERED = 100_000
"""Lines of an answer to one command; an engine that says more has failed."""
QUIT_SECONDS, KILLED_SECONDS = 2.0, 1.0
"""How long an engine has to obey `quit`, and its pipes to close once it was killed."""
GRACE_SECONDS = 1.0
"""How long after its time lines are still read that it said before."""
QUOTED = 120
"""Characters of what it said that a sentence quotes."""


class EngineError(ValueError):
    """An engine failed; the message names it in one sentence, with what it said."""


class EngineProcess:
    """A running engine.

    Args:
      process: with pipes for stdin, stdout and, unless it goes to stdout too, stderr, in binary.
      name: what sentences call it.
    """

    def __init__(self, process: subprocess.Popen[bytes], name: str):
        self.name = name
        self._process, self._asked = process, "anything"
        self._lines: queue.Queue[str | None] = queue.Queue(MOST_LINES)
        self._num_read = 0  # lines since the last command
        self._last: deque[str] = deque(maxlen=3)  # lines of its stdout that were read
        self._complaints: deque[str] = deque(maxlen=3)  # of its stderr
        self._is_closing = threading.Event()
        self._threads = [
            threading.Thread(target=target, args=(stream,), name=name, daemon=True)
            for target, stream in ((self._listen, process.stdout), (self._listen_to_complaints, process.stderr))
            if stream is not None
        ]
        for thread in self._threads:
            thread.start()

    def send(self, line: str) -> None:
        """Writes a line; raises EngineError if the engine has ended."""
        self._asked = repr(_cut(line))
        self._last.clear()
        self._num_read = 0
        try:
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()
        except (OSError, ValueError):
            raise self._death() from None

    def read(self, deadline: float) -> str:
        """The next line that it says, without its end; EngineError if it ends, or says none until `deadline`.

        Args:
          deadline: as `time.monotonic` counts.
        """
        left = deadline - time.monotonic()
        try:
            line = self._lines.get(timeout=min(left, threading.TIMEOUT_MAX)) if left > 0 else self._lines.get_nowait()
        except queue.Empty:
            raise self._lateness() from None
        if line is None:
            raise self._death()
        if left < -GRACE_SECONDS:  # it goes on saying what was not asked
            raise self._lateness()
        self._num_read += 1
        if self._num_read > MOST_ANSWERED:
            raise self.failure(f"says more than {MOST_ANSWERED:,} lines to {self._asked}")
        if line:
            self._last.append(line)
        return line

    def failure(self, what: str) -> EngineError:
        """The sentence that the engine did `what`."""
        return EngineError(f"the engine {self.name} {what}")

    def close(self, *, politely: bool = True) -> None:
        """Ends the process: by `quit` and the end of its input, or else by force. May be called twice."""
        self._is_closing.set()
        if politely and self._process.returncode is None:
            with suppress(OSError, ValueError):
                self._stdin.write(b"quit\n")
                self._stdin.flush()
        with suppress(OSError, ValueError):
            self._stdin.close()
        if politely:
            self._await_silence(QUIT_SECONDS)
        if self._process.returncode is None:  # not yet waited for, so its number is still its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._await_silence(KILLED_SECONDS)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _await_silence(self, seconds: float) -> None:
        """Waits until both pipes are closed at the other end, throwing away what still comes."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            while thread.is_alive() and time.monotonic() < deadline:
                with suppress(queue.Empty):
                    while True:
                        self._lines.get_nowait()
                thread.join(0.02)

    def _listen(self, stream: IO[bytes]) -> None:
        with stream, suppress(OSError, ValueError):
            while line := stream.readline(MOST_BYTES):
                self._lines.put(_text(line))
        self._lines.put(None)

    def _listen_to_complaints(self, stream: IO[bytes]) -> None:
        with stream, suppress(OSError, ValueError):
            while line := stream.readline(MOST_BYTES):
                if text := _text(line).strip():
                    self._complaints.append(text)

    def _lateness(self) -> EngineError:
        return self.failure(f"did not answer {self._asked} in time (--engine-seconds allows more){self._quote()}")

    def _death(self) -> EngineError:
        if self._is_closing.is_set():
            return self.failure("was ended")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(KILLED_SECONDS)
        self._threads[-1].join(KILLED_SECONDS)
        status = self._process.returncode
        how = "closed its output"
        if status is not None:
            how = f"ended ({f'exit status {status}' if status >= 0 else signal.strsignal(-status)})"
        return self.failure(f"{how} when asked {self._asked}{self._quote()}")

    def _quote(self) -> str:
        """The end of a sentence: its last words."""
        said = self._last or self._complaints
        return f"; it said {_cut(' '.join(said))!r}" if said else ""


def start(command: Sequence[str], name: str | None = None, *, in_order: bool = False) -> EngineProcess:
    """Starts a program; raises EngineError if that cannot be.

    With `in_order` what it says on stderr is read like its stdout, as both arrive in one pipe.
    """
    name = name or shlex.join(command)
    pipe, stderr = subprocess.PIPE, subprocess.STDOUT if in_order else subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True)
        return EngineProcess(process, name)
    except OSError as error:
        raise EngineError(f"the engine {name} cannot be started: {error.strerror}") from None


def _text(line: bytes) -> str:
    """A line without its end and without control characters."""
    return "".join(c for c in line.decode("utf-8", errors="replace") if c >= " " or c == "\t").rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED else text[: QUOTED - 3] + "..."
