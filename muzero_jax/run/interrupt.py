"""The signals that ask a run to stop: Ctrl-C, SIGTERM (Slurm, Kubernetes, Colab) and SIGHUP (a terminal was closed).

The first one sets a flag, which the loop reads between chunks, saves the run and stops. Later SIGTERMs and SIGHUPs have
no effect, because a shell, a batch system and a driver of several runs may each pass the same request on.
"""

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SYSTEMS = signal.SIGTERM, signal.SIGHUP
"""Signals from a system, not a person."""


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP ended the program when nothing was left to save."""


@contextmanager
def answered(handler: Any) -> Iterator[None]:
    """Handles SIGTERM and SIGHUP by `handler(number, frame)`; a signal ignored before (`nohup`) stays ignored."""
    heard = [number for number in SYSTEMS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before or signal.SIG_DFL)


class Interrupt:
    """The request to stop this run: in a `with` statement it handles SIGTERM and SIGHUP, and in `by_ctrl_c` Ctrl-C.

    A signal that was ignored before (`nohup`) stays ignored. A second Ctrl-C raises KeyboardInterrupt.
    """

    def __init__(self):
        self.signal: int | None = None
        self._is_saved = False

    @property
    def requested(self) -> bool:
        """Whether the run should stop."""
        return self.signal is not None

    @property
    def by_system(self) -> bool:
        """Whether a system, not a person, asked for it."""
        return self.signal in SYSTEMS

    def __enter__(self) -> "Interrupt":
        self._on_ctrl_c = signal.getsignal(signal.SIGINT)
        self._answered = answered(self._request)
        self._answered.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._answered.__exit__(None, None, None)

    @contextmanager
    def by_ctrl_c(self) -> Iterator[None]:
        """In a `with` block, the first Ctrl-C also only requests a stop."""
        signal.signal(signal.SIGINT, self._request)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._on_ctrl_c)

    def nothing_to_save(self) -> None:
        """From now on, a first signal raises `Stopped`."""
        self._is_saved = True

    def _request(self, signum: int, frame: Any) -> None:
        del frame
        if signum == signal.SIGHUP:
            _silence()
        is_first = self.signal is None
        self.signal = self.signal or signum
        signal.signal(signal.SIGINT, self._on_ctrl_c)
        if is_first and self._is_saved:
            raise Stopped


def _silence() -> None:
    """Discards output to the terminal, which is closed now, because writing to it would raise an error."""
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
