"""States in pgx's form for environments of other libraries (`outside`), whose observations become one array."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.states import WrappedState

MOST_VALUES = 32
"""Integers with at most this many values are shown one-hot, as bools, because they are mostly kinds, not amounts."""

Leaves = Sequence[tuple[Array, int | None]]
"""Parts of an observation, each with its `num_values`, which matter only for integers."""


def made(inner: Any, leaves: Leaves, legal: Array, reward: Any, terminated: Any, truncated: Any) -> WrappedState:
    """A state in pgx's form around a library's own, `inner`. An end of both kinds counts as terminated."""
    terminated, truncated = (jnp.asarray(end, bool) for end in (terminated, truncated))
    return WrappedState(
        inner,
        jnp.int32(0),
        jnp.asarray(reward, jnp.float32).reshape(1),
        terminated,
        truncated & ~terminated,
        legal,
        seen(leaves),
    )


def strict(inner: Any) -> Any:
    """A library's state without weak types, in which a start and a step may differ."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), inner)


def seen(leaves: Leaves) -> Array:
    """The observation as one array: a single part keeps its shape, several are flattened and concatenated.

    A picture of bytes that is the only part stays in bytes.
    """
    shown = [_shown(leaf, count) for leaf, count in leaves]
    if len(shown) == 1:
        first = leaves[0][0]
        is_picture = first.dtype == jnp.uint8 and first.ndim > 1 and shown[0].dtype != bool
        return first if is_picture else shown[0]
    dtype = jnp.result_type(*shown)
    return jnp.concatenate([leaf.ravel().astype(dtype) for leaf in shown])


def num_values(low: Any, high: Any) -> int | None:
    """The number of values 0, 1, ... that integers in these bounds have, at most `MOST_VALUES` + 1, or None below -1.

    A lower bound of -1 is allowed because jumanji writes -1 for "no value", which becomes all zeros.
    """
    return int(min(np.max(high), MOST_VALUES)) + 1 if np.min(low) >= -1 else None


def _shown(leaf: Array, count: int | None) -> Array:
    if leaf.dtype == bool:
        return leaf
    if count is not None and count <= MOST_VALUES and jnp.issubdtype(leaf.dtype, jnp.integer):
        return jax.nn.one_hot(leaf, count, dtype=bool)
    return jnp.atleast_1d(leaf).astype(jnp.float32)
