"""The Universal Chess Interface, for chess and (with moves a1 to e5) Gardner's chess.

A search is one compiled program and cannot be interrupted, so `go` answers as soon as its budget is searched; only
`infinite` and `ponder` hold the answer back until `stop` or `ponderhit`. UCI has no error answers: what cannot be
carried out is said in an `info string`, and leaves the position as it was. Depth and mate limits are not understood.
"""

import math
import sys
import traceback
from collections.abc import Iterable, Iterator

import numpy as np

from muzero_jax.games.notation import Notation
from muzero_jax.play import VERSION
from muzero_jax.play.clock import share
from muzero_jax.play.position import BLACK, WHITE, Position
from muzero_jax.play.protocol import Stream, send
from muzero_jax.play.thinking import MOST_SIMULATIONS, Analysis, Thinker

NO_MOVE = "0000"


class UciSession:
    """One GUI's session. White, UCI's first mover, is `BLACK` of `position`.

    Args:
      moves: the game's standard notation.
      seconds: time for each move where `go` names none; None searches the agent's usual budget.
    """

    def __init__(self, position: Position, thinker: Thinker, moves: Notation, *, seconds: float | None = None):
        self.position, self.thinker, self.moves, self.seconds = position, thinker, moves, seconds
        self.is_done = False
        self._held: str | None = None  # the answer to `go infinite`, until `stop`
        self._commands = {
            "uci": self._uci,
            "isready": self._isready,
            "ucinewgame": self._ucinewgame,
            "setoption": self._setoption,
            "position": self._position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._stop,
            "quit": self._quit,
        }

    def answer(self, line: str) -> str:
        """All lines that answer one line, mostly none. Never raises; unknown words are skipped, as UCI asks."""
        words = line.split()
        while words and words[0] not in self._commands:
            words = words[1:]
        if not words:
            return ""
        try:
            return "".join(text + "\n" for text in self._commands[words[0]](words[1:]))
        except ValueError as failure:
            return f"info string {' '.join(str(failure).split())}\n"
        except Exception as error:  # a bug or a lack of memory must not end the session
            traceback.print_exc(file=sys.stderr)
            return f"info string internal error: {type(error).__name__}\n"

    def _uci(self, _: list[str]) -> Iterator[str]:
        yield f"id name muzero_jax {VERSION}"
        yield "id author the authors of muzero_jax"
        default = self.thinker.num_simulations
        yield f"option name Simulations type spin default {default} min 1 max {max(default, MOST_SIMULATIONS)}"
        yield "uciok"

    def _isready(self, _: list[str]) -> Iterator[str]:
        """The time to compile: a GUI waits for the answer."""
        if not self.position.is_over:
            self.thinker.prepare(self.position, self.seconds)
        yield "readyok"

    def _ucinewgame(self, _: list[str]) -> Iterator[str]:
        self.position = self.position.new()
        yield from ()

    def _setoption(self, words: list[str]) -> Iterator[str]:
        """`setoption name Simulations value 128`."""
        text = " ".join(words)
        name, _, value = text.removeprefix("name ").partition(" value ")
        if name.lower() != "simulations":
            raise ValueError(f"no such option: {name[:40]!r}")
        self.thinker.num_simulations = _whole("Simulations", value, MOST_SIMULATIONS)
        yield from ()

    def _position(self, words: list[str]) -> Iterator[str]:
        """`position startpos|fen FEN [moves ...]`."""
        split = words.index("moves") if "moves" in words else len(words)
        start, moves = words[:split], words[split + 1 :]
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
        yield from ()

    def _go(self, words: list[str]) -> Iterator[str]:
        self._held = None
        if self.position.is_over:
            yield f"bestmove {NO_MOVE}"
            return
        limits = _limits(words)
        budget = min(limits["nodes"], MOST_SIMULATIONS) if "nodes" in limits else None
        analysis = self.thinker.analyse(
            self.position,
            num_simulations=None if budget is None else 1 << (budget.bit_length() - 1),
            seconds=None if "infinite" in words else self._time(limits),
            among=self._among(words),
        )
        yield self._info(analysis)
        best = f"bestmove {self.moves.write(self.position.state, analysis.action)}"
        if "infinite" in words or "ponder" in words:
            self._held = best
        else:
            yield best

    def _time(self, limits: dict[str, int]) -> float | None:
        """Seconds for this move; a clock is shared out over the moves to go."""
        if "movetime" in limits:
            return share(limits["movetime"] / 1000, 1)
        side = "w" if self.position.colour_to_move == BLACK else "b"
        if f"{side}time" in limits:
            increment = limits.get(f"{side}inc", 0) / 1000
            return share(limits[f"{side}time"] / 1000, limits.get("movestogo", 30), increment)
        return self.seconds

    def _among(self, words: list[str]) -> np.ndarray | None:
        """`searchmoves m1 m2 ...` as a mask over actions; words that are no legal move end the list."""
        mask, legal = np.zeros(self.position.environment.num_actions, bool), self.position.legal_action_mask()
        for word in words[words.index("searchmoves") + 1 :] if "searchmoves" in words else []:
            try:
                mask[self.moves.read(self.position.state, word)] = True
            except ValueError:
                break
        return mask & legal if (mask & legal).any() else None

    def _info(self, analysis: Analysis) -> str:
        """The score in centipawns is the odd function of the expected result that chess GUIs expect: 90 at +0.3."""
        centipawns = round(290.68 * math.tan(1.5481 * max(-1.0, min(1.0, analysis.value))))
        milliseconds = max(1, round(analysis.seconds * 1000))
        speed = analysis.num_simulations * 1000 // milliseconds
        move = self.moves.write(self.position.state, analysis.action)
        counts = f"nodes {analysis.num_simulations} nps {speed} time {milliseconds}"
        return f"info depth 1 score cp {centipawns} {counts} pv {move}"

    def _stop(self, _: list[str]) -> Iterator[str]:
        if self._held:
            yield self._held
        self._held = None

    def _quit(self, _: list[str]) -> Iterator[str]:
        self.is_done = True
        yield from ()


def _limits(words: list[str]) -> dict[str, int]:
    """The numbers after `go`'s words; at least 0, nodes at least 1, words without a number left out."""
    limits = {}
    for name, value in zip(words, words[1:], strict=False):
        if name in ("wtime", "btime", "winc", "binc", "movestogo", "nodes", "movetime"):
            try:
                limits[name] = max(int(name == "nodes"), int(value[:12]))
            except ValueError:
                continue
    return limits


def _whole(name: str, text: str, most: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text.strip()[:9]) <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}")
    return int(text)


def serve(session: UciSession, lines: Iterable[str], out: Stream) -> None:
    """Answers line by line until `quit`, the end of the input, or nobody listens."""
    for line in lines:
        text = session.answer(line)
        if text and not send(out, text) or session.is_done:
            return
        if "bestmove" in text:
            session.thinker.catch_up(session.position)
