"""A batch in parts that take turns: positions to judge in a search, windows to compute a gradient of.

On a CPU that is for speed. A tower's layers are short of memory rather than of arithmetic: the activations of 128
windows of Connect Four are 1.4 MB a layer, those of 32 stay in the cache beside their transforms, and an update takes
0.7 of the time. On an accelerator, where small kernels cost more than they save, it is for memory, by flag.

A gradient is the mean of its parts', for every loss here is a mean over windows.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.devices import target_device
from muzero_jax.types import Model

GRADIENT_BYTES = 384 * 2**10
"""Of one layer's activations. Where all take 1.4 MB, parts of a half, a quarter and an eighth make 1.34, 1.40 and 1.33
times as many updates a second (W3 on two cores)."""
INFERENCE_BYTES = 2 * GRADIENT_BYTES
"""The same where nothing is kept for a backward pass. Where all take 1.3, 2.7 and 5.3 MB, parts of 0.7 MB make 1.15,
1.31 and XXX times as many moves a second (self-play of Hex 9x9, and of Connect Four, on two cores)."""
SMALLEST = 8
"""Smaller parts waste their matrix products, so none is chosen unasked."""


def size(batch_size: int, *, largest: int | None) -> int:
    """The largest divisor of `batch_size` that is at most `largest`; None: `batch_size` itself."""
    return next(n for n in range(min(batch_size, largest or batch_size), 0, -1) if batch_size % n == 0)


def size_for_cache(batch_size: int, layer_bytes: int | None, cached_bytes: int) -> int:
    """How many rows of a batch to take at once for the sake of speed, a divisor of `batch_size`.

    On a CPU what its cache holds, if a divisor comes near that; else, and on an accelerator, all of them.

    Args:
      batch_size: a device's share of the batch. layer_bytes: `Model.layer_bytes`.
      cached_bytes: `GRADIENT_BYTES` or `INFERENCE_BYTES`.
    """
    if layer_bytes is None or target_device().platform != "cpu":
        return batch_size
    fitting = size(batch_size, largest=max(SMALLEST, cached_bytes // layer_bytes))
    return fitting if fitting >= SMALLEST else batch_size


def for_inference(model: Model) -> Model:
    """`model` for searches only: its inferences take as many positions at once as `size_for_cache` says."""

    def in_parts(inference: Callable) -> Callable:
        def infer(params, *rows):
            batch_size = jax.tree.leaves(rows)[0].shape[0]
            part = size_for_cache(batch_size, model.layer_bytes, INFERENCE_BYTES)
            return over(lambda rows: inference(params, *rows), rows, part)

        return infer

    return model._replace(
        initial_inference=in_parts(model.initial_inference), recurrent_inference=in_parts(model.recurrent_inference)
    )


def over(function: Callable[[Any], Any], batch: Any, micro_batch: int) -> Any:
    """`function` of parts of `micro_batch` rows of a batch (leaves [N, ...]), its results joined: leaves [N, ...].

    Raises ValueError if `micro_batch` divides not N.
    """
    parts = _cut(batch, micro_batch)
    if parts is None:
        return function(batch)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(function, parts))


def mean(gradient: Callable[[Any], Any], batch: Any, micro_batch: int) -> Any:
    """The mean of `gradient`, a pytree, over the parts of `micro_batch` rows of a batch (leaves [N, ...]).

    The parts take turns, so only one part's activations are alive. Raises ValueError if `micro_batch` divides not N.
    """
    parts = _cut(batch, micro_batch)
    if parts is None:
        return gradient(batch)

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(part)), None

    shapes = jax.eval_shape(gradient, jax.tree.map(lambda rows: rows[0], parts))
    total, _ = jax.lax.scan(add, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), parts)
    return jax.tree.map(lambda x: x / jax.tree.leaves(parts)[0].shape[0], total)


def _cut(batch: Any, micro_batch: int) -> Any | None:
    """Leaves [N, ...] as [parts, micro_batch, ...]; None if one part is the whole."""
    num_parts, rest = divmod(jax.tree.leaves(batch)[0].shape[0], micro_batch)
    if rest:
        raise ValueError(f"A batch cannot be cut into parts of {micro_batch} without {rest} rows left over.")
    if num_parts == 1:
        return None
    return jax.tree.map(lambda rows: rows.reshape(num_parts, micro_batch, *rows.shape[1:]), batch)
