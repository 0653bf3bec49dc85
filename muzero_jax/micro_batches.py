"""A batch's gradient in parts: the mean of theirs is its own, for every loss here is a mean over windows.

On a CPU that is for speed. A tower's layers are short of memory rather than of arithmetic: the activations of 128
windows of Connect Four are 1.4 MB a layer, those of 32 stay in the cache beside their transforms, and an update takes
0.7 of the time. On an accelerator, where small kernels cost more than they save, it is for memory, by flag.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.devices import target_device

CACHED_BYTES = 384 * 2**10
"""Of one layer's activations. Where all take 1.4 MB, parts of a half, a quarter and an eighth make 1.34, 1.40 and 1.33
times as many updates a second (W3 on two cores)."""
SMALLEST = 8
"""Smaller parts waste their matrix products, so none is chosen unasked."""


def size(batch_size: int, *, largest: int | None) -> int:
    """The largest divisor of `batch_size` that is at most `largest`; None: `batch_size` itself."""
    return next(n for n in range(min(batch_size, largest or batch_size), 0, -1) if batch_size % n == 0)


def size_for_cache(batch_size: int, bytes_per_window: int) -> int:
    """How many windows to compute the gradient of at once for the sake of speed, a divisor of `batch_size`.

    On a CPU what its cache holds, if a divisor comes near that; else, and on an accelerator, all of them.

    Args:
      batch_size: a device's share of the batch. bytes_per_window: of one layer's activations.
    """
    if target_device().platform != "cpu":
        return batch_size
    fitting = size(batch_size, largest=max(SMALLEST, CACHED_BYTES // bytes_per_window))
    return fitting if fitting >= SMALLEST else batch_size


def mean(gradient: Callable[[Any], Any], batch: Any, micro_batch: int) -> Any:
    """The mean of `gradient`, a pytree, over the parts of `micro_batch` rows of a batch (leaves [N, ...]).

    The parts take turns, so only one part's activations are alive. Raises ValueError if `micro_batch` divides not N.
    """
    num_parts, rest = divmod(jax.tree.leaves(batch)[0].shape[0], micro_batch)
    if rest:
        raise ValueError(f"A batch cannot be cut into parts of {micro_batch} without {rest} rows left over.")
    if num_parts == 1:
        return gradient(batch)
    parts = jax.tree.map(lambda rows: rows.reshape(num_parts, micro_batch, *rows.shape[1:]), batch)

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(part)), None

    shapes = jax.eval_shape(gradient, jax.tree.map(lambda rows: rows[0], parts))
    total, _ = jax.lax.scan(add, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), parts)
    return jax.tree.map(lambda x: x / num_parts, total)
