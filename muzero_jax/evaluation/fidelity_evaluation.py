"""A run's learned model against the true rules, as plain numbers: `examine` measures, `format_table` shows.

Positions come from the agent's own games, played by its policy head with random moves among its own, so they are
varied and yet such as the agent meets. Means over a depth are over the lines that have not ended the game there; along
the agent's own moves that is a shrinking and ever more peaceful share, which is why random moves are walked as well.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from muzero_jax.evaluation import fidelity, opponents, positions
from muzero_jax.evaluation.arena import Agent
from muzero_jax.evaluation.batches import in_batches
from muzero_jax.evaluation.fidelity import Drift, TreeFaults
from muzero_jax.training import make_search
from muzero_jax.types import EnvState

Result = dict[str, Any]
"""`lines` (a list of rows, one a depth, for each kind of move), `tree` and the settings."""
BATCH_SIZE = 256
LINES = {"policy": "the agent's own moves", "random": "uniformly random moves"}
COLUMNS = {
    "value_drift": "value",
    "policy_drift": "policy",
    "illegal_prior": "illegal",
    "win_found_rate": "wins found",
    "false_win_rate": "false wins",
    "reward_error_decisive": "error (end)",
    "reward_error_quiet": "error (other)",
    "same_observation_rate": "imagined",
}


def examine(agent: Agent, *, num_positions: int, unroll_steps: int, num_simulations: int | None, seed: int) -> Result:
    """Unrolls the run's model from at most `num_positions` positions, and searches from them.

    Args:
      num_simulations: of the search trees that are looked at; by default the run's evaluation budget.

    Raises ValueError for numbers that are not positive.
    """
    for flag, number in (("--positions", num_positions), ("--unroll-steps", unroll_steps)):
        if number < 1:
            raise ValueError(f"{flag} is {number}, but must be positive")
    states = _own_positions(agent, num_positions, seed)
    budget = num_simulations or agent.config.evaluation.num_simulations
    imagines = agent.config.optimiser.reconstruction_weight > 0
    unroll = _make_unroll(agent, unroll_steps, seed)
    walks = {kind: unroll(states, kind == "random") for kind in LINES}
    return {
        "positions": states.terminated.shape[0],
        "lines": {kind: depth_rows(drift, imagines=imagines) for kind, drift in walks.items()},
        "tree": {"num_simulations": budget} | tree_row(_search(agent, states, budget, seed), budget),
    }


def depth_rows(drift: Drift, *, imagines: bool) -> list[dict[str, Any]]:
    """One row a depth, from a drift on the host with leaves [K+1, N]; a mean over nothing is None.

    `imagines` is whether the model was trained to reconstruct observations; otherwise that column is None throughout.
    """
    return [
        {"depth": depth} | _depth_row(Drift(*(np.asarray(field)[depth] for field in drift)), imagines)
        for depth in range(drift.is_alive.shape[0])
    ]


def tree_row(faults: TreeFaults, num_simulations: int) -> dict[str, float | None]:
    """Shares of all simulations, and the mean prior on illegal moves inside the trees."""
    simulations = np.size(faults.illegal) * num_simulations
    return {
        "illegal_visits": _ratio(faults.illegal.sum(), simulations),
        "visits_beyond_end": _ratio(faults.beyond_end.sum(), simulations),
        "illegal_prior": _ratio(faults.illegal_prior.sum(), faults.inner.sum()),
    }


def format_table(result: Result) -> str:
    """A table for each kind of line, what the trees hold, and how to learn what all that costs."""
    lines = []
    for kind, rows in result["lines"].items():
        lines.append(f"Along {LINES[kind]}, from {result['positions']} positions of its own games:")
        columns = {key: title for key, title in COLUMNS.items() if any(row[key] is not None for row in rows)}
        lines.append("  ".join(["depth", "lines", " wins", *(f"{title:>13}" for title in columns.values())]))
        for row in rows:
            counts = (f"{row[name]:>5}" for name in ("depth", "lines", "wins"))
            cells = (f"{'-':>13}" if row[key] is None else f"{row[key]:13.4f}" for key in columns)
            lines.append("  ".join([*counts, *cells]))
        lines.append("")
    tree = result["tree"]
    lines += [
        f"In search trees of {tree['num_simulations']} simulations: {_percent(tree['illegal_visits'])} of them below a "
        f"move that the rules forbid, {_percent(tree['visits_beyond_end'])} beyond a game's end; below the root, "
        f"{_percent(tree['illegal_prior'])} of the prior is on illegal moves.",
        "What the model costs in strength: the score of the same network against itself with the true rules, "
        f"--opponent rules:{tree['num_simulations']}; half the points means that it costs nothing.",
    ]
    return "\n".join(lines)


def _depth_row(drift: Drift, imagines: bool) -> dict[str, Any]:
    alive = drift.is_alive
    count = int(alive.sum())

    def mean(field):
        return _ratio(np.where(alive, field, 0).sum(), count)

    return {
        "lines": count,
        "value_drift": mean(drift.value),
        "policy_drift": mean(drift.policy),
        "illegal_prior": mean(drift.illegal),
        "wins": int(drift.wins.sum()),
        "win_found_rate": _ratio(drift.wins_found.sum(), drift.wins.sum()),
        "false_win_rate": _ratio(drift.false_wins.sum(), drift.other.sum()),
        "reward_error_decisive": _ratio(drift.decisive_error.sum(), drift.decisive.sum()),
        "reward_error_quiet": _ratio(drift.quiet_error.sum(), drift.quiet.sum()),
        "same_observation_rate": mean(drift.is_same) if imagines else None,
    }


def _own_positions(agent: Agent, num_positions: int, seed: int) -> EnvState:
    """States [N, ...] of the agent's games, none of them over."""
    environment = agent.parts.environment
    player = opponents.greedy_prior_player(environment, agent.parts.model)
    drawn = positions.sample(
        environment, player, agent.params, num_positions=2 * num_positions, min_plies=0, seed=seed
    )  # half of them come from random games
    own = np.nonzero(drawn.is_own_play)[0][:num_positions]
    return jax.tree.map(lambda leaf: leaf[own], drawn.states)


def _make_unroll(agent: Agent, unroll_steps: int, seed: int) -> Callable[[EnvState, bool], Drift]:
    """`fidelity.unroll` over any number of positions: (states, whether moves are random) -> Drift [K+1, N]."""
    environment, model, params = agent.parts.environment, agent.parts.model, agent.params

    @jax.jit
    def unroll(states, is_random, batch_index):
        key = jax.random.fold_in(jax.random.key(seed), batch_index[0])
        drift = fidelity.unroll(environment, model, params, key, states, is_random, unroll_steps=unroll_steps)
        return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), drift)

    def unroll_all(states, is_random):
        drift = _in_batches(unroll, states, np.full(states.terminated.shape, is_random))
        return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), drift)

    return unroll_all


def _search(agent: Agent, states: EnvState, num_simulations: int, seed: int) -> TreeFaults:
    """The faults of the trees that the agent's search grows from the states."""
    environment, model, params = agent.parts.environment, agent.parts.model, agent.params
    config = replace(agent.config, search=replace(agent.config.search, engine="own"))  # whose trees can be read
    search = make_search(config, environment, model, noise=False, num_simulations=num_simulations)

    @jax.jit
    def look(states, batch_index):
        key = jax.random.fold_in(jax.random.key(seed), batch_index[0])
        output = search(params, key, jax.vmap(environment.observe)(states), states.legal_action_mask)
        return fidelity.look_at_tree(environment, states, output.tree)

    return _in_batches(look, states)


def _in_batches(function: Callable, states: EnvState, *others: np.ndarray) -> Any:
    """`in_batches` with each row's batch index as a last input: every batch draws from a key of its own."""
    size = states.terminated.shape[0]
    batch_size = min(BATCH_SIZE, size)
    return in_batches(function, batch_size, states, *others, np.arange(size, dtype=np.uint32) // batch_size)


def _ratio(total: Any, count: Any) -> float | None:
    return float(total / count) if count else None


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f}%"
