"""Computes a batch in parts, one after the other: inferences of a search, or the gradient of an update.

On a CPU, parts are faster, because a tower is memory-bound: the activations of 128 windows of Connect Four are 1.4 MB a
layer, those of 32 stay in the cache with their transforms, and an update takes 0.7 of the time. On an accelerator,
where small kernels cost more time than they save, a flag chooses parts to save memory.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.ops.conditional import traced_once, zeros_of
from muzero_jax.ops.devices import target_device
from muzero_jax.ops.mesh import largest_divisor
from muzero_jax.types import Model, Params

GRADIENT_BYTES = 384 * 2**10
"""The most bytes that a part's activations take in one layer. If the batch's take 1.4 MB, parts of a half, a quarter
and an eighth make 1.34, 1.40 and 1.33 times as many updates a second (Connect Four, two cores)."""
INFERENCE_BYTES = 2 * GRADIENT_BYTES
"""The same for a search, which keeps nothing for a backward pass. On two cores, self-play of Hex 9x9 with 128 games a
device (2.7 MB) is 1.31 times as fast in parts of 32; needlessly small parts cost 3 to 6%."""
SMALLEST = 8
"""The fewest rows of a part by default, because matrix products of fewer rows are slow."""


def size_for_cache(batch_size: int, layer_bytes: int | None, cached_bytes: int) -> int:
    """The fastest number of rows per part, a divisor of `batch_size`.

    On a CPU, the largest that `cached_bytes` hold, but never fewer than `SMALLEST`, so at worst all; elsewhere all.

    Args:
      batch_size: a device's share of the batch. layer_bytes: `Model.layer_bytes`.
      cached_bytes: `GRADIENT_BYTES` or `INFERENCE_BYTES`.
    """
    if layer_bytes is None or target_device().platform != "cpu":
        return batch_size
    fitting = largest_divisor(max(SMALLEST, cached_bytes // layer_bytes), batch_size)
    return fitting if fitting >= SMALLEST else batch_size


def for_inference(model: Model) -> Model:
    """`model` for searches, with inferences in parts of `size_for_cache` positions.

    It is not for the learner, because under a gradient the loop would keep every part's activations.
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

    That is the batch's gradient if the loss is a mean over windows, as all but the consistency loss are. Memory holds
    one part's activations. `part_size` divides N.
    """
    num_parts, parts = _cut(batch, part_size)
    if num_parts == 1:
        return gradient(batch)

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(part)), None

    gradient = traced_once(gradient)
    nothing = zeros_of(gradient, jax.tree.map(lambda rows: rows[0], parts))
    total, _ = jax.lax.scan(add, nothing, parts)
    return jax.tree.map(lambda x: x / num_parts, total)


def _cut(batch: Any, part_size: int) -> tuple[int, Any]:
    """The number of parts, and leaves [N, ...] as [parts, part_size, ...]."""
    num_parts = jax.tree.leaves(batch)[0].shape[0] // part_size
    return num_parts, jax.tree.map(lambda rows: rows.reshape(num_parts, part_size, *rows.shape[1:]), batch)
