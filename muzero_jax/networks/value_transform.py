"""Scalars as distributions over a fixed support.

A categorical head is trained by cross-entropy against the two-hot code of its target (MuZero, Schrittwieser et al.
2020, appendix F) and read as the expectation. One bin means a plain scalar head with squared error.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float


class Support(NamedTuple):
    """`num_bins` equally spaced scalars from `low` to `high`; `num_bins` = 1 stands for a scalar head."""

    low: float
    high: float
    num_bins: int


def two_hot(x: Float[Array, "..."], support: Support) -> Float[Array, "... S"]:
    """Spreads each scalar over its two neighbouring bins so that the expectation is the (clipped) scalar.

    `support` has at least two bins.
    """
    position = (jnp.clip(x, support.low, support.high) - support.low) * (
        (support.num_bins - 1) / (support.high - support.low)
    )
    # The last bin's left neighbour is the bin before it, so that x == high is one-hot without an index out of range.
    lower = jnp.minimum(jnp.floor(position), support.num_bins - 2)
    upper_weight = (position - lower)[..., None]
    lower_one_hot = jax.nn.one_hot(lower.astype(jnp.int32), support.num_bins)
    upper_one_hot = jax.nn.one_hot(lower.astype(jnp.int32) + 1, support.num_bins)
    return (1.0 - upper_weight) * lower_one_hot + upper_weight * upper_one_hot


def to_scalar(logits: Float[Array, "... S"], support: Support) -> Float[Array, "..."]:
    """The expected scalar of a head's logits [..., S]."""
    logits = logits.astype(jnp.float32)
    if support.num_bins == 1:
        return logits[..., 0]
    # A constant: where the program makes them, XLA of jaxlib 0.10.2 can fail to compile the softmax for an H100.
    bins = np.linspace(support.low, support.high, support.num_bins, dtype=np.float32)
    # A sum, not a matrix product: accelerators round the inputs of products to fewer bits.
    return jnp.sum(jax.nn.softmax(logits) * bins, axis=-1)


def scalar_loss(logits: Float[Array, "... S"], target: Float[Array, "..."], support: Support) -> Float[Array, "..."]:
    """Cross-entropy against the two-hot target, or half the squared error for a scalar head; per element [...].

    The target's own entropy is subtracted, so that a perfect prediction has loss 0 and curves can be read.
    """
    logits = logits.astype(jnp.float32)
    if support.num_bins == 1:
        return 0.5 * jnp.square(logits[..., 0] - target)
    target_probabilities = two_hot(target, support)
    entropy = -jnp.sum(jax.scipy.special.xlogy(target_probabilities, target_probabilities), axis=-1)
    return optax.losses.softmax_cross_entropy(logits, target_probabilities) - entropy
