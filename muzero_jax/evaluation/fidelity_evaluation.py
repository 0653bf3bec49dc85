"""A run's learned model against the true rules, as plain numbers: `examine` measures, `format_table` shows.

Positions come from the agent's own games, played by its policy head with random moves among its own, so they are
varied and yet such as the agent meets. Means over a depth are over the lines that have not ended the game there; along
the agent's own moves that is a shrinking and ever more peaceful share, which is why random moves are walked as well.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from muzero_jax.evaluation import fidelity, positions
from muzero_jax.evaluation.batches import in_keyed_batches
from muzero_jax.evaluation.fidelity import Drift, TreeFaults
from muzero_jax.evaluation.players import Agent
from muzero_jax.evaluation.tables import align, percent
from muzero_jax.types import EnvState

Result = dict[str, Any]
"""`lines` (a list of rows, one a depth, for each kind of move), `tree` and the settings."""
LINES = {"policy": "the agent's own moves", "random": "uniformly random moves"}
COLUMNS = {
    "depth": "depth",
    "lines": "lines",
    "wins": "wins",
    "value_drift": "value",
    "policy_drift": "policy",
    "illegal_prior": "illegal",
    "win_found_rate": "wins found",
    "false_win_rate": "false wins",
    "reward_error_decisive": "error (end)",
    "reward_error_quiet": "error (other)",
    "same_observation_rate": "imagined",
}


def examine(agent: Agent, *, num_positions: int, unroll_steps: int, seed: int) -> Result:
    """Unrolls the agent's model from at most `num_positions` positions, and searches from them.

    Raises ValueError for numbers that are not positive.
    """
    for flag, number in (("--positions", num_positions), ("--unroll-steps", unroll_steps)):
        if number < 1:
            raise ValueError(f"{flag} is {number}, but must be positive")
    states = _own_positions(agent, num_positions, seed)
    imagines = agent.config.optimiser.reconstruction_weight > 0
    drifts = _unroll(agent, states, unroll_steps, seed)
    tree = tree_row(_search(agent, states, seed), agent.num_simulations)
    return {
        "positions": states.terminated.shape[0],
        "lines": {kind: depth_rows(drift, imagines=imagines) for kind, drift in drifts.items()},
        "tree": {"num_simulations": agent.num_simulations} | tree,
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
        lines += [*align([columns.values(), *([_cell(row[key]) for key in columns] for row in rows)]), ""]
    tree = result["tree"]
    shares = {key: percent(tree[key], "none") for key in ("illegal_visits", "visits_beyond_end", "illegal_prior")}
    lines += [
        f"In search trees of {tree['num_simulations']} simulations: {shares['illegal_visits']} of them below a "
        f"move that the rules forbid, {shares['visits_beyond_end']} beyond a game's end; below the root, "
        f"{shares['illegal_prior']} of the prior is on illegal moves.",
        "What the model costs in strength: the score of the same network against itself with the true rules, "
        f"--opponent rules:{tree['num_simulations']}; half the points means that it costs nothing.",
    ]
    return "\n".join(lines)


def _cell(number: float | int | None) -> str:
    return "-" if number is None else f"{number:.4f}" if isinstance(number, float) else str(number)


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
    num_drawn = 2 * num_positions  # half of them come from random games
    drawn = positions.sample(
        agent.parts.environment, agent.policy_head(), agent.params, num_positions=num_drawn, min_plies=0, seed=seed
    )
    own = np.nonzero(drawn.is_own_play)[0][:num_positions]
    return jax.tree.map(lambda leaf: leaf[own], drawn.states)


def _unroll(agent: Agent, states: EnvState, unroll_steps: int, seed: int) -> dict[str, Drift]:
    """`fidelity.unroll` along each kind of line, on the host with leaves [K+1, N]."""
    unroll = partial(fidelity.unroll, agent.parts.environment, agent.parts.model, agent.params)

    @jax.jit
    def by_row(key, states, is_random):
        return _swapped(unroll(key, states, is_random, unroll_steps=unroll_steps))

    def along(kind):
        return _swapped(in_keyed_batches(by_row, seed, states, np.full(states.terminated.shape, kind == "random")))

    return {kind: along(kind) for kind in LINES}


def _swapped(drift: Drift) -> Drift:
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), drift)


def _search(agent: Agent, states: EnvState, seed: int) -> TreeFaults:
    """The faults of the trees that the agent's search grows from the states."""
    environment, config = agent.parts.environment, agent.config
    config = replace(config, search=replace(config.search, engine="own"))  # whose trees can be read
    search = agent._replace(config=config).search()

    @jax.jit
    def look(key, states):
        output = search(agent.params, key, environment.look(states))
        return fidelity.look_at_tree(environment, states, output.tree)

    return in_keyed_batches(look, seed, states)


def _ratio(total: Any, count: Any) -> float | None:
    return float(total / count) if count else None
