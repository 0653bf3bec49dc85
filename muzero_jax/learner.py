"""The learner: one gradient step on a batch of windows.

AdamW after clipping by global norm, with a linear warm-up and then a constant or cosine learning rate. Under data
parallelism each device sees its share of the batch and `average` (a `pmean`) makes the gradients one.
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from muzero_jax.losses import LossWeights, muzero_loss
from muzero_jax.types import LearnerState, Metrics, Model, Targets, Transition


def make_schedule(
    *, learning_rate: float, schedule: Literal["constant", "cosine"], warmup_updates: int, decay_updates: int
) -> optax.Schedule:
    """Linear warm-up from 0, then constant, or a cosine to a tenth of the peak at `decay_updates`."""
    if schedule == "cosine":
        after = optax.cosine_decay_schedule(learning_rate, max(decay_updates - warmup_updates, 1), alpha=0.1)
    else:
        after = optax.constant_schedule(learning_rate)
    warmup = optax.linear_schedule(0.0, learning_rate, max(warmup_updates, 1))
    return optax.join_schedules([warmup, after], [warmup_updates])


def make_optimiser(
    schedule: optax.Schedule, *, weight_decay: float, max_gradient_norm: float
) -> optax.GradientTransformation:
    """AdamW with decay on matrices only: kernels and embedding tables, not biases and LayerNorm scales."""

    def is_matrix(params):
        return jax.tree.map(lambda x: x.ndim > 1, params)

    return optax.chain(
        optax.clip_by_global_norm(max_gradient_norm),
        optax.adamw(schedule, weight_decay=weight_decay, mask=is_matrix),
    )


def init(model: Model, optimiser: optax.GradientTransformation, key: Array) -> LearnerState:
    """Fresh parameters and optimiser state."""
    params = model.init(key)
    return LearnerState(params, optimiser.init(params), jnp.int32(0))


@jax.named_scope("update")
def update(
    learner: LearnerState,
    window: Transition,
    actions: Array,
    targets: Targets,
    *,
    model: Model,
    optimiser: optax.GradientTransformation,
    weights: LossWeights,
    average: Callable[[tuple], tuple] = lambda x: x,
) -> tuple[LearnerState, Metrics]:
    """One gradient step.

    Args:
      window: leaves [N, L, ...]; of legal masks only frame 0 is read, of observations what `muzero_loss` says.
      average: applied to (gradients, metrics); a mean over devices when the batch is shared among them.
    """
    gradient_fn = jax.grad(muzero_loss, has_aux=True)
    gradients, metrics = gradient_fn(
        learner.params,
        model,
        window.observation,
        window.legal_action_mask[:, 0],
        actions,
        targets,
        weights=weights,
    )
    gradients, metrics = average((gradients, metrics))
    metrics["train/gradient_norm"] = optax.tree.norm(gradients)
    updates, optimiser_state = optimiser.update(gradients, learner.optimiser_state, learner.params)
    params = optax.apply_updates(learner.params, updates)
    metrics["train/parameter_norm"] = optax.tree.norm(params)
    return LearnerState(params, optimiser_state, learner.num_updates + 1), metrics
