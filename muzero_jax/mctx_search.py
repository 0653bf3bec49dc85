"""The reference engine: the searches of `search`, through mctx (`--search.engine mctx`).

`legal_action_mask` is True where legal everywhere in this project; it is inverted once, here, where mctx wants
`invalid_actions`, and applies at the root only: further down the learned model has no rules to ask. The tree's
discount is the environment's constant signed one, so Q = r + d v holds for whoever moves.
"""

from functools import partial

import jax
import jax.numpy as jnp
import mctx
from jaxtyping import Array, Bool

from muzero_jax.types import Model, Params, SearchFn, SearchOutput


def _root(model: Model, params: Params, observation: Array) -> mctx.RootFnOutput:
    output = model.initial_inference(params, observation)
    return mctx.RootFnOutput(
        prior_logits=output.policy_logits.astype(jnp.float32),
        value=model.to_scalar(output.value_logits),
        embedding=output.embedding,
    )


def make_recurrent_fn(model: Model, discount: float) -> mctx.RecurrentFn:
    """mctx's recurrent function of a learned model: one step of dynamics and prediction for B nodes at once."""

    def recurrent_fn(params, rng_key, action, embedding):
        del rng_key
        output = model.recurrent_inference(params, embedding, action)
        reward = model.to_scalar(output.reward_logits)
        step = mctx.RecurrentFnOutput(
            reward=reward,
            discount=jnp.full_like(reward, discount),
            prior_logits=output.policy_logits.astype(jnp.float32),
            value=model.to_scalar(output.value_logits),
        )
        return step, output.embedding

    return recurrent_fn


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
    recurrent_fn = make_recurrent_fn(model, discount)
    qtransform = partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=value_scale,
        maxvisit_init=maxvisit_init,
        rescale_values=rescale_values,
    )

    def search(params: Params, key: Array, observation: Array, legal_action_mask: Bool[Array, "B A"]) -> SearchOutput:
        output = mctx.gumbel_muzero_policy(
            params,
            key,
            _root(model, params, observation),
            recurrent_fn,
            num_simulations,
            invalid_actions=~legal_action_mask,
            max_num_considered_actions=min(max_num_considered_actions, num_simulations),
            gumbel_scale=gumbel_scale,
            qtransform=qtransform,
        )
        return SearchOutput(
            output.action, output.action_weights, output.search_tree.summary().value, output.search_tree
        )

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
      dirichlet_fraction, temperature: both 0 in evaluation and play: no noise, the most visited action. mctx breaks
        ties by chance; then they are broken by one fixed key, so that the same position gets the same move.
    """
    is_noisy = dirichlet_fraction > 0 or temperature > 0
    recurrent_fn = make_recurrent_fn(model, discount)

    def search(params: Params, key: Array, observation: Array, legal_action_mask: Bool[Array, "B A"]) -> SearchOutput:
        output = mctx.muzero_policy(
            params,
            key if is_noisy else jax.random.key(0),
            _root(model, params, observation),
            recurrent_fn,
            num_simulations,
            invalid_actions=~legal_action_mask,
            dirichlet_fraction=dirichlet_fraction,
            dirichlet_alpha=dirichlet_alpha,
            pb_c_init=pb_c_init,
            pb_c_base=pb_c_base,
            temperature=temperature,
        )
        # mctx divides by the temperature; at 0 the most visited action is taken without its detour over noise.
        most_visited = jnp.argmax(output.action_weights, axis=-1).astype(jnp.int32)
        action = output.action if temperature else most_visited
        return SearchOutput(action, output.action_weights, output.search_tree.summary().value, output.search_tree)

    return search
