"""Scalars as distributions over a fixed support.

A categorical head is trained by cross-entropy against the two-hot code of its target (MuZero, Schrittwieser et al.
2020, appendix F) and read as the expectation. One bin means a plain scalar head with squared error.

For large returns bins are evenly spaced after h of Pohlen et al. 2018 (arXiv 1805.11593, section 3.2), which is much
like a square root: 255 of them reach from -100,000 to 100,000, and the next to 0 is 17. As in MuZero the expectation is
of h(x) and then inverted, so an uncertain return is read too small: an even chance of 0 or 1,000 as 273.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

EPSILON = 1e-3
"""The slope that h keeps for large numbers, so that it can be inverted."""


class Support(NamedTuple):
    """`num_bins` equally spaced scalars from `low` to `high`; `num_bins` = 1 stands for a scalar head."""

    low: float
    high: float
    num_bins: int
    is_squashed: bool = False  # the bins are equally spaced from h(low) to h(high)

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last bin, on the line where they are equally spaced."""
        if not self.is_squashed:
            return self.low, self.high
        low, high = (math.copysign(math.sqrt(abs(x) + 1.0) - 1.0, x) + EPSILON * x for x in (self.low, self.high))
        return low, high


def squash(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + 0.001 x."""
    return jnp.sign(x) * (jnp.sqrt(jnp.abs(x) + 1.0) - 1.0) + EPSILON * x


def unsquash(y: Float[Array, "..."]) -> Float[Array, "..."]:
    """The inverse of `squash`, in a form that keeps the last digits of small numbers in float32."""
    size = jnp.abs(y) + 1.0 + EPSILON
    root = 2.0 * size / (1.0 + jnp.sqrt(1.0 + 4.0 * EPSILON * size))
    return jnp.sign(y) * (root**2 - 1.0)


def two_hot(x: Float[Array, "..."], support: Support) -> Float[Array, "... S"]:
    """Spreads each scalar over its two neighbouring bins so that the expectation is the (clipped) scalar.

    With a squashed support that is the expectation of h(x). `support` has at least two bins.
    """
    low, high = support.ends
    x = squash(x) if support.is_squashed else x
    position = (jnp.clip(x, low, high) - low) * ((support.num_bins - 1) / (high - low))
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
        expected = logits[..., 0]
    else:
        # A constant: if the program makes them, XLA of jaxlib 0.10.2 can fail to compile the softmax for an H100.
        bins = np.linspace(*support.ends, support.num_bins, dtype=np.float32)
        # A sum, not a matrix product: accelerators round the inputs of products to fewer bits.
        expected = jnp.sum(jax.nn.softmax(logits) * bins, axis=-1)
    return unsquash(expected) if support.is_squashed else expected


def scalar_loss(logits: Float[Array, "... S"], target: Float[Array, "..."], support: Support) -> Float[Array, "..."]:
    """Cross-entropy against the two-hot target, or half the squared error for a scalar head; per element [...].

    The target's own entropy is subtracted, so that a perfect prediction has loss 0 and curves can be read.
    """
    logits = logits.astype(jnp.float32)
    if support.num_bins == 1:
        return 0.5 * jnp.square(logits[..., 0] - (squash(target) if support.is_squashed else target))
    target_probabilities = two_hot(target, support)
    entropy = -jnp.sum(jax.scipy.special.xlogy(target_probabilities, target_probabilities), axis=-1)
    return optax.losses.softmax_cross_entropy(logits, target_probabilities) - entropy
