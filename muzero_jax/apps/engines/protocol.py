"""What our engine's two protocols share: a session that answers lines, and the time for a move.

Stdout carries only the answers. Every command is answered, also if it fails; only `quit` and the end of the input end
the loop.
"""

import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BufferedIOBase
from typing import Any, BinaryIO

from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games.notation import Notation

Stream = BinaryIO | BufferedIOBase
MOST_BYTES = 65_536
"""The longest line that is read; the rest of a longer line is discarded."""
MOVES_TO_GO = 30
"""Moves of one colour for which the remaining time should last, if the program does not say."""
MARGIN = 0.05
"""Seconds of each move reserved for communication."""


def share(left: float, moves_to_go: int, increment: float = 0.0) -> float:
    """Seconds for the next move if `left` must last for `moves_to_go` moves; never more than `left`."""
    return max(0.0, min(left / max(1, moves_to_go) + 0.8 * increment, left) - MARGIN)


class EngineSession(ABC):
    """One program's session: a game, an agent, and an answer to every line.

    Args:
      moves: the notation of moves (`make_notation`).
      seconds: time for each move if the program sets no clock; None searches the agent's usual budget.
    """

    is_done = False  # whether the program has quit
    held: str | None = None  # an answer to `go` that waits for `stop` (UCI)

    def __init__(self, position: Position, thinker: Thinker, moves: Notation, *, seconds: float | None = None):
        self.position = position
        self.thinker = thinker
        self.moves = moves
        self.seconds = seconds

    @abstractmethod
    def answer(self, line: str) -> str | None:
        """The whole answer to one line; None or "" if there is none. Never raises."""

    def serve(self, lines: Iterable[str], out: Stream) -> None:
        """Answers line by line until `quit`, the end of the input, or until `out` is closed."""
        for line in lines:
            try:
                out.write((self.answer(line) or "").encode("utf-8", errors="replace"))
                out.flush()
            except (BrokenPipeError, ValueError):
                return
            if self.is_done:
                return
            if self.held is None:
                attempt(partial(self.thinker.catch_up, self.position))

    def _quit(self, _: list[str]) -> None:
        self.is_done = True


def attempt(run: Callable[[], Any]) -> tuple[Any, bool]:
    """(the result of `run`, True); if it raises, (the reason in one line, False)."""
    try:
        return run(), True
    except ValueError as failure:
        return " ".join(str(failure).split()), False
    except Exception as error:  # a bug or a lack of memory must not end the session
        traceback.print_exc(file=sys.stderr)
        return f"internal error: {type(error).__name__}", False


def claim_stdout() -> BinaryIO:
    """The process's stdout, reserved for the protocol: from now on all other output goes to stderr."""
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def read_lines(stream: Stream) -> Iterator[str]:
    """Lines up to the end of the stream, with any bytes decoded; a line that is too long is cut off."""
    while line := stream.readline(MOST_BYTES):
        rest = line
        while len(rest) == MOST_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(MOST_BYTES)
        yield line.decode("utf-8", errors="replace")
