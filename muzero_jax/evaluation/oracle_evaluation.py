"""Moves against exact play: `examine` draws positions, solves them, and judges moves by the solutions.

The positions depend on the run and the seed alone, not on who is judged, so that players are compared on the same
ones; an agent's own games are played by its policy head.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from muzero_jax import building
from muzero_jax.evaluation import oracle_scores, players, positions
from muzero_jax.evaluation.batches import in_keyed_batches
from muzero_jax.evaluation.players import Agent, MakeParts, PlayerSpec
from muzero_jax.evaluation.positions import Positions
from muzero_jax.evaluation.tables import fields
from muzero_jax.games.catalogue import make_oracle
from muzero_jax.games.oracle import Oracle, solve
from muzero_jax.types import EnvState, Params

BUDGETS = (16, 64, 256)
"""Simulations a move, unless others are asked for."""


class Candidate(NamedTuple):
    """Somebody whose moves are judged."""

    name: str
    params: Params
    answer: Callable[[Params, Array, EnvState], tuple[Array, Array | None]]
    """(params, key, states [B]) -> (action [B], the positions' value for their movers [B] if it has an opinion)"""


def examine(
    agent: Agent,
    candidates: list[Candidate],
    *,
    num_positions: int,
    seed: int,
    report: Callable[[int, int], None] = lambda solved, total: None,
) -> dict[str, Any]:
    """Judges the candidates on positions of the agent's game; returns the positions' kinds and `scores`, one a player.

    Args:
      num_positions: at most; a game with few positions is examined on all of them, whatever this says.
      report: called with (solved, total) while positions are solved, which can take a minute.

    Raises:
      ValueError: no oracle for this game or board, or too few positions asked for.
    """
    if num_positions < 1:
        raise ValueError(f"--positions is {num_positions}, but must be positive")
    oracle = make_oracle(agent.config.env, agent.config.board_size)
    states, is_own_play = _draw(agent, oracle, num_positions, seed)
    if not is_own_play.size:
        raise ValueError(f"none of the games drawn lasted {oracle.min_plies} moves; ask for more --positions")
    num_actions = agent.parts.environment.num_actions
    solutions = solve(oracle, states.observation, num_actions=num_actions, report=report)
    scores = [oracle_scores.score_random(solutions, is_own_play)]
    for candidate in candidates:
        answer = jax.jit(partial(candidate.answer, candidate.params))
        action, value = in_keyed_batches(answer, seed, states)
        scores.append(oracle_scores.score_player(candidate.name, action, value, solutions, is_own_play))
    return oracle_scores.describe(solutions, is_own_play) | {"scores": scores}


def format_table(result: dict[str, Any]) -> str:
    """The positions' kinds, then one line a player."""
    kinds = {name: value for name, value in result.items() if name != "scores"}
    return f"{fields(kinds)}\n\n{oracle_scores.format_table(result['scores'])}"


def agent_candidates(agent: Agent, budgets: tuple[int, ...]) -> list[Candidate]:
    """The run's policy head by itself, then its search without noise at each budget."""
    if min(budgets, default=0) < 1:
        raise ValueError("--budgets needs one or more numbers of simulations, all of them positive")
    return [_policy_head(agent), *(_searching(agent, budget) for budget in budgets)]


def named_candidate(
    spec: PlayerSpec, agent: Agent, num_simulations: int | None, make_parts: MakeParts = building.make_parts
) -> Candidate:
    """A player by name, as in `players.load`; its opinion of a position's value is not asked for."""
    name, player, params, _ = players.load(spec, agent, num_simulations, make_parts)

    def answer(params, key, states):
        return player.act(params, key, states), None

    return Candidate(name if spec.run else player.name, params, answer)


def _policy_head(agent: Agent) -> Candidate:
    environment, model = agent.parts.environment, agent.parts.model

    def answer(params, key, states):
        del key
        output = model.initial_inference(params, jax.vmap(environment.observe)(states))
        legal_logits = jnp.where(states.legal_action_mask, output.policy_logits, -jnp.inf)
        return jnp.argmax(legal_logits, axis=-1), model.to_scalar(output.value_logits)

    return Candidate("policy head", agent.params, answer)


def _searching(agent: Agent, num_simulations: int) -> Candidate:
    environment, search = agent.parts.environment, agent.search(num_simulations)

    def answer(params, key, states):
        output = search(params, key, environment.look(states))
        return output.action, output.value

    return Candidate(f"{num_simulations} simulations", agent.params, answer)


def _draw(agent: Agent, oracle: Oracle, num_positions: int, seed: int) -> Positions:
    environment = agent.parts.environment
    if oracle.is_small:
        return positions.enumerate_all(environment)
    return positions.sample(
        environment,
        agent.policy_head(),
        agent.params,
        num_positions=num_positions,
        min_plies=oracle.min_plies,
        seed=seed,
    )
