"""Games shared among the devices of a mesh: any batched games, matches, and the matches of one run."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.agent import Agent
from muzero_jax.apps.evaluation import matches, players
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts_player
from muzero_jax.games.catalogue import game_of
from muzero_jax.games.own_game import with_points
from muzero_jax.ops.mesh import AXIS, placed_shapes, shard_map
from muzero_jax.types import Environment, Params

Summary = dict[str, Any]
"""`matches.summarise`'s dict: wins, draws, losses, games, score, ci95, ..."""

Report = Callable[[int, int], None]
"""Called with (games finished so far, games in all)."""


def silent(*_: Any) -> None:
    """Reports nothing."""


MOVES_PER_CALL = 8
"""Few, because with several CPU devices XLA frees a search's tasks only when a program ends: 380 MiB for a tower."""


class ShardedGames:
    """Games that a mesh's devices share, played some moves per call until all are over.

    A device begins its games by `begin(key, device number)` and continues by `advance(params, its own key, games)`;
    `is_over(games)` says which have ended. In every leaf, `axis` is the axis of games.
    """

    def __init__(self, begin: Callable, advance: Callable, is_over: Callable, mesh: Mesh, axis: int):
        def begin_share(key):
            return begin(key, jax.lax.axis_index(AXIS))

        def advance_share(params, key, games):
            return advance(params, jax.random.fold_in(key, jax.lax.axis_index(AXIS)), games)

        everywhere = PartitionSpec()
        games = PartitionSpec(*[None] * axis, AXIS)
        self._begin = jax.jit(shard_map(begin_share, mesh, (everywhere,), games))
        self._advance = jax.jit(shard_map(advance_share, mesh, (everywhere,) * 2 + (games,), games), donate_argnums=2)
        self._replicated = NamedSharding(mesh, everywhere)
        self._shared = NamedSharding(mesh, games)
        self._is_over = is_over

    def compile(self, params: Any) -> None:
        """Compiles for params of these shapes (or `jax.ShapeDtypeStruct`s); JAX caches the result for `play`."""
        params, key = placed_shapes((params, jax.eval_shape(jax.random.key, 0)), self._replicated)
        games = placed_shapes(jax.eval_shape(self._begin, key), self._shared)
        self._begin.lower(key).compile()
        self._advance.lower(params, key, games).compile()

    def play(self, params: Any, key: Array, report: Report = silent) -> Any:
        """Plays all games to their end and returns them on the host; calls `report(finished, all)` on the way."""
        params, key = jax.device_put((params, key), self._replicated)
        games = self._begin(key)
        while not (is_over := jax.device_get(self._is_over(games))).all():
            report(int(is_over.sum()), is_over.size)
            games = self._advance(params, key, games)
        return jax.device_get(games)


class ShardedMatch:
    """A match of two players on the mesh's devices; a call returns `matches.summarise`'s dict, for player A.

    The number of games is rounded up to a multiple of two per device: every opening is played with both colours.
    """

    def __init__(
        self, environment: Environment, a: Player, b: Player, mesh: Mesh, *, num_games: int, opening_plies: int
    ):
        per_device = 2 * -(-num_games // (2 * mesh.size))
        match = matches.match_in_pieces(environment, a, b, num_games=per_device, opening_plies=opening_plies)

        def advance(params, key, games):
            params_a, params_b = params
            return match.advance(params_a, params_b, key, games, MOVES_PER_CALL)

        self.summarise = functools.partial(
            matches.summarise, stochastic=match.stochastic, is_for_points=game_of(environment).is_for_points
        )
        self._games = ShardedGames(match.begin, advance, lambda games: games.states.terminated, mesh, axis=1)

    def compile(self, params_a: Params, params_b: Params) -> None:
        """Compiles the match for params or their shapes, so that `play` starts at once."""
        self._games.compile((params_a, params_b))

    def play(self, params_a: Params, params_b: Params, key: Array, report: Report = silent) -> matches.MatchResult:
        """Plays the match; calls `report(games finished, games in all)` on the way."""
        return self._games.play((params_a, params_b), key, report).result

    def __call__(self, params_a: Params, params_b: Params, key: Array, report: Report = silent) -> Summary:
        """Plays the match and sums it up."""
        return self.summarise(self.play(params_a, params_b, key, report))


class Arena:
    """The matches of one run, each compiled at `compile` or when first played. Only two-player games have matches.

    Two programs serve them all, because a run of minutes waits for their compilation: one against itself, and one
    against rollout MCTS, which takes its number of simulations as an argument, with 0 for random play.
    """

    def __init__(self, agent: Agent, mesh: Mesh):
        self._agent = agent
        self._mesh = mesh
        self._match = functools.cache(self._make_match)
        self.has_matches = agent.environment.num_players == 2
        self.is_for_points = game_of(with_points(agent.environment)).is_for_points
        """also once some game has ended with other points than 1, 0 and -1"""
        self._most_simulations = max(agent.config.evaluation.mcts_simulations, default=0)

    def _make_match(self, is_against_itself: bool, num_games: int) -> ShardedMatch:
        agent = self._agent
        player = players.searching(self._agent)
        most = self._most_simulations
        if is_against_itself:
            rival = player
        else:
            rules = agent.environment
            rival = rollout_mcts_player(rules, most_simulations=most) if most else random_player(rules)
        plies = agent.config.evaluation.opening_plies
        return ShardedMatch(agent.environment, player, rival, self._mesh, num_games=num_games, opening_plies=plies)

    def compile(self, opponent: str, params: Params, *, num_games: int) -> None:
        """Compiles the program of a match of `play`, from the agent's params or their shapes, also those of a rival."""
        rival = params if opponent == "self" else _simulations(opponent)
        self._match(opponent == "self", num_games).compile(params, rival)

    def play(
        self, opponent: str, params: Params, key: Array, *, num_games: int, num_matches: int = 1, rival: Params = None
    ) -> Summary:
        """Plays the agent with `params` against "random" or "mcts:N", or against "self" with the params `rival`.

        `num_matches` matches of `num_games` games each share one program and are summed up as one match. N is at most
        the largest of `evaluation.mcts_simulations`.
        """
        match = self._match(opponent == "self", num_games)
        other = rival if opponent == "self" else _simulations(opponent)
        assert opponent == "self" or other <= self._most_simulations, "there is no room for so many nodes"
        results = [match.play(params, other, jax.random.fold_in(key, index)) for index in range(num_matches)]
        together = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *results)
        summary = match.summarise(together, is_for_points=self.is_for_points)
        self.is_for_points |= matches.are_for_points([summary])
        return summary


def _simulations(opponent: str) -> Array:
    """The simulations of "mcts:N"; 0 for "random"."""
    return jnp.int32(0 if opponent == "random" else int(opponent.removeprefix("mcts:")))
