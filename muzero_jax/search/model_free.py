"""Policies without a tree: the policy head itself, and its regularised improvement by predicted values of the actions.

Both have the signature of a search, and report no simulations.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.search.simulator import Simulator
from muzero_jax.types import ACTION_VALUES, Params, SearchFn, SearchOutput, SearchRoots


def improved(
    prior: Float[Array, "B A"], q: Float[Array, "B A"], *, kl_weight: float, entropy_weight: float
) -> Float[Array, "B A"]:
    """The policy that maximises E[q] - kl_weight KL(policy || prior) + entropy_weight H(policy).

    It is proportional to prior^(k / (k + h)) exp(q / (k + h)), with k and h the two weights (Ota et al. 2026, arXiv
    2602.10894; Sokota et al. 2023, arXiv 2206.05825, section 3). Where the prior is 0 it is 0.

    Args:
      prior: probabilities. q: the return expected after each action. entropy_weight: above 0.
    """
    logits = (kl_weight * jnp.log(prior) + q) / (kl_weight + entropy_weight)
    return jax.nn.softmax(logits, where=prior > 0)


def regularised(simulator: Simulator, *, kl_weight: float, entropy_weight: float, most_value: float = 1.0) -> SearchFn:
    """Self-play without a search: draws its move from the `improved` policy, which the policy head then learns.

    The network predicts values of the actions in shares of `most_value`, and `improved` compares them so.
    """
    judge = simulator.judge
    assert judge is not None, "a simulator that judges positions without a search"

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        found = judge(params, roots)
        q = found.extras[ACTION_VALUES]
        policy = improved(found.prior, q, kl_weight=kl_weight, entropy_weight=entropy_weight)
        action = jax.random.categorical(key, jnp.log(policy)).astype(jnp.int32)
        return SearchOutput(action, policy, most_value * jnp.sum(policy * q, axis=-1))

    return search


def policy_head(simulator: Simulator) -> SearchFn:
    """The policy head, its likeliest legal action, and the value head's value."""
    judge = simulator.judge
    assert judge is not None, "a simulator that judges positions without a search"

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        found = judge(params, roots)
        return SearchOutput(jnp.argmax(found.prior, axis=-1).astype(jnp.int32), found.prior, found.value)

    return search
