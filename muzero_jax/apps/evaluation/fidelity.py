"""Fidelity: how far a learned model drifts from the ground-truth model after k steps of dynamics.

The game's states and the model's embeddings are unrolled along the same moves; the model only sees the first position
and the moves. At each depth, the predictions from the embedding are compared with those from the true observation, so
that differences come from the dynamics and not from the heads. `unroll` follows one line from each position;
`look_at_tree` finds illegal and finished nodes in search trees.

Positions come from games of the agent's policy head with some random moves, so that they are varied but typical. A mean
at some depth is over the lines whose games have not ended. Along the agent's own moves these become fewer and quieter
with depth, so random moves are unrolled as well.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from muzero_jax.agent import Agent
from muzero_jax.algorithm import playing
from muzero_jax.apps.evaluation import players, positions
from muzero_jax.apps.evaluation.batches import in_keyed_batches
from muzero_jax.apps.evaluation.tables import align, percent
from muzero_jax.games.catalogue import check_for_two, check_without_chance
from muzero_jax.ops.legal_actions import predicted_legal, uniform_legal_action
from muzero_jax.search.simulator import policy
from muzero_jax.types import Environment, EnvState, Model, NetworkOutput, Params

DECISIVE = 0.5
"""A larger reward is a win, because results are -1, 0 or 1."""
MOST_MOVES = 32
"""The most legal moves of a position whose rewards are compared; chosen at random if it has more."""

Result = dict[str, Any]
"""`lines` (for each kind of move a list of rows by depth), `tree` and the settings."""
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
TREE = "illegal_visits", "visits_beyond_end", "illegal_prior"


class Mean(NamedTuple):
    """The sum and the count of a mean, for each of N positions."""

    total: Array  # [N, ...]
    count: Array  # [N, ...]


Means = dict[str, Mean]


def examine(agent: Agent, *, num_positions: int, unroll_steps: int, seed: int) -> Result:
    """Unrolls the agent's model from at most `num_positions` positions, and searches from them.

    Raises ValueError for an agent without a learned model, a single-player game, or a game with chance.
    """
    check_for_two(agent.environment, "this comparison needs")
    check_without_chance(agent.environment, "this comparison")
    if not agent.config.learns_dynamics:
        raise ValueError(
            f"{agent.name} was trained with --model {agent.config.model}, so it has no learned model to judge"
        )
    if agent.model.num_codes:
        raise ValueError(
            f"{agent.name} predicts chance by codes that it learned, which cannot be compared with the outcomes of the "
            "game; its losses of chance in metrics.jsonl show how well it predicts them"
        )
    states = _own_positions(agent, num_positions, seed)
    return {
        "positions": states.terminated.shape[0],
        "lines": {kind: depth_rows(_walk(agent, states, kind, unroll_steps, seed)) for kind in LINES},
        "tree": {"num_simulations": agent.num_simulations} | tree_row(_search(agent, states, seed)),
    }


def depth_rows(means: Means) -> list[Result]:
    """A row for each depth, from means with leaves [N, K+1]; an empty mean is None."""
    sums = jax.tree.map(lambda leaf: np.asarray(leaf).sum(axis=0), means)
    lines = sums["value_drift"].count
    wins = sums["win_found_rate"].count
    return [
        {"depth": depth, "lines": int(lines[depth]), "wins": int(wins[depth])}
        | {name: _ratio(mean.total[depth], mean.count[depth]) for name, mean in sums.items()}
        for depth in range(len(lines))
    ]


def tree_row(means: Means) -> Result:
    """Shares of all simulations, and the mean prior on illegal moves in the trees; from means with leaves [N]."""
    return {name: _ratio(np.sum(mean.total), np.sum(mean.count)) for name, mean in means.items()}


def format_table(result: Result) -> str:
    """A table for each kind of line, the errors in trees, and how to measure their cost in strength."""
    lines = []
    for kind, rows in result["lines"].items():
        lines.append(f"Along {LINES[kind]}, from {result['positions']} positions of its own games:")
        columns = {key: title for key, title in COLUMNS.items() if any(row[key] is not None for row in rows)}
        lines += [*align([columns.values(), *([_cell(row[key]) for key in columns] for row in rows)]), ""]
    tree = result["tree"]
    illegal, beyond, prior = (percent(tree[key], "none") for key in TREE)
    lines += [
        f"In search trees of {tree['num_simulations']} simulations: {illegal} of them below a move that the rules "
        f"forbid, {beyond} beyond a game's end; below the root, {prior} of the prior is on illegal moves.",
        "What the model costs in strength: the score of the same network against itself with the ground-truth model, "
        f"evaluate.py match --opponent rules:{tree['num_simulations']}; half the points means that it costs nothing.",
    ]
    return "\n".join(lines)


def unroll(
    agent: Agent, params: Params, key: Array, states: EnvState, is_random: Array, *, unroll_steps: int, imagines: bool
) -> Means:
    """The drift at depths 0 to K = `unroll_steps` along one line from each of N positions: leaves [N, K+1].

    Moves are uniformly random and legal if `is_random` [N], else the policy head's best legal move in the true
    position. Rewards at depth k are of moves from there, so they take k + 1 steps of dynamics. `imagines` says whether
    the model was trained to reconstruct observations; if not, that mean is empty.
    """
    environment = agent.environment
    model = agent.model

    def descend(carry, step_key):
        states, output, is_alive = carry
        move_key, look_key = jax.random.split(step_key)
        observation = jax.vmap(environment.observe)(states)
        legal = states.legal_action_mask
        true = model.initial_inference(params, observation)
        is_same = (model.reconstruct(params, output.embedding) > 0) == observation.astype(bool)
        means = {name: _mean(drift, is_alive) for name, drift in compare(model, legal, output, true).items()}
        means |= _look_at_rewards(agent, params, look_key, states, output.embedding, is_alive)
        means["same_observation_rate"] = _mean(is_same.reshape(len(legal), -1).all(-1), is_alive & imagines)

        likely = jnp.argmax(jnp.where(legal, true.policy_logits, -jnp.inf), axis=-1)
        action = jnp.where(is_random, uniform_legal_action(move_key, legal), likely).astype(jnp.int32)
        output = model.recurrent_inference(params, output.embedding, action)
        states = jax.vmap(environment.move)(states, action).state
        return (states, output, is_alive & ~states.terminated), means

    root = model.initial_inference(params, jax.vmap(environment.observe)(states))
    carry = states, root, ~states.terminated
    means = lax.scan(descend, carry, jax.random.split(key, unroll_steps + 1))[1]
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), means)


def compare(model: Model, legal: Array, output: NetworkOutput, true: NetworkOutput) -> dict[str, Array]:
    """Differences between the outputs for the embedding and for the true observation, [N] each.

    `value_drift`: |difference|. `policy_drift`: total variation over the legal moves, in [0, 1]. `illegal_prior`: the
    probability of illegal moves in the embedding's policy, as a search sees it, that is, masked by the predicted legal
    moves if the model predicts these.
    """
    logits, true_logits = (x.policy_logits.astype(jnp.float32) for x in (output, true))
    difference = jax.nn.softmax(logits, where=legal) - jax.nn.softmax(true_logits, where=legal)
    return {
        "value_drift": jnp.abs(model.to_scalar(output.value_logits) - model.to_scalar(true.value_logits)),
        "policy_drift": jnp.abs(difference).sum(-1) / 2,
        "illegal_prior": jnp.where(legal, 0, policy(output, predicted_legal(output.extras))).sum(-1),
    }


def _look_at_rewards(
    agent: Agent, params: Params, key: Array, states: EnvState, embedding: Any, is_alive: Array
) -> Means:
    """How well rewards of legal moves from here are predicted: of moves that win or end the game, and of others."""
    legal = states.legal_action_mask
    num_moves = min(legal.shape[1], MOST_MOVES)
    order = jnp.where(legal, jax.random.uniform(key, legal.shape), -1)
    action = lax.top_k(order, num_moves)[1]
    is_looked_at = jnp.take_along_axis(legal, action, axis=1) & is_alive[:, None]

    flat_action = action.astype(jnp.int32).ravel()
    each_state, each_embedding = (jax.tree.map(lambda x: jnp.repeat(x, num_moves, 0), x) for x in (states, embedding))
    reward = jax.vmap(agent.environment.move)(each_state, flat_action).reward.reshape(action.shape)
    output = agent.model.recurrent_inference(params, each_embedding, flat_action)
    predicted = agent.model.to_scalar(output.reward_logits).reshape(action.shape)

    error = jnp.abs(predicted - reward)
    says_win = predicted > DECISIVE
    wins = reward > DECISIVE
    is_decisive = jnp.abs(reward) > DECISIVE
    return {
        "win_found_rate": _mean(says_win, is_looked_at & wins),
        "false_win_rate": _mean(says_win, is_looked_at & ~wins),
        "reward_error_decisive": _mean(error, is_looked_at & is_decisive),
        "reward_error_quiet": _mean(error, is_looked_at & ~is_decisive),
    }


def look_at_tree(environment: Environment, states: EnvState, tree: Any) -> Means:
    """Errors in the nodes of `tree` (`search.tree.Tree`, leaves [M+1, N, ...]), whose roots are `states`.

    Replays the moves to every node. A node is illegal if one of its moves is, and beyond the end if its game ended
    before it by legal moves. The prior on illegal moves is taken over unfinished legal nodes below the root.
    """
    num_nodes, num_games = tree.parent.shape
    rows = jnp.arange(num_games)

    def replay(node, carry):
        nodes, is_illegal, is_beyond = carry
        parent = tree.parent[node]
        action = tree.action[node]
        above = jax.tree.map(lambda x: x[parent, rows], nodes)
        beyond = is_beyond[parent, rows] | (above.terminated & ~is_illegal[parent, rows])
        illegal = is_illegal[parent, rows] | (~beyond & ~above.legal_action_mask[rows, action])
        moved = jax.vmap(environment.move)(above, action).state
        nodes = jax.tree.map(lambda x, new: x.at[node].set(new), nodes, moved)
        return nodes, is_illegal.at[node].set(illegal), is_beyond.at[node].set(beyond)

    nodes = jax.tree.map(lambda x: jnp.zeros((num_nodes, *x.shape), x.dtype).at[0].set(x), states)
    nowhere = jnp.zeros((num_nodes, num_games), bool)
    nodes, is_illegal, is_beyond = lax.fori_loop(1, num_nodes, replay, (nodes, nowhere, nowhere))
    is_node = nowhere.at[1:].set(True)
    illegal_prior = jnp.where(nodes.legal_action_mask, 0, tree.prior).sum(-1)
    return {
        "illegal_visits": _mean(is_illegal.T, is_node.T),
        "visits_beyond_end": _mean(is_beyond.T, is_node.T),
        "illegal_prior": _mean(illegal_prior.T, (is_node & ~is_illegal & ~is_beyond & ~nodes.terminated).T),
    }


def _mean(values: Array, where: Array) -> Mean:
    """The mean over `where` of each position's values [N] or [N, M]."""
    values, where = (x.reshape(len(x), -1) for x in (values, where))
    return Mean(jnp.where(where, values, 0).sum(-1), where.sum(-1))


def _ratio(total: Any, count: Any) -> float | None:
    return float(total / count) if count else None


def _cell(number: float | int | None) -> str:
    return "-" if number is None else f"{number:.4f}" if isinstance(number, float) else str(number)


def _own_positions(agent: Agent, num_positions: int, seed: int) -> EnvState:
    """States [N, ...] of unfinished games of the agent."""
    player = players.policy_head(agent)  # because half of them come from random games
    twice = 2 * num_positions
    drawn = positions.sample(agent.environment, player, agent.params, num_positions=twice, min_plies=0, seed=seed)
    own = np.nonzero(drawn.is_own_play)[0][:num_positions]
    return jax.tree.map(lambda leaf: leaf[own], drawn.states)


def _walk(agent: Agent, states: EnvState, kind: str, unroll_steps: int, seed: int) -> Means:
    """`unroll` along one kind of line, on the host."""
    imagines = agent.config.optimiser.reconstruction_weight > 0
    by_line = partial(unroll, agent, agent.params, unroll_steps=unroll_steps, imagines=imagines)
    return in_keyed_batches(jax.jit(by_line), seed, states, np.full(states.terminated.shape, kind == "random"))


def _search(agent: Agent, states: EnvState, seed: int) -> Means:
    """Errors in the trees of the agent's search from the states, on the host."""
    environment = agent.environment
    # Our own engine keeps trees that can be read; the run's own algorithm may not.
    config = replace(agent.config, search=replace(agent.config.search, engine="own"))
    simulator = playing.make_simulator(config, environment, agent.model)
    search = playing.make_search(config, simulator, agent.num_simulations)

    @jax.jit
    def look(key, states):
        output = search(agent.params, key, environment.roots(states))
        return look_at_tree(environment, states, output.tree)

    return in_keyed_batches(look, seed, states)
