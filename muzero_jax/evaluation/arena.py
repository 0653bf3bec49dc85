"""Who plays whom: players by name, trained runs as agents, matches shared among the devices."""

import functools
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.arithmetic.devices import AXIS, shard_map
from muzero_jax.building import make_parts, make_search
from muzero_jax.evaluation import matches, opponents
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import restore_params
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Params, Player

Summary = dict[str, Any]
"""`matches.summarise`'s dict: wins, draws, losses, games, score, ci95, ..."""

OPPONENT_SPECS = (
    "random, greedy (the run's own policy head), rules:N (the run's network, searching with the true rules), mcts:N "
    "(rollout MCTS, N simulations), a run directory, or a version of one (RUN/versions/N)"
)


def make_agent(config: Config, parts: Parts, num_simulations: int, *, true_rules: bool = False) -> Player:
    """The trained agent as others meet it: search without noise.

    With `true_rules` the same network under the same search plans with the game in place of its own dynamics.
    """
    environment, budget = parts.environment, f"({num_simulations} simulations)"
    search = make_search(
        config, environment, parts.model, noise=False, num_simulations=num_simulations, true_rules=true_rules
    )
    name = f"true rules {budget}" if true_rules else f"agent {budget}"
    return opponents.search_player(environment, search, name)


class Agent(NamedTuple):
    """A trained run, ready to play."""

    config: Config
    parts: Parts
    params: Params
    player: Player
    iteration: int


def load_agent(path: Path, num_simulations: int | None = None) -> Agent:
    """A run's newest intact checkpoint, or the version that `path` names (RUN/versions/N), on the first device.

    It searches with its evaluation budget unless one is given. Raises ValueError in one sentence if `path` names no
    run, no intact checkpoint or no version that there is.
    """
    saved = run_directory.find_saved(path) or run_directory.Saved(path)
    config = configs.load(saved.run_dir)
    step = run_directory.version_of(saved)
    parts = make_parts(config)
    abstract = jax.eval_shape(parts.model.init, jax.random.key(0))
    folder = saved.folder or saved.run_dir / run_directory.CHECKPOINTS
    iteration, params = restore_params(folder, abstract, step=step)
    budget = config.evaluation.num_simulations if num_simulations is None else num_simulations
    if budget < 1:
        raise ValueError(f"--num-simulations is {budget}, but must be positive")
    return Agent(config, parts, params, make_agent(config, parts, budget), iteration)


def load_opponent(spec: str, agent: Agent, num_simulations: int | None) -> tuple[Player, Params]:
    """The opponent that `spec` names, with its params: one of `OPPONENT_SPECS`."""
    if is_run(spec):
        rival = load_agent(Path(spec), num_simulations)
        check_same_game(agent.config, rival.config, spec)
        return rival.player, rival.params
    kind, budget = split_budget(spec)
    if kind == "rules" and budget:
        return make_agent(agent.config, agent.parts, budget, true_rules=True), agent.params
    return make_opponent(spec, agent.parts), agent.params


def is_run(spec: str) -> bool:
    """Whether `spec` is a run's directory, or lies in one; such a name goes before any other meaning."""
    return run_directory.find_saved(Path(spec)) is not None


def check_same_game(one: Config, other: Config, other_run: str) -> None:
    """Raises ValueError if two runs cannot meet."""
    for name in ("env", "board_size"):
        ours, theirs = getattr(one, name), getattr(other, name)
        if ours != theirs:
            raise ValueError(f"the runs are of different games: {name} is {ours} here and {theirs} in {other_run}")


def split_budget(spec: str, separator: str = ":") -> tuple[str, int | None]:
    """`kind:N` as (kind, N), and anything else, a budget of 0 included, as (spec, None)."""
    kind, _, budget = spec.rpartition(separator)
    return (kind, int(budget)) if budget.isdecimal() and int(budget) > 0 else (spec, None)


def make_opponent(spec: str, parts: Parts) -> Player:
    """The opponent that `spec` names, if it needs no config; ValueError lists the names for any other."""
    kind, budget = split_budget(spec)
    if spec == "random":
        return opponents.random_player(parts.environment)
    if spec == "greedy":
        return opponents.greedy_prior_player(parts.environment, parts.model)
    if kind == "mcts" and budget:
        return opponents.rollout_mcts_player(parts.environment, num_simulations=budget)
    raise ValueError(f"unknown opponent {spec!r}: choose {OPPONENT_SPECS}")


MOVES_PER_CALL = 8
"""On several CPU devices XLA keeps a search's tasks for helpers until the program ends: 380 MiB for a tower's match."""


class ShardedMatch:
    """A match shared among a mesh's devices; called, it returns `matches.summarise`'s dict, for player A.

    It is compiled when it is first called with params of such shapes, or before, by `compile`.
    """

    def __init__(self, match: matches.Pieces, mesh: Mesh):
        def begin(key):
            return match.begin(own(key))

        def advance(params_a, params_b, key, games):
            return match.advance(params_a, params_b, own(key), games, MOVES_PER_CALL)

        def own(key):
            return jax.random.fold_in(key, jax.lax.axis_index(AXIS))

        everywhere, games = PartitionSpec(), PartitionSpec(None, AXIS)
        self._begin = jax.jit(shard_map(begin, mesh, (everywhere,), games))
        self._advance = jax.jit(shard_map(advance, mesh, (everywhere,) * 3 + (games,), games), donate_argnums=3)
        self._replicated, self._shared = NamedSharding(mesh, everywhere), NamedSharding(mesh, games)
        self._compiled: dict[Hashable, tuple[jax.stages.Compiled, jax.stages.Compiled]] = {}

    def compile(
        self, params_a: Params, params_b: Params, key: Any = None
    ) -> tuple[jax.stages.Compiled, jax.stages.Compiled]:
        """The programs that begin and advance a match of arrays, or `jax.ShapeDtypeStruct`s, of such shapes."""
        key = jax.eval_shape(jax.random.key, 0) if key is None else key
        inputs = _shapes((params_a, params_b, key), self._replicated)
        leaves, structure = jax.tree.flatten(inputs)
        signature = structure, tuple(leaves)
        if signature not in self._compiled:
            games = _shapes(jax.eval_shape(self._begin, inputs[2]), self._shared)
            begin, advance = self._begin.lower(inputs[2]), self._advance.lower(*inputs, games)
            self._compiled[signature] = begin.compile(), advance.compile()
        return self._compiled[signature]

    def __call__(self, params_a: Params, params_b: Params, key: Array) -> Summary:
        """Plays the match."""
        inputs = jax.device_put((params_a, params_b, key), self._replicated)
        begin, advance = self.compile(*inputs)
        games = begin(inputs[2])
        while not jax.device_get(games.states.terminated).all():
            games = advance(*inputs, games)
        return matches.summarise(jax.device_get(games.result))


def sharded_match(
    parts: Parts, player_a: Player, player_b: Player, mesh: Mesh, *, num_games: int, opening_plies: int
) -> ShardedMatch:
    """A match of two players on the mesh's devices.

    The number of games is rounded up to a multiple of two a device: every opening is played with both colours.
    """
    per_device = 2 * -(-num_games // (2 * mesh.size))
    match = matches.match_in_pieces(
        parts.environment, player_a, player_b, num_games=per_device, opening_plies=opening_plies
    )
    return ShardedMatch(match, mesh)


class Arena:
    """The matches of one run; each is compiled when it is first played, or before."""

    def __init__(self, config: Config, parts: Parts, mesh: Mesh):
        self._config, self._parts, self._mesh = config, parts, mesh
        self._match = functools.cache(self._make_match)

    def _make_match(self, opponent: str, num_games: int) -> ShardedMatch:
        e = self._config.evaluation
        agent = make_agent(self._config, self._parts, e.num_simulations)
        rival = agent if opponent == "self" else make_opponent(opponent, self._parts)
        return sharded_match(self._parts, agent, rival, self._mesh, num_games=num_games, opening_plies=e.opening_plies)

    def compile(self, opponent: str, params: Params, *, num_games: int) -> None:
        """Compiles what `play` plays, from the agent's params or their shapes, which its rivals' have too."""
        self._match(opponent, num_games).compile(params, params)

    def play(self, opponent: str, params: Params, key: Array, *, num_games: int, rival: Params = None) -> Summary:
        """The agent with `params` against an opponent's spec, or against "self" with the params of `rival`."""
        other = rival if opponent == "self" else params
        return self._match(opponent, num_games)(params, other, key)


def _shapes(tree: Any, sharding: NamedSharding) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree)
