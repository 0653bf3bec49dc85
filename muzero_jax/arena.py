"""Who plays whom: players by name, matches shared among the devices, and a run's ladder of its own earlier versions."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array

from muzero_jax import config as configs, evaluation, opponents
from muzero_jax.checkpoint import restore_params
from muzero_jax.config import Config
from muzero_jax.training import AXIS, Parts, make_parts, make_search
from muzero_jax.types import Params, Player

Summary = dict[str, float | int | list[float]]
ShardedMatch = Callable[[Params, Params, Array], Summary]

OPPONENT_SPECS = "random, greedy (the run's own policy head), a run directory, or mcts:N (rollout MCTS under the true rules, N simulations)"


def make_agent(config: Config, parts: Parts, num_simulations: int) -> Player:
    """The trained agent as others meet it: search without noise."""
    search = make_search(config, parts.environment, parts.model, noise=False, num_simulations=num_simulations)
    return opponents.search_player(parts.environment, search, f"agent ({num_simulations} simulations)")


class Agent(NamedTuple):
    """A trained run, ready to play."""

    config: Config
    parts: Parts
    params: Params
    player: Player
    iteration: int


def load_agent(run_dir: Path, num_simulations: int | None = None) -> Agent:
    """The newest intact version of a run, on the first device; its evaluation budget unless one is given.

    Raises ValueError in one sentence if `run_dir` holds no run or no intact checkpoint.
    """
    config = configs.load(run_dir)
    parts = make_parts(config)
    abstract = jax.eval_shape(parts.model.init, jax.random.key(0))
    iteration, params = restore_params(run_dir / "checkpoints", abstract)
    budget = config.evaluation.num_simulations if num_simulations is None else num_simulations
    if budget < 1:
        raise ValueError(f"--num-simulations is {budget}, but must be positive")
    return Agent(config, parts, params, make_agent(config, parts, budget), iteration)


def load_opponent(spec: str, agent: Agent, num_simulations: int | None) -> tuple[Player, Params]:
    """The opponent that `spec` names, with its params: another run's directory, or one of `OPPONENT_SPECS`."""
    if not (Path(spec) / "config.json").exists():
        return make_opponent(spec, agent.parts), agent.params
    rival = load_agent(Path(spec), num_simulations)
    for name in ("env", "board_size"):
        ours, theirs = getattr(agent.config, name), getattr(rival.config, name)
        if ours != theirs:
            raise ValueError(f"the runs are of different games: {name} is {ours} here and {theirs} in {spec}")
    return rival.player, rival.params


def make_opponent(spec: str, parts: Parts) -> Player:
    """The opponent that `spec` names; ValueError lists the names for any other."""
    name, _, budget = spec.partition(":")
    if spec == "random":
        return opponents.random_player(parts.environment)
    if spec == "greedy":
        return opponents.greedy_prior_player(parts.environment, parts.model)
    if name == "mcts" and budget.isdecimal() and int(budget) > 0:
        return opponents.rollout_mcts_player(parts.environment, num_simulations=int(budget))
    raise ValueError(f"unknown opponent {spec!r}: choose {OPPONENT_SPECS}")


def sharded_match(
    parts: Parts, player_a: Player, player_b: Player, mesh: Mesh, *, num_games: int, opening_plies: int
) -> ShardedMatch:
    """A compiled match shared among the mesh's devices; returns `evaluation.summarise`'s dict, for player A.

    The number of games is rounded up to a multiple of two a device: every opening is played with both colours.
    """
    per_device = 2 * -(-num_games // (2 * mesh.size))
    match = evaluation.play_match(
        parts.environment, player_a, player_b, num_games=per_device, opening_plies=opening_plies
    )

    def play(params_a, params_b, key):
        return match(params_a, params_b, jax.random.fold_in(key, jax.lax.axis_index(AXIS)))

    everywhere, games = PartitionSpec(), PartitionSpec(None, AXIS)
    sharded = jax.shard_map(play, mesh=mesh, in_specs=(everywhere,) * 3, out_specs=games, check_vma=False)
    compiled = jax.jit(sharded)
    return lambda params_a, params_b, key: evaluation.summarise(jax.device_get(compiled(params_a, params_b, key)))


QUICK_SIMULATIONS = 100
"""Rollout MCTS opponents up to this budget play while training; stronger ones at the end only, for they take minutes."""


class Arena:
    """The matches of one run; each is compiled when it is first asked for."""

    def __init__(self, config: Config, parts: Parts, mesh: Mesh):
        self._config, self._parts, self._mesh = config, parts, mesh
        self._match = functools.cache(self._compile)

    def _compile(self, opponent: str, num_games: int) -> ShardedMatch:
        e = self._config.evaluation
        agent = make_agent(self._config, self._parts, e.num_simulations)
        rival = agent if opponent == "self" else make_opponent(opponent, self._parts)
        return sharded_match(self._parts, agent, rival, self._mesh, num_games=num_games, opening_plies=e.opening_plies)

    def play(self, opponent: str, params: Params, key: Array, *, num_games: int, rival: Params = None) -> Summary:
        """The agent with `params` against an opponent's spec, or against "self" with the params of `rival`."""
        other = rival if opponent == "self" else params
        return self._match(opponent, num_games)(params, other, key)


class Ladder:
    """A run's versions and their games among themselves; gives each an Elo, the first version being 0.

    Each new version meets the one before it and the one half-way back: all are connected, and not by one chain.
    Versions are kept in memory and their results in a JSON file, so that a resumed run keeps its scale.
    """

    def __init__(self, file: Path):
        self._file = file
        self.iterations: list[int] = []
        self._games: list[tuple[int, int, float, float]] = []  # (i, j, points of i, points of j), by index

    def load(self, up_to_iteration: int) -> None:
        """Reads what an earlier session wrote, without versions newer than the checkpoint resumed from."""
        if self._file.exists():
            stored = json.loads(self._file.read_text())
            self.iterations = [i for i in stored["iterations"] if i <= up_to_iteration]
            count = len(self.iterations)
            self._games = [tuple(row) for row in stored["games"] if max(row[:2]) < count]

    def rivals(self) -> list[int]:
        """Iterations of the versions that the next one should meet."""
        last = len(self.iterations) - 1
        return [self.iterations[index] for index in sorted({last, last // 2})] if last >= 0 else []

    def add(self, iteration: int, results: dict[int, Summary]) -> float:
        """Records a new version and its matches against earlier ones (by iteration); returns its Elo."""
        index = len(self.iterations)
        for rival, summary in results.items():
            points = float(summary["score"]) * float(summary["games"])  # type: ignore[arg-type]
            self._games.append(
                (index, self.iterations.index(rival), points, float(summary["games"]) - points)  # type: ignore[arg-type]
            )
        self.iterations.append(iteration)
        self._file.write_text(json.dumps({"iterations": self.iterations, "games": self._games}))
        return self.ratings()[-1]

    def by_iteration(self) -> dict[str, float]:
        """Elo of every version so far, by its iteration."""
        return {str(iteration): rating for iteration, rating in zip(self.iterations, self.ratings(), strict=True)}

    def ratings(self) -> list[float]:
        """Elo of every version so far."""
        wins = np.zeros((len(self.iterations),) * 2)
        for i, j, points, against in self._games:
            wins[i, j] += points
            wins[j, i] += against
        return [float(rating) for rating in evaluation.fit_elo(wins)]


class Versions:
    """Plays the run's present version against its opponents and its own past."""

    def __init__(self, config: Config, arena: Arena, run_dir: Path, abstract_params: Params):
        self._config, self._arena = config, arena
        self._checkpoints = run_dir / "checkpoints"
        self._abstract_params = abstract_params
        self._params: dict[int, Params] = {}
        self.ladder = Ladder(run_dir / "elo.json")

    def progress(self, params: Params, iteration: int) -> dict[str, float]:
        """Scores against the quick opponents, and the Elo on the ladder of the run's own versions."""
        e = self._config.evaluation
        quick = ["random", *(f"mcts:{n}" for n in e.mcts_simulations if n <= QUICK_SIMULATIONS)]
        record = {f"eval/{spec}": self._score(spec, params, iteration, e.games) for spec in quick}
        if iteration not in self.ladder.iterations:
            record["eval/elo"] = self.ladder.add(iteration, self._meet_rivals(params, iteration))
            # A copy on the host: the state is donated to the next chunk.
            self._params[iteration] = jax.device_get(params)
        return record

    def final(self, params: Params, iteration: int) -> dict[str, Summary]:
        """Full matches against every opponent of the config."""
        e = self._config.evaluation
        specs = ["random", *(f"mcts:{n}" for n in e.mcts_simulations)]
        return {spec: self._play(spec, params, iteration, e.final_games) for spec in specs}

    def _play(self, spec: str, params: Params, iteration: int, num_games: int, rival: Params = None) -> Summary:
        key = jax.random.fold_in(jax.random.key(self._config.seed), iteration)
        return self._arena.play(spec, params, key, num_games=num_games, rival=rival)

    def _score(self, spec: str, params: Params, iteration: int, num_games: int) -> float:
        return float(self._play(spec, params, iteration, num_games)["score"])  # type: ignore[arg-type]

    def _meet_rivals(self, params: Params, iteration: int) -> dict[int, Summary]:
        results = {}
        for rival in self.ladder.rivals():
            rival_params = self._params.get(rival)
            if rival_params is None:  # from before a resume: its checkpoint may be gone, the newest one never is
                try:
                    _, rival_params = restore_params(self._checkpoints, self._abstract_params, step=rival)
                except ValueError:
                    continue
            results[rival] = self._play("self", params, iteration, self._config.evaluation.games // 2, rival_params)
        return results
