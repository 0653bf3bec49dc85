"""A batch in parts that take turns: positions to judge in a search, windows to compute a gradient of.

On a CPU that is for speed. A tower is short of memory bandwidth: the activations of 128 windows of Connect Four are
1.4 MB a layer, those of 32 stay in the cache with their transforms, and an update takes 0.7 of the time. On an
accelerator, where small kernels cost more than they save, it is for memory, by flag.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.ops.devices import target_device
from muzero_jax.types import Model, Params

GRADIENT_BYTES = 384 * 2**10
"""Most that a part's activations take in one layer. Where the batch's take 1.4 MB, parts of a half, a quarter and an
eighth make 1.34, 1.40 and 1.33 times as many updates a second (Connect Four, two cores)."""
INFERENCE_BYTES = 2 * GRADIENT_BYTES
"""The same in a search, where nothing is kept for a backward pass. On two cores, self-play of Hex 9x9 with 128 games a
device (2.7 MB) is 1.31 times as fast in parts of 32; parts that are smaller than need be cost 3 to 6%."""
SMALLEST = 8
"""Smaller parts waste their matrix products, so none is chosen by default."""


def size(batch_size: int, *, largest: int | None) -> int:
    """The largest divisor of `batch_size` that is at most `largest`; None: `batch_size` itself."""
    return next(n for n in range(min(batch_size, largest or batch_size), 0, -1) if batch_size % n == 0)


def size_for_cache(batch_size: int, layer_bytes: int | None, cached_bytes: int) -> int:
    """How many rows of a batch to take at once for speed, a divisor of `batch_size`.

    On a CPU the largest that its cache holds, if that is not small; else, and on an accelerator, all of them.

    Args:
      batch_size: a device's share of the batch. layer_bytes: `Model.layer_bytes`.
      cached_bytes: `GRADIENT_BYTES` or `INFERENCE_BYTES`.
    """
    if layer_bytes is None or target_device().platform != "cpu":
        return batch_size
    fitting = size(batch_size, largest=max(SMALLEST, cached_bytes // layer_bytes))
    return fitting if fitting >= SMALLEST else batch_size


def for_inference(model: Model) -> Model:
    """`model` for searches: its inferences take as many positions at once as `size_for_cache` says.

    Not for the learner: under a gradient, the loop would keep every part's activations.
    """
    in_parts = partial(_infer_in_parts, layer_bytes=model.layer_bytes)
    return model._replace(
        initial_inference=partial(in_parts, model.initial_inference),
        recurrent_inference=partial(in_parts, model.recurrent_inference),
    )


def _infer_in_parts(inference: Callable, params: Params, *rows: Any, layer_bytes: int | None) -> Any:
    num_rows = jax.tree.leaves(rows)[0].shape[0]
    part_size = size_for_cache(num_rows, layer_bytes, INFERENCE_BYTES)
    return over(lambda part: inference(params, *part), rows, part_size)


def over(function: Callable[[Any], Any], batch: Any, part_size: int) -> Any:
    """Applies `function` to parts of `part_size` rows of a batch (leaves [N, ...]) and joins the results again.

    `part_size` divides N.
    """
    num_parts, parts = _cut(batch, part_size)
    if num_parts == 1:
        return function(batch)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(function, parts))


def mean(gradient: Callable[[Any], Any], batch: Any, part_size: int) -> Any:
    """The mean of `gradient`, a pytree, over the parts of `part_size` rows of a batch (leaves [N, ...]).

    That is the batch's gradient, as every loss here is a mean over windows. Only one part's activations are alive.
    `part_size` divides N.
    """
    num_parts, parts = _cut(batch, part_size)
    if num_parts == 1:
        return gradient(batch)

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(part)), None

    gradient = jax.jit(gradient, inline=True)  # traced once, for its output's shapes too
    shapes = jax.eval_shape(gradient, jax.tree.map(lambda rows: rows[0], parts))
    total, _ = jax.lax.scan(add, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), parts)
    return jax.tree.map(lambda x: x / num_parts, total)


def _cut(batch: Any, part_size: int) -> tuple[int, Any]:
    """The number of parts, and leaves [N, ...] as [parts, part_size, ...]."""
    num_parts = jax.tree.leaves(batch)[0].shape[0] // part_size
    return num_parts, jax.tree.map(lambda rows: rows.reshape(num_parts, part_size, *rows.shape[1:]), batch)
