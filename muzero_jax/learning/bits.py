"""Bools eight to a byte, as observations of bools and legal moves lie in the replay buffer."""

import math

import jax.numpy as jnp
from jaxtyping import Array


def pack(array: Array, num_leading: int) -> Array:
    """[*leading, *shape] bool -> [*leading, bytes] uint8, the last bits 0; an array of another dtype stays as it is.

    Raises ValueError for uint8, which `unpack` would take for packed bits.
    """
    if array.dtype == jnp.uint8:
        raise ValueError("an array of uint8 looks like packed bits; give it another dtype")
    if array.dtype != jnp.bool_:
        return array
    return jnp.packbits(array.reshape(*array.shape[:num_leading], -1), axis=-1)


def unpack(packed: Array, shape: tuple[int, ...]) -> Array:
    """The inverse of `pack`: [*leading, *shape]. What is not uint8 was not packed."""
    if packed.dtype != jnp.uint8:
        return packed
    bits = jnp.unpackbits(packed, axis=-1, count=math.prod(shape))
    return bits.astype(bool).reshape(*packed.shape[:-1], *shape)
