"""Steps that are made only sometimes, or only in some games, inside one compiled program."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool


def step_or_zeros(is_ready: Bool[Array, ""], step: Callable[..., tuple], state: Any, *inputs: Any) -> tuple:
    """`step(state, *inputs)` -> (the next state, *results); if not ready, the state itself and zeros."""
    step = traced_once(step)

    def skip(state: Any, *inputs: Any) -> tuple:
        return state, *zeros_of(step, state, *inputs)[1:]

    return jax.lax.cond(is_ready, step, skip, state, *inputs)


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls with the same shapes share one trace; it leaves no mark in the program."""
    return jax.jit(function, inline=True)


def zeros_of(function: Callable[..., Any], *inputs: Any) -> Any:
    """Zeros in the shape of the function's result."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *inputs))


def where_each(condition: Bool[Array, " B"], yes: Any, no: Any) -> Any:
    """For each game the leaves [B, ...] of `yes` or of `no`."""
    return jax.tree.map(partial(jax.vmap(jnp.where), condition), yes, no)
