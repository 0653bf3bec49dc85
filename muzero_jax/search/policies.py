"""Tree search: Gumbel MuZero (default) and PUCT MuZero, as rules for `tree.grow`, over any `Simulator`.

`legal_action_mask` is True where legal, and applies at the root only, because further down a learned model has no rules
to ask. Each node's signed discount makes Q = r + d v hold for either player. The searches of `mctx_reference` make the
same trees, except for ties within rounding. PUCT differs in two more ways: an exact tie goes to the lowest action,
whereas mctx chooses at random, and the noise at the root is sampled differently (`dirichlet`).
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from muzero_jax.ops.dirichlet import dirichlet
from muzero_jax.ops.reductions import first_argmax, reduce_rows
from muzero_jax.search import passes
from muzero_jax.search.rules import Row, SearchRules, of_actions
from muzero_jax.search.simulator import Simulator
from muzero_jax.search.tree import grow, row_of
from muzero_jax.types import Params, QTransform, SearchFn, SearchOutput, SearchRoots

_TINY = float(jnp.finfo(jnp.float32).tiny)


def gumbel_search(
    simulator: Simulator,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    gumbel_scale: float,
    qtransform: QTransform,
    improved_value: bool,
    in_passes: bool = False,
) -> SearchFn:
    """Gumbel MuZero's search (Danihelka et al. 2022): sequential halving at the root, completed Q values in the policy.

    Args:
      max_num_considered_actions: m, capped at `num_simulations`: with fewer simulations than m each gets at most one.
      gumbel_scale: 1 in self-play, 0 in evaluation and play (then the search is deterministic).
      improved_value: `value` is sum_a pi(a) q(a) over the improved policy and the completed Q. Otherwise it is the mean
        of all simulations, as in MuZero; sequential halving spends half of them on actions that it then drops.
      in_passes: run all simulations of a round of halving at the same time (`passes`); no tree is then returned.
    """
    sigma = partial(scaled_q, qtransform=qtransform)
    below = partial(_improved_policy_rule, sigma)
    most_considered = min(max_num_considered_actions, num_simulations)

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        legal_action_mask = roots.legal_action_mask
        num_actions = legal_action_mask.shape[-1]
        expand_key, gumbel_key = jax.random.split(key)
        root = simulator.root(params, roots)
        logits = masked_logits(root.prior, legal_action_mask)
        root = root._replace(prior=jax.nn.softmax(logits))
        gumbel = gumbel_scale * jax.random.gumbel(gumbel_key, logits.shape) if gumbel_scale else 0.0

        def score(row: Row) -> Array:
            """gumbel + logits + sigma(q) of the legal actions [B, A], and -inf of the others."""
            scores = gumbel + logits - logits.max(-1, keepdims=True) + sigma(row)
            return jnp.where(legal_action_mask, jnp.maximum(scores, -1e9), -jnp.inf)

        def best_visited(row: Row, visits: Array) -> Array:
            """The action [B] with the highest score among those with so many `visits` [B]."""
            return first_argmax(jnp.where(row.visits == visits[:, None], score(row), -jnp.inf))

        if in_passes:
            rounds = passes.rounds_of(considered_visits(min(most_considered, num_actions), num_simulations))
            row = passes.visit(root, simulator, params, score, below, expand_key, rounds=rounds)
            tree = None
        else:
            table = jnp.asarray(considered_visits(most_considered, num_simulations))
            num_considered = jnp.minimum(most_considered, legal_action_mask.sum(-1))
            rules = SearchRules(lambda row, simulation: best_visited(row, table[num_considered, simulation]), below)
            tree = grow(root, simulator, params, rules, num_simulations, expand_key)
            row = of_actions(row_of(tree), num_actions)
        policy = jax.nn.softmax(_mask(logits + sigma(row), legal_action_mask))
        value = (policy * completed_q(row)).sum(-1) if improved_value else row.value
        action = best_visited(row, row.visits.max(-1))
        return SearchOutput(action, policy, value, tree, simulations=row.visits.sum(-1))

    return search


def puct_search(
    simulator: Simulator,
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

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        legal_action_mask = roots.legal_action_mask
        action_key, dirichlet_key, expand_key = jax.random.split(key, 3)
        root = simulator.root(params, roots)
        prior = root.prior
        if dirichlet_fraction:
            noise = dirichlet(dirichlet_key, dirichlet_alpha, prior.shape)
            prior = (1 - dirichlet_fraction) * prior + dirichlet_fraction * noise
        prior = jax.nn.softmax(masked_logits(prior, legal_action_mask))
        rules = SearchRules(
            root=lambda row, _: first_argmax(jnp.where(legal_action_mask, score(row), -jnp.inf)),
            below=lambda row: first_argmax(score(row)),
        )
        tree = grow(root._replace(prior=prior), simulator, params, rules, num_simulations, expand_key)
        row = of_actions(row_of(tree), legal_action_mask.shape[-1])
        policy = row.visits / num_simulations
        action = first_argmax(policy)
        if temperature:
            action = jax.random.categorical(action_key, jnp.log(policy) / temperature).astype(jnp.int32)
        return SearchOutput(action, policy, row.value, tree, simulations=row.visits.sum(-1))

    return search


def completed_q(row: Row) -> Float[Array, "B A"]:
    """Q, with the mixed value for unvisited actions (Danihelka et al. 2022, equation 10 and appendix D).

    The mixed value lies between the network's value and the visited actions' Q, weighted by their prior.
    """
    is_visited = row.visits > 0
    prior = jnp.where(is_visited, jnp.maximum(row.prior, _TINY), 0)
    known, weighted, total = reduce_rows((jnp.sum, prior), (jnp.sum, prior * row.q), (jnp.sum, row.visits))
    mixed_value = (row.raw_value[:, None] + total * (weighted / jnp.maximum(known, _TINY))) / (total + 1)
    return jnp.where(is_visited, row.q, mixed_value)


def scaled_q(row: Row, qtransform: QTransform) -> Float[Array, "B A"]:
    """sigma of the completed Q values (Danihelka et al. 2022, equation 8)."""
    q = completed_q(row)
    low, high, most_visits = reduce_rows((jnp.min, q), (jnp.max, q), (jnp.max, row.visits))
    if qtransform.rescale_values:
        q = (q - low) / jnp.maximum(high - low, 1e-8)
    return (qtransform.maxvisit_init + most_visits) * qtransform.value_scale * q


def _improved_policy_rule(sigma, row: Row) -> Array:
    """The rule below the root: visits follow softmax(logits + sigma(q)) (Danihelka et al. 2022, section 5)."""
    q = sigma(row)
    top, total = reduce_rows((jnp.max, jnp.where(row.prior > 0, q, -jnp.inf)), (jnp.sum, row.visits))
    weights = row.prior * jnp.exp(jnp.minimum(q - top, 0))
    return first_argmax(weights / weights.sum(-1, keepdims=True) - row.visits / (1 + total))


def puct_scores(row: Row, *, pb_c_init: float, pb_c_base: float) -> Float[Array, "B A"]:
    """PUCT (Schrittwieser et al. 2020, equations 2 and 5), Q stretched to [0, 1] over the node and its children.

    An unvisited action has the lowest Q, 0.
    """
    is_visited = row.visits > 0
    known_q = jnp.where(is_visited, row.q, row.value[:, None])
    low, high, total = reduce_rows((jnp.min, known_q), (jnp.max, known_q), (jnp.sum, row.visits))
    low, high = jnp.minimum(row.value[:, None], low), jnp.maximum(row.value[:, None], high)
    q = jnp.where(is_visited, (row.q - low) / jnp.maximum(high - low, 1e-8), 0)
    count = 1 + total
    weight = jnp.sqrt(count) * (pb_c_init + jnp.log((count + pb_c_base + 1) / pb_c_base))
    return q + weight * row.prior / (row.visits + 1)


def considered_visits(max_num_considered_actions: int, num_simulations: int) -> np.ndarray:
    """Sequential halving (Karnin et al. 2013) as a table [m + 1, num_simulations].

    Row k, for k actions to consider, says how often the action that simulation i takes was visited before: at first all
    k in turn, then in each phase half of those left, down to two.
    """
    rows = [halving(k, num_simulations) for k in range(max_num_considered_actions + 1)]
    return np.array(rows, np.float32)


def halving(num_considered: int, num_simulations: int) -> list[int]:
    """A row of `considered_visits`."""
    if num_considered <= 1:
        return list(range(num_simulations))
    num_phases = math.ceil(math.log2(num_considered))
    sequence = []
    visits = 0
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (num_phases * num_considered))):
            sequence += [visits] * num_considered
            visits += 1
        num_considered = max(2, num_considered // 2)
    return sequence[:num_simulations]


def masked_logits(prior: Array, legal_action_mask: Array) -> Array:
    """The prior's logits, at most 0 where legal."""
    logits = jnp.log(jnp.maximum(prior, _TINY))
    return _mask(logits - logits.max(-1, keepdims=True), legal_action_mask)


def _mask(logits: Array, legal_action_mask: Array) -> Array:
    """The lowest finite logit where illegal: -inf would turn a row without any legal action into NaNs."""
    return jnp.where(legal_action_mask, logits, jnp.finfo(logits.dtype).min)
