"""Steps in float16, which loses small gradients and overflows with large ones.

The loss is therefore multiplied by a scale that Flax adapts (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2):
a step whose gradient overflows is skipped and halves the scale, on all devices alike because the *mean* gradient
decides. Only with float16 is the scale part of the optimiser's state; other learners compile to a program without it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax.training.dynamic_scale import DynamicScale

from muzero_jax.learning import stacked_weights
from muzero_jax.ops.mesh import AXIS, mean_over_devices
from muzero_jax.types import Batch, LossOf, Metrics, Params

MINIMUM_SCALE = 1.0
"""If a gradient overflows even at this scale, the cause is not float16: training has diverged."""


class ScaledState(NamedTuple):
    """An optimiser's state, and the scale of its loss."""

    optimiser_state: Any
    loss_scale: DynamicScale


def init(optimiser_state: Any) -> ScaledState:
    """The state with the first scale."""
    scale = DynamicScale(fin_steps=jnp.int32(0), scale=jnp.float32(2**16), minimum_scale=MINIMUM_SCALE)  # type: ignore
    return ScaledState(optimiser_state, scale)


def step(
    loss_of: LossOf, params: Params, state: ScaledState, batch: Batch, *, descend: Callable[..., Any]
) -> tuple[Params, ScaledState, Metrics]:
    """A gradient step on a scaled loss. A skipped step reports gradient norm 0, unless the scale is at its minimum."""
    scale = state.loss_scale.scale
    gradient_fn = state.loss_scale.value_and_grad(loss_of, has_aux=True, axis_name=AXIS)
    loss_scale, is_finite, (_, metrics), gradients = gradient_fn(params, batch)
    metrics = mean_over_devices(metrics)
    may_fail = scale > MINIMUM_SCALE
    metrics["train/gradient_norm"] = jnp.where(may_fail & ~is_finite, 0.0, stacked_weights.norm(gradients))
    metrics["train/loss_scale"] = scale
    updates, optimiser_state = descend(gradients, state.optimiser_state, params)
    stepped = stacked_weights.apply(params, updates), optimiser_state
    params, optimiser_state = jax.tree.map(partial(jnp.where, is_finite), stepped, (params, state.optimiser_state))
    return params, ScaledState(optimiser_state, loss_scale), metrics
