"""Applies a compiled function to any number of rows in batches of one size, so that it compiles once."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

BATCH_SIZE = 256
"""Rows per call; only affects speed, and the keys of `in_keyed_batches`."""


def in_batches(function: Callable, *inputs: Any, batch_size: int = BATCH_SIZE) -> Any:
    """Applies `function` to pytrees of at least one row [N, ...], `batch_size` rows at a time.

    Returns the results on the host. The last batch is padded with copies of the last row; their results are dropped.
    """
    total = jax.tree.leaves(inputs)[0].shape[0]
    outputs = []
    for start in range(0, total, batch_size):
        index = np.minimum(np.arange(start, start + batch_size), total - 1)
        batch = function(*jax.tree.map(lambda rows, index=index: jnp.asarray(rows[index]), inputs))
        outputs.append(jax.tree.map(lambda rows, start=start: np.asarray(rows)[: total - start], batch))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *outputs)


def in_keyed_batches(function: Callable, seed: int, *inputs: Any) -> Any:
    """`in_batches` for a `function` of a key and the inputs; every batch gets its own key."""
    total = jax.tree.leaves(inputs)[0].shape[0]
    batch_size = min(BATCH_SIZE, total)
    key = jax.random.key(seed)

    def call(batch_index, *batch):
        return function(jax.random.fold_in(key, batch_index[0]), *batch)

    return in_batches(call, np.arange(total, dtype=np.uint32) // batch_size, *inputs, batch_size=batch_size)


def first_of_each(observation: Array | np.ndarray) -> np.ndarray:
    """The indices, in order, of the first occurrence of each distinct row of [N, *obs]."""
    rows = np.reshape(observation, (observation.shape[0], math.prod(observation.shape[1:])))
    return np.sort(np.unique(rows, axis=0, return_index=True)[1])
