"""How far a learned model drifts from the true rules, k steps of dynamics away from a position that it saw.

Two lines are walked side by side: the game's own states, and the model's embeddings, which see the first position and
then only the moves. At each depth the model's opinion of its embedding is compared with its opinion of the true
observation, so a difference is the dynamics' fault and not the heads'. `unroll` follows one line a position;
`look_at_tree` asks the same of the nodes of search trees, where it matters.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from muzero_jax.arithmetic.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, EnvState, Model, NetworkOutput, Params

DECISIVE = 0.5
"""A reward beyond this is a win, as outcomes are -1, 0 or 1."""
MOST_MOVES = 32
"""Legal moves whose reward is looked at in a position, drawn at random where it has more."""


class Drift(NamedTuple):
    """N positions at one depth; leading axes are [K+1, N] after `unroll`. Numbers mean something where `is_alive`."""

    is_alive: Array  # [N] bool, the line has not ended the game before this depth
    value: Array  # [N] |value of the embedding - value of the true observation|
    policy: Array  # [N] total variation between the two policies over the legal moves, in [0, 1]
    illegal: Array  # [N] prior that the embedding's policy gives to illegal moves
    is_same: Array  # [N] bool, the embedding's reconstruction is the true observation
    wins: Array  # [N] looked-at moves that win at once
    wins_found: Array  # [N] those of them whose predicted reward says so
    other: Array  # [N] looked-at moves that do not
    false_wins: Array  # [N] those of them whose predicted reward says that they do
    decisive_error: Array  # [N] sum of |predicted - true reward| over moves that end the game decisively
    decisive: Array  # [N] how many these are
    quiet_error: Array  # [N] the same sum over the other moves looked at
    quiet: Array  # [N]


class TreeFaults(NamedTuple):
    """N search trees, each of M simulations."""

    illegal: Array  # [N] simulations that end at or below a move which the rules forbid
    beyond_end: Array  # [N] simulations that end below a legal line's last move
    illegal_prior: Array  # [N] prior on illegal moves, summed over nodes in which the game goes on, without the root
    inner: Array  # [N] how many these nodes are


def unroll(
    environment: Environment,
    model: Model,
    params: Params,
    key: Array,
    states: EnvState,
    is_random: Array,
    *,
    unroll_steps: int,
) -> Drift:
    """Drift at depths 0 to K along one line from each of N positions: leaves [K+1, N].

    The line takes uniformly random legal moves where `is_random` [N], else the policy head's best legal move in the
    true position. Rewards in row k are of moves from the position at depth k, so they take k + 1 steps of dynamics.
    """

    def descend(carry, step_key):
        states, output, is_alive = carry
        move_key, look_key = jax.random.split(step_key)
        observation = jax.vmap(environment.observe)(states)
        true = model.initial_inference(params, observation)
        drift = _compare(model, states.legal_action_mask, output, true)
        drift["is_same"] = _is_same(model.reconstruct(params, output.embedding), observation)
        drift |= _look_at_rewards(environment, model, params, look_key, states, output.embedding, is_alive)

        likely = jnp.argmax(jnp.where(states.legal_action_mask, true.policy_logits, -jnp.inf), axis=-1)
        action = jnp.where(is_random, uniform_legal_action(move_key, states.legal_action_mask), likely)
        action = action.astype(jnp.int32)
        output = model.recurrent_inference(params, output.embedding, action)
        states = jax.vmap(environment.move)(states, action).state
        return (states, output, is_alive & ~states.terminated), Drift(is_alive=is_alive, **drift)

    root = model.initial_inference(params, jax.vmap(environment.observe)(states))
    carry = states, root, ~states.terminated
    return lax.scan(descend, carry, jax.random.split(key, unroll_steps + 1))[1]


def look_at_tree(environment: Environment, states: EnvState, tree: Any) -> TreeFaults:
    """What the nodes of `tree` (`search.tree.Tree`, leaves [M+1, N, ...]) are by the true rules, the roots `states`.

    Replays every node's line: a node is illegal if a move on its line is, beyond the end if a legal line ended above.
    """
    num_nodes, num_games = tree.parent.shape
    rows = jnp.arange(num_games)

    def replay(node, carry):
        nodes, is_illegal, is_beyond = carry
        parent, action = tree.parent[node], tree.action[node]
        above = jax.tree.map(lambda x: x[parent, rows], nodes)
        beyond = is_beyond[parent, rows] | (above.terminated & ~is_illegal[parent, rows])
        illegal = is_illegal[parent, rows] | (~beyond & ~above.legal_action_mask[rows, action])
        moved = jax.vmap(environment.move)(above, action).state
        nodes = jax.tree.map(lambda x, new: x.at[node].set(new), nodes, moved)
        return nodes, is_illegal.at[node].set(illegal), is_beyond.at[node].set(beyond)

    nodes = jax.tree.map(lambda x: jnp.zeros((num_nodes, *x.shape), x.dtype).at[0].set(x), states)
    nowhere = jnp.zeros((num_nodes, num_games), bool)
    nodes, is_illegal, is_beyond = lax.fori_loop(1, num_nodes, replay, (nodes, nowhere, nowhere))
    is_inner = (~is_illegal & ~is_beyond & ~nodes.terminated).at[0].set(False)
    illegal_prior = jnp.where(nodes.legal_action_mask, 0, tree.prior).sum(-1)
    return TreeFaults(
        illegal=is_illegal.sum(0),
        beyond_end=is_beyond.sum(0),
        illegal_prior=jnp.where(is_inner, illegal_prior, 0).sum(0),
        inner=is_inner.sum(0),
    )


def _compare(model: Model, legal: Array, output: NetworkOutput, true: NetworkOutput) -> dict[str, Array]:
    """Fields of `Drift`: what is said of the embedding against what is said of the true observation."""
    logits, true_logits = (x.policy_logits.astype(jnp.float32) for x in (output, true))
    difference = jax.nn.softmax(logits, where=legal) - jax.nn.softmax(true_logits, where=legal)
    return {
        "value": jnp.abs(model.to_scalar(output.value_logits) - model.to_scalar(true.value_logits)),
        "policy": jnp.abs(difference).sum(-1) / 2,
        "illegal": jnp.where(legal, 0, jax.nn.softmax(logits)).sum(-1),
    }


def _is_same(logits: Array, observation: Array) -> Array:
    """[N] bool, every cell of the reconstruction is more likely than not what it should be."""
    return ((logits > 0) == observation.astype(bool)).reshape(observation.shape[0], -1).all(-1)


def _look_at_rewards(
    environment: Environment,
    model: Model,
    params: Params,
    key: Array,
    states: EnvState,
    embedding: Any,
    is_alive: Array,
) -> dict[str, Array]:
    """The other fields of `Drift`: rewards of legal moves from here, predicted and true."""
    legal = states.legal_action_mask
    num_games, num_moves = legal.shape[0], min(legal.shape[1], MOST_MOVES)
    order = jnp.where(legal, jax.random.uniform(key, legal.shape), -1)
    action = lax.top_k(order, num_moves)[1]
    is_looked_at = jnp.take_along_axis(legal, action, axis=1) & is_alive[:, None]

    flat_action = action.astype(jnp.int32).reshape(-1)
    each_state, each_embedding = (jax.tree.map(lambda x: jnp.repeat(x, num_moves, 0), x) for x in (states, embedding))
    reward = jax.vmap(environment.move)(each_state, flat_action).reward.reshape(num_games, num_moves)
    output = model.recurrent_inference(params, each_embedding, flat_action)
    predicted = model.to_scalar(output.reward_logits).reshape(num_games, num_moves)

    error = jnp.abs(predicted - reward)
    wins, decisive = is_looked_at & (reward > DECISIVE), is_looked_at & (jnp.abs(reward) > DECISIVE)
    other, quiet = is_looked_at & ~wins, is_looked_at & ~decisive
    says_win = predicted > DECISIVE
    return {
        "wins": wins.sum(-1),
        "wins_found": (wins & says_win).sum(-1),
        "other": other.sum(-1),
        "false_wins": (other & says_win).sum(-1),
        "decisive_error": jnp.where(decisive, error, 0).sum(-1),
        "decisive": decisive.sum(-1),
        "quiet_error": jnp.where(quiet, error, 0).sum(-1),
        "quiet": quiet.sum(-1),
    }
