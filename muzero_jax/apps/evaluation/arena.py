"""Matches shared among the devices: of any two players, and those by which a run is measured while it trains."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.agent import Agent
from muzero_jax.apps.evaluation import matches, openings, players
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.ops.devices import AXIS, placed_shapes, shard_map
from muzero_jax.types import Environment, Params

Summary = dict[str, Any]
"""`matches.summarise`'s dict: wins, draws, losses, games, score, ci95, ..."""

Report = Callable[[int, int], None]
"""Called with the games finished so far, and the games in all."""


def silent(*_: Any) -> None:
    """Reports nothing."""


MOVES_PER_CALL = 8
"""On several CPU devices XLA keeps a search's tasks for helpers until the program ends: 380 MiB for a tower's match."""


class ShardedMatch:
    """A match shared among a mesh's devices; called, it returns `matches.summarise`'s dict, for player A."""

    def __init__(self, match: matches.Pieces, mesh: Mesh):
        def begin(key):
            return match.begin(key, jax.lax.axis_index(AXIS))

        def advance(params_a, params_b, key, games):
            return match.advance(params_a, params_b, own(key), games, MOVES_PER_CALL)

        def own(key):
            return jax.random.fold_in(key, jax.lax.axis_index(AXIS))

        self.stochastic = match.stochastic
        everywhere, games = PartitionSpec(), PartitionSpec(None, AXIS)
        self._begin = jax.jit(shard_map(begin, mesh, (everywhere,), games))
        self._advance = jax.jit(shard_map(advance, mesh, (everywhere,) * 3 + (games,), games), donate_argnums=3)
        self._replicated, self._shared = NamedSharding(mesh, everywhere), NamedSharding(mesh, games)

    def compile(self, params_a: Params, params_b: Params) -> None:
        """Compiles the match for params, or `jax.ShapeDtypeStruct`s, of such shapes; JAX remembers it for the call."""
        inputs = placed_shapes((params_a, params_b, jax.eval_shape(jax.random.key, 0)), self._replicated)
        games = placed_shapes(jax.eval_shape(self._begin, inputs[2]), self._shared)
        self._begin.lower(inputs[2]).compile()
        self._advance.lower(*inputs, games).compile()

    def play(self, params_a: Params, params_b: Params, key: Array, report: Report = silent) -> matches.MatchResult:
        """Plays the match; `report(games finished, games in all)` is called on the way."""
        inputs = jax.device_put((params_a, params_b, key), self._replicated)
        games = self._begin(inputs[2])
        while not (is_over := jax.device_get(games.states.terminated)).all():
            report(int(is_over.sum()), is_over.size)
            games = self._advance(*inputs, games)
        return jax.device_get(games.result)

    def __call__(self, params_a: Params, params_b: Params, key: Array, report: Report = silent) -> Summary:
        """Plays the match and sums it up."""
        return matches.summarise(self.play(params_a, params_b, key, report), stochastic=self.stochastic)


def sharded_match(
    environment: Environment, player_a: Player, player_b: Player, mesh: Mesh, *, num_games: int, opening_plies: int
) -> ShardedMatch:
    """A match of two players on the mesh's devices.

    The number of games is rounded up to a multiple of two a device: every opening is played with both colours.
    """
    per_device = 2 * -(-num_games // (2 * mesh.size))
    match = matches.match_in_pieces(environment, player_a, player_b, num_games=per_device, opening_plies=opening_plies)
    return ShardedMatch(match, mesh)


class Arena:
    """The matches of one run; each is compiled when it is first played, or before.

    `openings` searches the solved openings of Hex; None where there are none. Only a two-player game `has_matches`.
    """

    def __init__(self, agent: Agent, mesh: Mesh, report: Report = silent):
        self._agent, self.mesh, self._report = agent, mesh, report
        self._match = functools.cache(self._make_match)
        self.has_matches = agent.environment.num_players == 2
        self.openings = openings.solved_openings(self._agent, mesh.devices.flat[0])

    def _make_match(self, opponent: str, num_games: int) -> ShardedMatch:
        agent = self._agent
        player = players.searching(agent)
        rival = player if opponent == "self" else players.enter(players.parse(opponent), agent).player
        plies = agent.config.evaluation.opening_plies
        return sharded_match(agent.environment, player, rival, self.mesh, num_games=num_games, opening_plies=plies)

    def compile(self, opponent: str, params: Params, *, num_games: int) -> None:
        """Compiles what `play` plays, from the agent's params or their shapes, which its rivals' have too."""
        self._match(opponent, num_games).compile(params, params)

    def play(
        self, opponent: str, params: Params, key: Array, *, num_games: int, num_matches: int = 1, rival: Params = None
    ) -> Summary:
        """The agent with `params` against an opponent's spec, or against "self" with the params of `rival`.

        `num_matches` matches of `num_games` games each are summed up as one, and need one program.
        """
        match = self._match(opponent, num_games)
        other = rival if opponent == "self" else params
        keys = (jax.random.fold_in(key, index) for index in range(num_matches))
        results = [match.play(params, other, each, self._report) for each in keys]
        together = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *results)
        return matches.summarise(together, stochastic=match.stochastic)
