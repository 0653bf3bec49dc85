"""Matches against other programs, with the same openings, seats and figures as all other matches.

A program thinks about one game at a time. These games are therefore played on the host, one after another at each of a
few tables, and our players search one position at a time. The openings of a key are those of a match on one device.
"""

import queue
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.evaluation import matches
from muzero_jax.apps.evaluation.arena import Report, ShardedMatch, Summary, silent
from muzero_jax.apps.evaluation.engine_games import Arbiter, EngineSeat, PlayedGame, PlayerSeat, Seat, record
from muzero_jax.apps.evaluation.matches import MatchResult
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.apps.evaluation.players import Entrant
from muzero_jax.games.catalogue import game_of
from muzero_jax.own.files import explained, write_whole
from muzero_jax.run.interrupt import answered
from muzero_jax.types import Environment, EnvState, Params


class Conditions(NamedTuple):
    """Conditions for matches with engines; other matches ignore them."""

    seconds: float = 60.0  # the longest time for a move of an engine
    num_tables: int = 1  # games at once; each table has a process of each engine
    folder: Path | None = None  # for the SGF records of all games; None: no records
    say: Callable[[str], None] = silent  # called with the standing of an interrupted match

    def of_match(self, index: int) -> "Conditions":
        """The conditions of one match of several: its records get a separate folder."""
        return self if self.folder is None else self._replace(folder=self.folder / f"match-{index + 1:02d}")


class EngineMatch:
    """A match of two players of which one or both are engines; the number of games is rounded up to an even one.

    Call it once; it returns `matches.summarise`'s dict, for A, with the engines' own names.
    """

    def __init__(
        self,
        environment: Environment,
        a: Entrant,
        b: Entrant,
        *,
        num_games: int,
        opening_plies: int,
        conditions: Conditions,
    ):
        self._environment = environment
        self._entrants = (a, b)
        self._conditions = conditions
        self._num_openings = -(-num_games // 2)
        self._opening_plies = opening_plies
        self._arbiter = Arbiter(environment)
        if conditions.folder is not None and self._arbiter.has_chance:
            raise ValueError(f"--sgf records no dice, which {environment.name} has; leave it out")
        own = [entrant.player for entrant in (a, b) if isinstance(entrant.player, Player)]
        self._stochastic = matches.is_stochastic(environment, *own)
        self._result = MatchResult(*np.zeros((4, 2, self._num_openings)))  # type: ignore
        self._is_finished = np.zeros((2, self._num_openings), bool)
        self._processes = ExitStack()
        self._titles = list[str]()

    def __call__(self, params_a: Params, params_b: Params, key: Array, report: Report = silent) -> Summary:
        """Plays the match. When it returns or raises, all engine processes have ended.

        Raises ValueError with the standing of the match if an engine fails or a record cannot be written.
        """
        try:
            # SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, so that no process is left behind.
            with answered(signal.default_int_handler), self._processes:
                self._play(self._tables((params_a, params_b)), key, report)
        except ValueError as error:
            raise ValueError(f"{error}; {self._standing()}" if self._is_finished.any() else str(error)) from error
        except KeyboardInterrupt:
            self._conditions.say(self._standing())
            raise
        is_for_points = game_of(self._environment).is_for_points
        summary = matches.summarise(self._result, stochastic=self._stochastic, is_for_points=is_for_points)
        return summary | {"engine": " and ".join(dict.fromkeys(self._titles))}

    def _tables(self, params: tuple[Params, Params]) -> "queue.SimpleQueue[list[Seat]]":
        """The tables: pairs of seats for A and B, with separate engine processes."""
        both = [
            PlayerSeat(entrant.player, weights) if isinstance(entrant.player, Player) else entrant.player
            for entrant, weights in zip(self._entrants, params, strict=True)
        ]
        tables: queue.SimpleQueue[list[Seat]] = queue.SimpleQueue()
        for _ in range(min(self._conditions.num_tables, self._is_finished.size)):
            tables.put([self._start(seat) if isinstance(seat, EngineSpec) else seat for seat in both])
        return tables

    def _start(self, spec: EngineSpec) -> EngineSeat:
        engine = engines.start(spec, self._environment, seconds=self._conditions.seconds)
        self._processes.enter_context(engine.process)
        self._titles.append(engine.title)
        return EngineSeat(engine, self._arbiter.notation)

    def _play(self, tables: "queue.SimpleQueue[list[Seat]]", key: Array, report: Report) -> None:
        """Plays the first opening with both seatings, then the second, and so on, each at the next free table."""
        openings = self._openings(key)
        game_key = jax.random.fold_in(key, 0)

        def play(index: int) -> PlayedGame:
            opening, seating = divmod(index, 2)
            start, first, actions = openings[opening]
            seats = tables.get()
            try:
                seated = seats[::-1] if seating else seats
                return self._arbiter.play(start, actions, seated, jax.random.fold_in(game_key, index), first)
            finally:
                tables.put(seats)

        pool = ThreadPoolExecutor(tables.qsize())
        try:
            games = [pool.submit(play, index) for index in range(2 * self._num_openings)]
            for index, game in enumerate(games):  # in order, because games after a failed one fail, too
                self._note(index, game.result())
                report(int(self._is_finished.sum()), self._is_finished.size)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _openings(self, key: Array) -> list[tuple[EnvState, int, list[int]]]:
        """For each opening: its start, the player id in the first seat, and its actions (-1: taken back).

        With chance a game starts at the opening's end instead, because the actions would meet other dice.
        """
        counts = self._num_openings, self._opening_plies
        draw = jax.jit(lambda key: matches.draw_openings(self._environment, key, *counts, replace=self._stochastic))
        drawn = draw(key)
        starts = drawn.starts
        actions = np.asarray(drawn.actions)
        if self._arbiter.has_chance:
            starts = drawn.states
            actions = actions[:0]
        firsts = drawn.starts.current_player.tolist()
        states = [jax.tree.map(lambda x, i=i: x[i], starts) for i in range(len(firsts))]
        return list(zip(states, firsts, actions.T.tolist(), strict=True))

    def _note(self, index: int, played: PlayedGame) -> None:
        """Stores the result of a game, and writes its record."""
        opening, seating = divmod(index, 2)
        lead = -played.lead if seating else played.lead
        moves = hash(tuple(ply.action for ply in played.plies))
        figures = lead, len(played.plies) - played.num_opening, played.illegal_actions, moves
        for field, figure in zip(self._result, figures, strict=True):
            field[seating, opening] = figure  # type: ignore
        self._is_finished[seating, opening] = True
        if (folder := self._conditions.folder) is not None:
            names = [entrant.name for entrant in self._entrants]
            first, second = names[::-1] if seating else names
            with explained("games", folder):
                folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / f"game-{index + 1:04d}.sgf", record(self._arbiter, played, (first, second)))

    def _standing(self) -> str:
        """The standing of an interrupted match, as part of a message."""
        points = np.sign(np.asarray(self._result.points)[self._is_finished])
        won, drawn, lost = ((points == sign).sum() for sign in (1, 0, -1))
        kept = "" if self._conditions.folder is None or not len(points) else f", kept in {self._conditions.folder}"
        return f"{len(points)} of {self._is_finished.size} games had ended: {won} won, {drawn} drawn, {lost} lost{kept}"


def make_match(
    environment: Environment,
    a: Entrant,
    b: Entrant,
    mesh: Mesh,
    *,
    num_games: int,
    opening_plies: int,
    conditions: Conditions,
) -> ShardedMatch | EngineMatch:
    """A match of two players: on the mesh's devices, or on the host if one of them is an engine."""
    if isinstance(a.player, Player) and isinstance(b.player, Player):
        return ShardedMatch(environment, a.player, b.player, mesh, num_games=num_games, opening_plies=opening_plies)
    return EngineMatch(environment, a, b, num_games=num_games, opening_plies=opening_plies, conditions=conditions)
