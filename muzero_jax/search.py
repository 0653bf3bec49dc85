"""Tree search with the learned model: Gumbel MuZero (default) and PUCT MuZero, as rules for `tree_search.grow`.

`legal_action_mask` is True where legal, and applies at the root only: further down the learned model has no rules to
ask. The tree's discount is the environment's constant signed one, so Q = r + d v holds for whoever moves. Every
function of `mctx_search` has its twin here and gives the same trees, ties between equal scores aside.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from muzero_jax.tree_search import Node, Row, first_argmax, grow, row_of
from muzero_jax.types import Model, NetworkOutput, Params, SearchFn, SearchOutput

_TINY = float(jnp.finfo(jnp.float32).tiny)


def gumbel_search(
    model: Model,
    discount: float,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    gumbel_scale: float,
    value_scale: float,
    maxvisit_init: float,
    rescale_values: bool,
) -> SearchFn:
    """Gumbel MuZero's search (Danihelka et al. 2022): sequential halving at the root, completed Q values in the policy.

    Args:
      max_num_considered_actions: m, capped at `num_simulations`: with fewer simulations than m each gets at most one.
      gumbel_scale: 1 in self-play, 0 in evaluation and play (then the search is deterministic).
      value_scale, maxvisit_init: sigma(q) = (maxvisit_init + max_b N(b)) value_scale q (equation 8).
      rescale_values: stretch each node's Q to [0, 1] first, as mctx does by default. That turns the noise of an
        untrained value into large logits; False leaves values in the game's own units.
    """
    sigma = partial(completed_q, value_scale=value_scale, maxvisit_init=maxvisit_init, rescale_values=rescale_values)
    table = considered_visits(min(max_num_considered_actions, num_simulations), num_simulations)

    def search(params: Params, key: Array, observation: Array, legal_action_mask: Bool[Array, "B A"]) -> SearchOutput:
        output = model.initial_inference(params, observation)
        logits = _mask(output.policy_logits.astype(jnp.float32), legal_action_mask)
        gumbel = gumbel_scale * jax.random.gumbel(jax.random.split(key)[1], logits.shape) if gumbel_scale else 0.0
        num_considered = jnp.minimum(table.shape[0] - 1, legal_action_mask.sum(-1))

        def choose(row: Row, considered_visit: Array) -> Array:
            """The legal action with the highest gumbel + logits + sigma(q), of those visited that often."""
            scores = jnp.maximum(gumbel + logits - logits.max(-1, keepdims=True) + sigma(row), -1e9)
            is_considered = legal_action_mask & (row.visits == considered_visit[:, None])
            return first_argmax(jnp.where(is_considered, scores, -jnp.inf))

        tree = grow(
            _root(model, output, jax.nn.softmax(logits)),
            partial(_expand, model, params, discount),
            root_rule=lambda row, simulation: choose(row, table[num_considered, simulation]),
            rule=partial(_improved_policy_rule, sigma),
            num_simulations=num_simulations,
        )
        root = row_of(tree)
        policy = jax.nn.softmax(_mask(logits + sigma(root), legal_action_mask))
        return SearchOutput(choose(root, root.visits.max(-1)), policy, root.value, tree)

    return search


def puct_search(
    model: Model,
    discount: float,
    *,
    num_simulations: int,
    dirichlet_fraction: float,
    dirichlet_alpha: float,
    pb_c_init: float,
    pb_c_base: float,
    temperature: float,
) -> SearchFn:
    """MuZero's search (Schrittwieser et al. 2020, appendix B): PUCT, Dirichlet noise at the root, visits as policy.

    Args:
      dirichlet_fraction, temperature: both 0 in evaluation and play: no noise, the most visited action.
    """
    score = partial(puct_scores, pb_c_init=pb_c_init, pb_c_base=pb_c_base)

    def search(params: Params, key: Array, observation: Array, legal_action_mask: Bool[Array, "B A"]) -> SearchOutput:
        action_key, dirichlet_key, _ = jax.random.split(key, 3)
        output = model.initial_inference(params, observation)
        prior = jax.nn.softmax(output.policy_logits.astype(jnp.float32))
        if dirichlet_fraction:
            alpha = jnp.full(prior.shape[-1:], dirichlet_alpha)
            noise = jax.random.dirichlet(dirichlet_key, alpha, prior.shape[:1])
            prior = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
        prior = jax.nn.softmax(_mask(jnp.log(jnp.maximum(prior, _TINY)), legal_action_mask))

        tree = grow(
            _root(model, output, prior),
            partial(_expand, model, params, discount),
            root_rule=lambda row, _: first_argmax(jnp.where(legal_action_mask, score(row), -jnp.inf)),
            rule=lambda row: first_argmax(score(row)),
            num_simulations=num_simulations,
        )
        policy = tree.visits[0] / num_simulations
        action = first_argmax(policy)
        if temperature:
            logits = jnp.log(jnp.maximum(policy, _TINY)) / temperature
            action = jax.random.categorical(action_key, logits).astype(jnp.int32)
        return SearchOutput(action, policy, tree.value[0], tree)

    return search


def completed_q(row: Row, *, value_scale: float, maxvisit_init: float, rescale_values: bool) -> Float[Array, "B A"]:
    """sigma of the completed Q values (Danihelka et al. 2022, equations 8 and 10).

    An action never tried counts as the mixed value of appendix D: between the network's value and the visited actions'
    Q, weighted by their prior.
    """
    is_visited = row.visits > 0
    prior = jnp.where(is_visited, jnp.maximum(row.prior, _TINY), 0)
    total = row.visits.sum(-1)
    visited_q = (prior * row.q).sum(-1) / jnp.maximum(prior.sum(-1), _TINY)
    mixed_value = (row.raw_value + total * visited_q) / (total + 1)
    q = jnp.where(is_visited, row.q, mixed_value[:, None])
    if rescale_values:
        low, high = q.min(-1, keepdims=True), q.max(-1, keepdims=True)
        q = (q - low) / jnp.maximum(high - low, 1e-8)
    return (maxvisit_init + row.visits.max(-1, keepdims=True)) * value_scale * q


def _improved_policy_rule(sigma, row: Row) -> Array:
    """Below the root: the visits follow softmax(logits + sigma(q)) (Danihelka et al. 2022, section 5)."""
    q = sigma(row)
    weights = row.prior * jnp.exp(q - q.max(-1, keepdims=True))
    total = row.visits.sum(-1, keepdims=True)
    return first_argmax(weights / weights.sum(-1, keepdims=True) - row.visits / (1 + total))


def puct_scores(row: Row, *, pb_c_init: float, pb_c_base: float) -> Float[Array, "B A"]:
    """PUCT (Schrittwieser et al. 2020, equations 2 and 5), Q stretched to [0, 1] over the node and its children.

    An action never tried counts as the worst there is.
    """
    is_visited = row.visits > 0
    known_q = jnp.where(is_visited, row.q, row.value[:, None])
    low = jnp.minimum(row.value[:, None], known_q.min(-1, keepdims=True))
    high = jnp.maximum(row.value[:, None], known_q.max(-1, keepdims=True))
    q = jnp.where(is_visited, (row.q - low) / jnp.maximum(high - low, 1e-8), 0)
    count = 1 + row.visits.sum(-1, keepdims=True)
    weight = jnp.sqrt(count) * (pb_c_init + jnp.log((count + pb_c_base + 1) / pb_c_base))
    return q + weight * row.prior / (row.visits + 1)


def considered_visits(max_num_considered_actions: int, num_simulations: int) -> Array:
    """Sequential halving (Karnin et al. 2013) as a table [m + 1, num_simulations].

    Row k, for k actions to consider, says how often the action that simulation i takes was visited before: at first all
    k in turn, then in each phase half of those left, down to two.
    """
    rows = [_halving(k, num_simulations) for k in range(max_num_considered_actions + 1)]
    return jnp.asarray(np.array(rows, np.float32))


def _halving(num_considered: int, num_simulations: int) -> list[int]:
    if num_considered <= 1:
        return list(range(num_simulations))
    num_phases = math.ceil(math.log2(num_considered))
    sequence, visits = [], 0
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * num_considered))):
            sequence += [visits] * num_considered
            visits += 1
        num_considered = max(2, num_considered // 2)
    return sequence[:num_simulations]


def _mask(logits: Array, legal_action_mask: Array) -> Array:
    """The lowest finite logit where illegal: -inf would turn a row without any legal action into NaNs."""
    shifted = logits - logits.max(-1, keepdims=True)
    return jnp.where(legal_action_mask, shifted, jnp.finfo(logits.dtype).min)


def _root(model: Model, output: NetworkOutput, prior: Array) -> Node:
    value = model.to_scalar(output.value_logits)
    return Node(prior, value, output.embedding, jnp.zeros_like(value), jnp.zeros_like(value))


def _expand(model: Model, params: Params, discount: float, action: Array, embedding: Array) -> Node:
    """One step of dynamics and prediction for B nodes at once."""
    output = model.recurrent_inference(params, embedding, action)
    reward = model.to_scalar(output.reward_logits)
    return Node(
        prior=jax.nn.softmax(output.policy_logits.astype(jnp.float32)),
        value=model.to_scalar(output.value_logits),
        embedding=output.embedding,
        reward=reward,
        discount=jnp.full_like(reward, discount),
    )
