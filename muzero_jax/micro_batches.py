"""A batch's gradient in parts: the mean of theirs is its own, for every loss here is a mean over windows.

On a CPU that is for speed. A tower's layers are short of memory rather than of arithmetic: the activations of 128
windows of Connect Four are 1.4 MB a layer, those of 32 stay in the cache beside their transforms, and an update takes
two thirds of the time. On an accelerator, where small kernels cost more than they save, it is for memory, by flag.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.devices import target_device

CACHED_BYTES = 384 * 2**10
"""Of one layer's activations. Of 1.4 MB a half, a quarter and an eighth gain 34%, 40% and 33% (W3, two cores)."""


def size(batch_size: int, largest: int | None, bytes_per_window: int) -> int:
    """How many windows to compute the gradient of at once: a divisor of `batch_size`, a device's share of the batch.

    Args:
      largest: what it may be at most; None: what a CPU's cache holds, all of them on an accelerator.
      bytes_per_window: of one layer's activations.
    """
    if largest is None:
        largest = CACHED_BYTES // bytes_per_window if target_device().platform == "cpu" else batch_size
    return max((n for n in range(1, min(batch_size, largest) + 1) if batch_size % n == 0), default=1)


def mean(gradient: Callable[[Any], Any], batch: Any, micro_batch: int) -> Any:
    """The mean of `gradient`, a pytree, over the parts of `micro_batch` rows of a batch (leaves [N, ...]).

    `micro_batch` divides N. The parts take turns, so only one part's activations are alive.
    """
    num_parts = jax.tree.leaves(batch)[0].shape[0] // micro_batch
    if num_parts == 1:
        return gradient(batch)
    parts = jax.tree.map(lambda rows: rows.reshape(num_parts, micro_batch, *rows.shape[1:]), batch)

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(part)), None

    shapes = jax.eval_shape(gradient, jax.tree.map(lambda rows: rows[0], parts))
    total, _ = jax.lax.scan(add, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), parts)
    return jax.tree.map(lambda x: x / num_parts, total)
