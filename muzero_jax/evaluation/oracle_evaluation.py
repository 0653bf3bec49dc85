"""A trained agent against exact play: `examine` draws positions, solves them, and judges moves by the solutions.

The positions depend on the run and the seed alone, not on who is judged, so that players are compared on the same
ones; an agent's own games are played by its policy head. Each player answers for all positions in batches of one
compiled size.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.evaluation import arena, opponents, oracle_scores, positions
from muzero_jax.evaluation.arena import Agent
from muzero_jax.evaluation.batches import in_batches
from muzero_jax.evaluation.positions import Positions
from muzero_jax.games.catalogue import make_oracle
from muzero_jax.games.oracle import Oracle, solve
from muzero_jax.training import make_search
from muzero_jax.types import EnvState, Params

BUDGETS = (16, 64, 256)
"""Simulations a move, unless others are asked for."""
BATCH_SIZE = 256


class Candidate(NamedTuple):
    """Somebody whose moves are judged."""

    name: str
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
        action, value = _answers(candidate, agent.params, states, seed)
        scores.append(oracle_scores.score_player(candidate.name, action, value, solutions, is_own_play))
    return oracle_scores.describe(solutions, is_own_play) | {"scores": scores}


def agent_candidates(agent: Agent, budgets: tuple[int, ...]) -> list[Candidate]:
    """The run's policy head by itself, then its search without noise at each budget."""
    if min(budgets, default=0) < 1:
        raise ValueError("--budgets needs one or more numbers of simulations, all of them positive")
    return [_policy_head(agent), *(_searching(agent, budget) for budget in budgets)]


def named_candidate(spec: str, agent: Agent) -> Candidate:
    """The player that `spec` names as in `arena.make_opponent`; its opinion of a position's value is not asked for.

    Raises ValueError for any other name.
    """
    try:
        player = arena.make_opponent(spec, agent.parts)
    except ValueError:
        choices = "agent, random, greedy or mcts:N; another run is judged by giving it as --run"
        raise ValueError(f"there is no player {spec!r}: choose {choices}") from None
    return Candidate(player.name, lambda params, key, states: (player.act(params, key, states), None))


def _policy_head(agent: Agent) -> Candidate:
    environment, model = agent.parts.environment, agent.parts.model

    def answer(params, key, states):
        del key
        output = model.initial_inference(params, jax.vmap(environment.observe)(states))
        legal_logits = jnp.where(states.legal_action_mask, output.policy_logits, -jnp.inf)
        return jnp.argmax(legal_logits, axis=-1), model.to_scalar(output.value_logits)

    return Candidate("policy head", answer)


def _searching(agent: Agent, num_simulations: int) -> Candidate:
    environment, model = agent.parts.environment, agent.parts.model
    search = make_search(agent.config, environment, model, noise=False, num_simulations=num_simulations)

    def answer(params, key, states):
        output = search(params, key, jax.vmap(environment.observe)(states), states.legal_action_mask)
        return output.action, output.value

    return Candidate(f"{num_simulations} simulations", answer)


def _draw(agent: Agent, oracle: Oracle, num_positions: int, seed: int) -> Positions:
    environment = agent.parts.environment
    if oracle.is_small:
        return positions.enumerate_all(environment)
    return positions.sample(
        environment,
        opponents.greedy_prior_player(environment, agent.parts.model),
        agent.params,
        num_positions=num_positions,
        min_plies=oracle.min_plies,
        seed=seed,
    )


def _answers(candidate: Candidate, params: Params, states: EnvState, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """What the candidate plays [N] and thinks [N]; every batch draws from a key of its own."""
    size = states.terminated.shape[0]
    batch_size = min(BATCH_SIZE, size)
    batch_index = np.arange(size, dtype=np.uint32) // batch_size

    @jax.jit
    def answer(states, batch_index):
        return candidate.answer(params, jax.random.fold_in(jax.random.key(seed), batch_index[0]), states)

    return in_batches(answer, batch_size, states, batch_index)
