"""The signals that ask a run to stop: Ctrl-C, SIGTERM (of Slurm, Kubernetes, Colab) and SIGHUP (a terminal was closed).

The first becomes a flag, which the loop reads between chunks: the run is saved, and then it stops. Later ones change
nothing, because a shell, a batch system and a driver of several runs may each pass the same request on.
"""

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SYSTEMS = signal.SIGTERM, signal.SIGHUP
"""Signals by which a system, not a person, asks a program to end."""


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP ended what was under way, and nothing was left to save."""


@contextmanager
def answered(handler: Any) -> Iterator[None]:
    """Has `handler(number, frame)` answer SIGTERM and SIGHUP; one that was ignored before (`nohup`) stays ignored."""
    heard = [number for number in SYSTEMS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before or signal.SIG_DFL)


class Interrupt:
    """The request to stop this run; opened by `with`, it listens for SIGTERM and SIGHUP, and in `by_ctrl_c` for Ctrl-C.

    A signal that was ignored before (`nohup`) stays ignored. A second Ctrl-C is a KeyboardInterrupt.
    """

    def __init__(self):
        self.signal: int | None = None
        self._is_saved = False

    @property
    def requested(self) -> bool:
        """Whether the run is to stop."""
        return self.signal is not None

    @property
    def by_system(self) -> bool:
        """Whether a system asked for it."""
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
        """Has the first Ctrl-C, too, only ask for a stop."""
        signal.signal(signal.SIGINT, self._request)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._on_ctrl_c)

    def nothing_to_save(self) -> None:
        """From now on a signal ends what is under way, by `Stopped`."""
        self._is_saved = True

    def _request(self, signum: int, frame: Any) -> None:
        del frame
        if signum == signal.SIGHUP:
            _silence()
        is_first, self.signal = self.signal is None, self.signal or signum
        signal.signal(signal.SIGINT, self._on_ctrl_c)
        if is_first and self._is_saved:
            raise Stopped


def _silence() -> None:
    """Lets what is printed to the terminal, which is closed now, go nowhere: to write there would be an error."""
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
