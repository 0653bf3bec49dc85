"""One game in which other programs may play: move by move on the host, only by our rules.

Our rules, not the engines, decide what is legal, when the game is over and who won. An illegal move must not decide a
game, so an engine that makes one ends the match with an error message.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.apps.engines.engine import RESIGN, Engine, EngineMove
from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.games import sgf
from muzero_jax.games.catalogue import game_of, make_notation, needs_key
from muzero_jax.games.game import game_score
from muzero_jax.games.notation import PASS, Notation
from muzero_jax.types import Environment, EnvState, Params

MOST_QUOTED = 12
"""Moves before an illegal one that the error message quotes."""


class Seat(ABC):
    """A player on the host, in one game at a time."""

    def new_game(self) -> None:  # noqa: B027
        """Begins a new game; does nothing for a player without memory."""

    @abstractmethod
    def choose(self, state: EnvState, plies: Sequence[EngineMove], colour: int, key: Array) -> int | None:
        """The action of `colour` after the moves `plies` (it may be illegal), or None to resign."""


class PlayerSeat(Seat):
    """One of our players, called with batches of one position, as in `play.py`."""

    def __init__(self, player: Player, params: Params):
        self._params = params
        self._act = jax.jit(
            lambda params, key, state: player.act(params, key, jax.tree.map(lambda x: jnp.asarray(x)[None], state))[0]
        )

    def choose(self, state: EnvState, plies: Sequence[EngineMove], colour: int, key: Array) -> int | None:
        """The player's action in `state`."""
        return int(self._act(self._params, key, state))


class EngineSeat(Seat):
    """Another program, whose moves are read in the game's notation."""

    def __init__(self, engine: Engine, notation: Notation):
        self._engine = engine
        self._notation = notation

    def new_game(self) -> None:
        """Tells the program to begin a new game."""
        self._engine.new_game()

    def choose(self, state: EnvState, plies: Sequence[EngineMove], colour: int, key: Array) -> int | None:
        """The program's action; raises EngineError for an illegal move, or if the program fails."""
        text = self._engine.choose(plies, colour, state)
        if text.lower() == RESIGN:
            return None
        try:
            action = self._notation.read(state, text)
            if state.legal_action_mask[action]:
                return action
        except ValueError:
            pass
        before = [ply.text for ply in plies]
        line = " ".join(["...", *before[-MOST_QUOTED:]] if len(before) > MOST_QUOTED else before) or "no move"
        raise self._engine.process.failure(f"answered with {text[:60]!r}, which is not a legal move after {line}")


class PlayedGame(NamedTuple):
    """A finished game."""

    plies: tuple[EngineMove, ...]
    num_opening: int  # plies of the random opening
    lead: float  # the first player's sum of rewards: above 0 it won, 0 is a draw
    score: str  # as `games.game.game_score`; B+R or W+R after a resignation
    illegal_actions: int  # that our players chose; legal ones were played instead


class Arbiter:
    """Plays games of one environment; games may be played from several threads at once."""

    def __init__(self, environment: Environment):
        self.game = game_of(environment)
        self.notation = make_notation(environment)
        self.has_chance = needs_key(environment)
        self._move = jax.jit(environment.move)

    def play(
        self, start: EnvState, opening: Sequence[int], seats: Sequence[Seat], key: Array, first: int | None = None
    ) -> PlayedGame:
        """Plays a game from `start`: the opening's actions (those below 0 are no moves), then the seats' choices.

        The player id `first` has the first seat; None: the player to move at `start`. An illegal action is counted, and
        the first legal one is played instead, as in `matches`.
        """
        state = start
        plies = []
        lead = 0.0
        illegal_actions = 0
        first = int(start.current_player) if first is None else first
        line = [move for move in opening if move >= 0]
        for seat in seats:
            seat.new_game()
        while not state.terminated:
            colour = int(int(state.current_player) != first)
            move_key = jax.random.fold_in(key, len(plies))
            forced = self._forced_pass(state)
            action = line[len(plies)] if len(plies) < len(line) else forced  # not all programs announce it
            if action is None and (action := seats[colour].choose(state, plies, colour, move_key)) is None:
                resigned = (-1.0, "W+R") if colour == 0 else (1.0, "B+R")
                return PlayedGame(tuple(plies), len(line), *resigned, illegal_actions)
            legal = np.asarray(state.legal_action_mask)
            if not 0 <= action < len(legal) or not legal[action]:
                action = int(legal.argmax())
                illegal_actions += 1
            plies.append(EngineMove(colour, action, self.notation.write(state, action), forced is not None))
            state, reward, *_ = self._move(state, jnp.int32(action), keys_of_chance(move_key, 1)[0])
            lead += float(-reward if colour else reward)
        return PlayedGame(tuple(plies), len(line), lead, game_score(self.game, state, lead), illegal_actions)

    def _forced_pass(self, state: EnvState) -> int | None:
        """The action of a pass if nothing else is legal, else None."""
        legal = [action for action in np.flatnonzero(state.legal_action_mask) if action not in self.game.same_as]
        return int(legal[0]) if len(legal) == 1 and self.notation.write(state, int(legal[0])) == PASS else None


def record(arbiter: Arbiter, played: PlayedGame, names: tuple[str, str]) -> str:
    """The game as SGF; `names` are those of the first player and of the second."""
    columns, rows = len(arbiter.notation.columns), len(arbiter.notation.rows)
    size = None if not columns else str(columns) if columns == rows else f"{columns}:{rows}"
    points = arbiter.game.points
    properties = {
        "GM": arbiter.game.sgf_number,
        "SZ": size,
        "KM": f"{points.komi:g}" if points and points.komi else None,
        "PB": names[0],
        "PW": names[1],
        "RE": played.score,
        "C": f"{arbiter.game.title}; moves of the opening, which was drawn at random: {played.num_opening}",
    }
    write = arbiter.notation.write_sgf
    return sgf.write(properties, [(ply.colour, write(ply.action) if write else ply.text) for ply in played.plies])
