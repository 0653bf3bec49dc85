"""Reductions of rows, in the form that compiles to the fastest code on each backend.

XLA's CPU backend reduces short rows element by element, so that one pass for several reductions is up to three times as
fast as one pass for each. It reduces long rows with vector instructions, but only in separate passes. On accelerators,
XLA itself fuses the passes and removes unused ones.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int


def reduce_rows(*reductions: tuple[Callable, Float[Array, "B A"]]) -> tuple[Float[Array, "B 1"], ...]:
    """Sums, minima or maxima of rows: each pair is one of `jnp.sum`, `jnp.min`, `jnp.max` and its array."""
    arrays = tuple(array for _, array in reductions)

    def apart(*arrays):
        pairs = zip(reductions, arrays, strict=True)
        return tuple(reduction(array, axis=-1, keepdims=True) for (reduction, _), array in pairs)

    if arrays[0].shape[-1] > _SHORT_ROW:
        return apart(*arrays)
    steps = [_REDUCTIONS[reduction][1] for reduction, _ in reductions]
    starts = tuple(jnp.asarray(_REDUCTIONS[reduction][0], array.dtype) for reduction, array in reductions)

    def join(some, more):
        return tuple(step(a, b) for step, a, b in zip(steps, some, more, strict=True))

    def together(*arrays):
        return tuple(x[:, None] for x in lax.reduce(arrays, starts, join, dimensions=(1,)))

    return lax.platform_dependent(*arrays, cpu=together, default=apart)


_SHORT_ROW = 32
_REDUCTIONS = {jnp.sum: (0.0, lax.add), jnp.min: (jnp.inf, lax.min), jnp.max: (-jnp.inf, lax.max)}


def first_argmax(scores: Float[Array, "B A"]) -> Int[Array, " B"]:
    """`jnp.argmax(scores, axis=-1)`, ties included, for rows without NaNs; on a CPU 1.1 to 5 times as fast."""
    argmax = partial(lax.argmax, axis=1, index_dtype=jnp.int32)
    return lax.platform_dependent(scores, cpu=_first_argmax_in_order, default=argmax)


def _first_argmax_in_order(scores: Array) -> Array:
    """The index of the first maximum; ties need no comparison of indices, because a CPU goes through a row in order."""
    index = lax.broadcasted_iota(jnp.int32, scores.shape, 1)

    def better(best, other):
        is_better = other[0] > best[0]
        return jnp.where(is_better, other[0], best[0]), jnp.where(is_better, other[1], best[1])

    start = jnp.asarray(-jnp.inf, scores.dtype), jnp.int32(0)
    return lax.reduce((scores, index), start, better, dimensions=(1,))[1]
