"""GNU Backgammon as an opponent: it chooses whole turns, and our rules play them one die at a time.

For each of its turns it gets the position and the dice, without the moves before, and is asked for a `hint`. Its answer
lists how checkers move (`24/18 13/11*`), which determines a board. A search among our legal moves finds a sequence of
dice that leads to the same board. There is no doubling cube, and gammons count.
"""

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.apps.engines.engine import Engine, EngineMove, EngineProcess
from muzero_jax.games.backgammon import mover_points, roll
from muzero_jax.games.catalogue import make_notation
from muzero_jax.types import Environment, EnvState

SETTINGS = (
    *(f"set automatic {what} off" for what in ("game", "roll", "move", "bearoff")),
    *(f"set player {seat} human" for seat in (0, 1)),
    "set cube use off",
    "set jacoby off",
    "set evaluation chequerplay evaluation cubeful off",
)
"""Settings under which it does nothing unasked, and evaluates a game without a cube."""
TITLE = "GNU Backgammon"
UNKNOWN = "Unknown keyword"
ON_ROLL = "is now on roll."
"""The end of its answer to `set turn`."""
HINT = r" +\d+\. Cube\w+ \S+ +(\S.*?) +Eq\.: +(\S+)"
"""The first line about a turn in a hint; the groups are the turn and its equity."""
BAR, THEIR_BAR = 0, 25
"""Indices in a board of 26 numbers (`mover_points`); indices 1 to 24 are the points."""


class GnubgEngine(Engine):
    """GNU Backgammon's terminal (`gnubg -t -q`); settings are commands, sent as they are.

    It cannot be asked about half a turn, so a turn that a random opening began is finished at random. An opening of two
    moves is the whole first turn, so that this does not happen.
    """

    def __init__(self, process: EngineProcess, environment: Environment):
        super().__init__(process)
        assert environment.chance is not None
        self._move = jax.jit(environment.chance.move)
        self._notation = make_notation(environment)
        self._rest: list[str] = []  # moves of its turn that are still to be played

    def greet(self, settings: Sequence[str]) -> None:
        """Waits for its name, then sends the settings; raises EngineError for a setting that it does not know."""
        while not self.title.startswith(TITLE):
            self.title = self.process.read().strip()
        for line in (*SETTINGS, *settings, "new session", "set turn 1"):
            self.process.send(line)
        while not (line := self.process.read()).endswith(ON_ROLL):  # its answers to the settings, also from stderr
            if line.startswith(UNKNOWN):
                raise self.process.failure(f"rejected a setting with {line!r}")

    def new_game(self) -> None:
        """Forgets the rest of a turn; GNU Backgammon itself remembers nothing."""
        self._rest = []

    def choose(self, plies: Sequence[EngineMove], colour: int, state: EnvState | None = None) -> str:
        """The next move (one die) of its turn in the position `state`, in our notation."""
        assert state is not None
        if not self._rest and (dice := roll(state)):
            self._rest = self._turn(state, dice)
        elif not self._rest:
            legal = np.flatnonzero(state.legal_action_mask).tolist()
            return self._notation.write(state, random.Random(str(mover_points(state))).choice(legal))
        return self._rest.pop(0)

    def hints(self, state: EnvState, most: int) -> list[tuple[str, float]]:
        """Its best turns, at most `most`, in its notation, with their equities; empty if no move is legal."""
        board = mover_points(state)
        dice = roll(state)
        assert dice is not None
        for words in (["set board simple", *board], ["set dice", *dice], ["hint", most], ["set turn 1"]):
            self.process.send(" ".join(map(str, words)), is_move=True)
        found = []
        while not (line := self.process.read()).endswith(ON_ROLL):
            if hint := re.match(HINT, line):
                found.append((hint[1], float(hint[2])))
        return found

    def _turn(self, state: EnvState, dice: tuple[int, int]) -> list[str]:
        """All moves of its turn; raises EngineError if the turn is not legal by our rules."""
        board = mover_points(state)
        turn = next((turn for turn, _ in self.hints(state, 1)), "")
        moves = self._dice_towards(after_turn(board, turn), state, False)
        if not moves:
            raise self.process.failure(f"answered {board} and the dice {dice} with {turn!r}, which is not a legal turn")
        return moves

    def _dice_towards(self, target: Sequence[int], state: EnvState, is_over: bool) -> list[str] | None:
        """Moves of one turn that lead from `state` to the board `target`; None if there are none.

        Checkers only leave places that hold more than they do in `target`. This misses no board: if one checker arrives
        at a place and another leaves it, the first could have moved on instead.
        """
        board = mover_points(state)
        if list(target) == board or is_over:
            return [] if list(target) == board else None
        for action in np.flatnonzero(state.legal_action_mask):
            text = self._notation.write(state, int(action))
            source, is_no_pass, _ = text.partition("/")
            if is_no_pass and board[_place(source)] > target[_place(source)]:
                after = self._move(state, jnp.int32(action))
                rest = self._dice_towards(target, after.state, bool(after.awaits_chance | after.state.terminated))
                if rest is not None:
                    return [text, *rest]
        return None


def after_turn(board: Sequence[int], turn: str) -> list[int]:
    """The board after a turn as GNU Backgammon writes it: `24/18 13/11*`, `bar/20(2)`, `8/5*/2`, `6/off`.

    A star marks a hit. It is ignored, because the board also shows hits.
    """
    board = list(board)
    for word in turn.split():
        way, _, times = word.replace("*", "").rstrip(")").partition("(")
        for _ in range(int(times or 1)):
            for source, target in pairwise(way.split("/")):
                board[_place(source)] -= 1
                if target != "off":
                    is_hit = board[_place(target)] == -1
                    board[_place(target)] += 1 + is_hit
                    board[THEIR_BAR] -= is_hit
    return board


def _place(name: str) -> int:
    return BAR if name == "bar" else int(name)
