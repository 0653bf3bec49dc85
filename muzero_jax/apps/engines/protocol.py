"""The base of line-based protocols: whole lines in, whole answers out, and nothing else on stdout.

GTP 2 frames an answer as `=` or `?`, the command's id, a space, the text and an empty line. A command that fails
is answered, however it fails; only `quit` and the end of the input end the loop.
"""

import os
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from typing import BinaryIO, NamedTuple

from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games.notation import Notation

Stream = BinaryIO | BufferedIOBase
MOST_BYTES = 65_536
"""The longest line that is read; the rest of a longer one is thrown away."""


class Command(NamedTuple):
    """One line of GTP, taken apart."""

    id: str  # digits, or empty
    name: str
    arguments: list[str]


class Session(ABC):
    """One program's session: a game, an agent, and an answer to every line.

    Args:
      moves: how moves are written, as `make_notation` makes it.
      seconds: time for each move where the program sets no clock; None searches the agent's usual budget.
    """

    is_done = False  # whether the program has quit
    held: str | None = None  # an answer that is held back until the program asks for it

    def __init__(self, position: Position, thinker: Thinker, moves: Notation, *, seconds: float | None = None):
        self.position, self.thinker, self.moves, self.seconds = position, thinker, moves, seconds

    @abstractmethod
    def answer(self, line: str) -> str | None:
        """The whole answer to one line; nothing if it asks for none. Never raises."""

    def serve(self, lines: Iterable[str], out: Stream) -> None:
        """Answers line by line until `quit`, the end of the input, or nobody listens."""
        for line in lines:
            text = self.answer(line)
            if text and not send(out, text) or self.is_done:
                return
            if self.held is None:
                self.thinker.catch_up(self.position)


def attempt(run: Callable[[], str]) -> tuple[str, bool]:
    """The result of `run`, and True; if anything goes wrong, the reason in one line, and False."""
    try:
        return run(), True
    except ValueError as failure:
        return " ".join(str(failure).split()), False
    except Exception as error:  # a bug or a lack of memory must not end the session
        traceback.print_exc(file=sys.stderr)
        return f"internal error: {type(error).__name__}", False


def claim_stdout() -> BinaryIO:
    """The process's stdout, for the protocol alone: what a library prints goes to stderr from now on."""
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def read_lines(stream: Stream) -> Iterator[str]:
    """Lines without their ends, any bytes decoded, until the stream ends; a line that is too long is cut off."""
    while line := stream.readline(MOST_BYTES):
        rest = line
        while len(rest) == MOST_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(MOST_BYTES)
        yield line.decode("utf-8", errors="replace")


def parse(line: str) -> Command | None:
    """The command of a line; None if there is none, once comments and control characters are taken away."""
    text = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line.replace("\t", " ")).split("#")[0]
    match = re.match(r"\s*([0-9]*)(?=\s|$)\s*(.*)", text, re.DOTALL)
    number, rest = match.groups() if match else ("", text)
    words = rest.split()
    if not number and not words:
        return None
    return Command(number, words[0] if words else "", words[1:])


def frame(command: Command, text: str, *, ok: bool = True) -> str:
    """An answer as GTP sends it: a blank line ends it, so it has none itself."""
    body = "\n".join(line.rstrip() for i, line in enumerate(text.split("\n")) if line.strip() or not i)
    return f"{'=' if ok else '?'}{command.id} {body}\n\n"


def send(stream: Stream, text: str) -> bool:
    """Writes and flushes; False if nobody reads any more."""
    try:
        stream.write(text.encode("utf-8", errors="replace"))
        stream.flush()
    except (BrokenPipeError, ValueError):
        return False
    return True
