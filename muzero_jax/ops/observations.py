"""Observations as networks and losses take them."""

import jax.numpy as jnp
from jaxtyping import Array


def as_numbers(observation: Array) -> Array:
    """Bytes as float32 from 0 to 1; other observations as they are.

    A picture stays in bytes up to here, so that the replay buffer holds a quarter of what floats would take.
    """
    return observation.astype(jnp.float32) / 255 if observation.dtype == jnp.uint8 else observation
