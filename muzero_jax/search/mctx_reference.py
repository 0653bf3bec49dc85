"""The reference: the searches of `policies`, through mctx (`--search.engine mctx`).

`legal_action_mask` is True where legal everywhere in this project, and inverted only here, for mctx's
`invalid_actions`. The functions' arguments are explained in `policies`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import mctx
from jaxtyping import Array

from muzero_jax.search.simulator import Simulator
from muzero_jax.types import Params, QTransform, SearchFn, SearchOutput, SearchRoots


def _root(simulator: Simulator, params: Params, roots: SearchRoots) -> mctx.RootFnOutput:
    node = simulator.root(params, roots)
    return mctx.RootFnOutput(prior_logits=_logits(node.prior), value=node.value, embedding=node.embedding)


def _logits(prior: Array) -> Array:
    return jnp.log(jnp.maximum(prior, jnp.finfo(jnp.float32).tiny))


def _recurrent_fn(simulator: Simulator) -> mctx.RecurrentFn:
    assert simulator.num_outcomes is None, "mctx's policies for chance nodes are others"

    def recurrent_fn(params, rng_key, action, embedding):
        node = simulator.expand(params, rng_key, action, embedding)
        step = mctx.RecurrentFnOutput(
            reward=node.reward, discount=node.discount, prior_logits=_logits(node.prior), value=node.value
        )
        return step, node.embedding

    return recurrent_fn


def gumbel_search(
    simulator: Simulator,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    gumbel_scale: float,
    qtransform: QTransform,
    improved_value: bool,
) -> SearchFn:
    """`policies.gumbel_search`, through mctx."""
    recurrent_fn = _recurrent_fn(simulator)
    sigma = partial(mctx.qtransform_completed_by_mix_value, **qtransform._asdict())

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        output = mctx.gumbel_muzero_policy(
            params,
            key,
            _root(simulator, params, roots),
            recurrent_fn,
            num_simulations,
            invalid_actions=~roots.legal_action_mask,
            max_num_considered_actions=min(max_num_considered_actions, num_simulations),
            gumbel_scale=gumbel_scale,
            qtransform=sigma,
        )
        summary = output.search_tree.summary()
        value = summary.value
        if improved_value:
            # mctx gives its completed Q values only as (maxvisit_init + max visits) * value_scale * q.
            completed_q = partial(
                mctx.qtransform_completed_by_mix_value, value_scale=1.0, maxvisit_init=0.0, rescale_values=False
            )
            root = jnp.zeros(roots.legal_action_mask.shape[0], jnp.int32)
            q = jax.vmap(completed_q)(output.search_tree, root)
            q /= summary.visit_counts.max(-1, keepdims=True)
            value = (output.action_weights * q).sum(-1)
        made = summary.visit_counts.sum(-1).astype(jnp.float32)
        return SearchOutput(output.action, output.action_weights, value, output.search_tree, simulations=made)

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
    """`policies.puct_search`, through mctx, which breaks ties at random; without noise one fixed key does so."""
    is_noisy = dirichlet_fraction > 0 or temperature > 0
    recurrent_fn = _recurrent_fn(simulator)

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        output = mctx.muzero_policy(
            params,
            key if is_noisy else jax.random.key(0),
            _root(simulator, params, roots),
            recurrent_fn,
            num_simulations,
            invalid_actions=~roots.legal_action_mask,
            dirichlet_fraction=dirichlet_fraction,
            dirichlet_alpha=dirichlet_alpha,
            pb_c_init=pb_c_init,
            pb_c_base=pb_c_base,
            temperature=temperature,
        )
        # mctx divides by the temperature, so at 0 the most visited action is taken directly.
        most_visited = jnp.argmax(output.action_weights, axis=-1).astype(jnp.int32)
        action = output.action if temperature else most_visited
        summary = output.search_tree.summary()
        made = summary.visit_counts.sum(-1).astype(jnp.float32)
        return SearchOutput(action, output.action_weights, summary.value, output.search_tree, simulations=made)

    return search
