"""Measures a run: matches against fixed opponents, and an Elo among its versions (`run.run.Evaluator`)."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.agent import Agent, make_agent, policy_head_search
from muzero_jax.algorithm import Algorithm
from muzero_jax.apps.evaluation import elo, openings
from muzero_jax.apps.evaluation.arena import Arena, Summary
from muzero_jax.apps.evaluation.exploitability import BestResponses, NotWalkable
from muzero_jax.apps.evaluation.matches import are_for_points, points_of
from muzero_jax.config.config import Config
from muzero_jax.games.catalogue import hides
from muzero_jax.ops.mesh import placed_shapes
from muzero_jax.own.files import read_json, write_whole
from muzero_jax.run import metrics, sizes
from muzero_jax.storage.checkpoint import checkpoint_steps, restore_params, save_params
from muzero_jax.storage.run_directory import VERSIONS
from muzero_jax.types import Params

_FINAL = 2**32 - 1  # folded into the key, so that final matches differ from those of the last evaluation
_EVALUATION = 2**32 - 2  # folded into the seed, so that matches and training share no random numbers

MOST_STATES_WHILE_TRAINING = 200_000
"""Of a game whose exploitability is measured in each evaluation, in a second."""
QUICK_SIMULATIONS = 100
"""Rollout MCTS up to this budget plays during training; larger budgets only at the end, because they take minutes."""


class Results(TypedDict):
    """The content of `elo.json`."""

    iterations: list[int]
    games: list[tuple[int, int, float, float]]  # (i, j, points of i, points of j), by index


class Ladder:
    """A run's versions and their games among themselves, rated by Elo; the first version has 0.

    Each new version plays against the previous one and the one half-way back, so that versions are connected by more
    than one chain. Results are kept in a JSON file, so that a resumed run keeps its scale.
    """

    def __init__(self, file: Path):
        self._file = file
        self.iterations: list[int] = []
        self._games: list[tuple[int, int, float, float]] = []  # as in `Results`

    def load(self, up_to_iteration: int) -> None:
        """Reads the results of earlier sessions, except those of versions newer than the resumed checkpoint."""
        if self._file.exists():
            stored = read_json(self._file, Results)
            self.iterations = [i for i in stored["iterations"] if i <= up_to_iteration]
            self._games = [game for game in stored["games"] if game[0] < len(self.iterations)]

    def rivals(self) -> list[int]:
        """Iterations of the versions against which the next one should play."""
        last = len(self.iterations) - 1
        return [self.iterations[index] for index in sorted({last, last // 2})] if last >= 0 else []

    def add(self, iteration: int, results: dict[int, Summary]) -> float:
        """Records a new version and its matches against earlier ones (by iteration); returns its Elo."""
        index = len(self.iterations)
        for rival, summary in results.items():
            points = summary["score"] * summary["games"]
            self._games.append((index, self.iterations.index(rival), points, summary["games"] - points))
        self.iterations.append(iteration)
        write_whole(self._file, json.dumps({"iterations": self.iterations, "games": self._games}))
        return self.ratings()[str(iteration)]

    def ratings(self) -> dict[str, float]:
        """Elo of every version so far, by its iteration."""
        found = elo.rate(elo.win_matrix(len(self.iterations), self._games)).elo.tolist() if self.iterations else []
        return dict(zip(map(str, self.iterations), found, strict=True))


class Versions:
    """Plays a run's present version against opponents and earlier versions, whose weights are in `run_dir/versions`.

    `judges` search the solved openings of the run's boards, by metric. `best_responses` measure exploitability in a
    game with hidden information.
    """

    def __init__(
        self,
        config: Config,
        arena: Arena,
        run_dir: Path,
        abstract_params: Params,
        judges: Mapping[str, openings.OpeningValues],
        best_responses: BestResponses | None = None,
    ):
        self._config = config
        self.arena = arena
        self.judges = judges
        self.best_responses = best_responses
        self._directory = run_dir / VERSIONS
        self._abstract_params = abstract_params
        self.has_matches = arena.has_matches
        self.ladder = Ladder(run_dir / "elo.json")

    def compilations(self) -> list[Callable[[], None]]:
        """Functions that compile the search of the openings and the programs of all matches, in the order of use."""
        if not self.has_matches:
            return []
        e = self._config.evaluation
        params = self._abstract_params
        programs = [("random", e.final_games // self._final_matches)]  # also of rollout MCTS
        if e.while_training:
            own = [("self", e.games // 2)] if self.has_elo else []
            programs = [("random", e.games), *own, *programs]
        compiled = [partial(self.arena.compile, name, params, num_games=n) for name, n in dict.fromkeys(programs)]
        return [*(partial(judge.compile, params) for judge in self.judges.values()), *compiled]

    def begin(self, params: Params) -> dict[str, float]:
        """Saves the untrained version, which has Elo 0; it plays against no fixed opponent."""
        if not self.has_matches:
            return {}
        if not self.ladder.iterations:  # empty unless the run was resumed before its first chunk
            save_params(self._directory, 0, params)
        if not self.has_elo:
            return {}
        if not self.ladder.iterations:
            self.ladder.add(0, {})
        return {"eval/elo": 0.0}

    def measure(self, params: Params, iteration: int) -> dict[str, float]:
        """Scores against the quick opponents, opening values, and the Elo of this version, which is saved.

        In a single-player game there are no opponents, and nothing is measured. A game for points has mean points
        instead of scores, and no Elo.
        """
        if not self.has_matches:
            return {}
        matches = self._meet_all(self._quick, params, self._key(iteration), self._config.evaluation.games)
        record = scores(matches, self._judge_openings(params)) | self._exploited(params)
        if iteration in self.ladder.iterations:
            return record
        kept = checkpoint_steps(self._directory)
        rivals = [rival for rival in self.ladder.rivals() if rival in kept and self.has_elo]
        results = {rival: self._meet(rival, params, iteration) for rival in rivals}
        save_params(self._directory, iteration, params)
        if self.has_elo and (results or not self.ladder.iterations):  # none if versions were deleted: no rating
            record["eval/elo"] = self.ladder.add(iteration, results)
        return record

    def conclude(self, params: Params, iteration: int) -> tuple[dict[str, Any], dict[str, float]]:
        """(for the summary, for the metrics): final matches against all opponents of the config, and opening values."""
        e = self._config.evaluation
        count = self._final_matches
        if not self.has_matches:
            return {"strength": {}}, {}
        key = jax.random.fold_in(self._key(iteration), _FINAL)
        strength = self._meet_all(e.mcts_simulations, params, key, e.final_games // count, count)
        judged = self._judge_openings(params)
        own = {"openings": judged[metrics.OPENINGS]} if metrics.OPENINGS in judged else {}
        exploited = self._exploited(params)
        own |= {"exploitability": exploited[metrics.EXPLOITABILITY]} if exploited else {}
        return {"strength": strength} | own, scores(strength, judged) | exploited

    @property
    def has_elo(self) -> bool:
        """Whether versions are rated: Elo knows games only as won, drawn or lost, not for points."""
        return not self.arena.is_for_points

    def ratings(self) -> dict[str, float]:
        """Elo of every version, by its iteration; empty in a game for points."""
        return self.ladder.ratings() if self.has_elo else {}

    def _exploited(self, params: Params) -> dict[str, float]:
        """The exploitability by its metric; nothing in a game with too many states."""
        if self.best_responses is None:
            return {}
        try:
            return {metrics.EXPLOITABILITY: self.best_responses.examine(params).exploitability}
        except NotWalkable:
            self.best_responses = None
            return {}

    def _judge_openings(self, params: Params) -> dict[str, Any]:
        """`openings.judge` of the search's opening values, by metric."""
        return {metric: openings.judge(judge.values(params)) for metric, judge in self.judges.items()}

    @property
    def _quick(self) -> list[int]:
        return [n for n in self._config.evaluation.mcts_simulations if n <= QUICK_SIMULATIONS]

    @property
    def _final_matches(self) -> int:
        """Number of matches that hold the final games, so that they can use the program of the usual match size."""
        e = self._config.evaluation
        return e.final_games // e.games if e.final_games % e.games == 0 else 1

    def _meet_all(
        self, mcts_simulations: Sequence[int], params: Params, key: Array, num_games: int, num_matches: int = 1
    ) -> dict[str, Summary]:
        return {
            spec: self.arena.play(spec, params, key, num_games=num_games, num_matches=num_matches)
            for spec in _specs(mcts_simulations)
        }

    def _meet(self, rival: int, params: Params, iteration: int) -> Summary:
        _, rival_params = restore_params(self._directory, self._abstract_params, step=rival)
        num_games = self._config.evaluation.games // 2
        return self.arena.play("self", params, self._key(iteration), num_games=num_games, rival=rival_params)

    def _key(self, iteration: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(self._config.seed), _EVALUATION), iteration)


def open_versions(
    config: Config, algorithm: Algorithm, mesh: Mesh, run_dir: Path, abstract_params: Params, iteration: int
) -> Versions:
    """The evaluator of a run, with its versions and their Elo up to this iteration."""
    agent = make_agent(config, algorithm)
    boards = {metrics.OPENINGS: agent} | {
        f"{metrics.OPENINGS}_{sizes.name(size)}": make_agent(sizes.of_board(config, size))
        for size in config.boards
        if size != config.board_size
    }
    searched = {metric: openings.solved_openings(each, mesh.devices.flat[0]) for metric, each in boards.items()}
    judges = {metric: judge for metric, judge in searched.items() if judge is not None}
    placed = placed_shapes(abstract_params, NamedSharding(mesh, PartitionSpec()))
    versions = Versions(config, Arena(agent, mesh), run_dir, placed, judges, _best_responses(agent))
    versions.ladder.load(iteration)
    return versions


def _best_responses(agent: Agent) -> BestResponses | None:
    if not hides(agent.environment):
        return None
    try:
        return BestResponses(agent.environment, policy_head_search(agent.model), most_states=MOST_STATES_WHILE_TRAINING)
    except NotWalkable:  # a game of the user's own, whose deals are not listed
        return None


def scores(matches: dict[str, Summary], judged: dict[str, Any]) -> dict[str, float]:
    """The metrics of matches (by opponent) and of `openings.judge`'s results (by metric)."""
    shares = {metric: openings.share_right(found) for metric, found in judged.items()}
    if are_for_points(matches.values()):
        return {f"{metrics.POINTS}{spec}": points_of(match)[0] for spec, match in matches.items()} | shares
    return {f"eval/{spec}": match["score"] for spec, match in matches.items()} | shares


def _specs(mcts_simulations: Sequence[int]) -> list[str]:
    return ["random", *(f"mcts:{n}" for n in mcts_simulations)]
