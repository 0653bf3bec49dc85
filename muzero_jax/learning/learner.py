"""The learner: one gradient step on a batch of windows.

AdamW, or another optimiser by name, after clipping by global norm, with a linear warm-up and then a constant learning
rate, or one that falls as a cosine of the run's progress. Each device computes gradients for its share of the batch,
and they are averaged over `AXIS`, which names the devices.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import chex
import jax
import jax.numpy as jnp
import optax
import optax.contrib
from jaxtyping import Array
from optax.contrib import MuonDimensionNumbers

from muzero_jax.learning import scaled_loss, stacked_weights
from muzero_jax.learning.scaled_loss import ScaledState
from muzero_jax.ops import micro_batches
from muzero_jax.ops.mesh import mean_over_devices
from muzero_jax.types import Batch, LearnerState, LossOf, Metrics, Model, Params

Schedule = Callable[[Array, Array], Array]
"""(progress of the run, updates made) -> the learning rate."""

Follow = Callable[[Params, Params, Array], Params]
"""(target network, network, updates made) -> the target network after an update."""

ADAMS_STEP = 0.2
"""The root mean square of AdamW's steps, as a share of the learning rate (Liu et al. 2025, arXiv 2502.16982)."""


def make_schedule(*, learning_rate: float, schedule: Literal["constant", "cosine"], warmup_updates: int) -> Schedule:
    """Linear warm-up from 0, then a constant rate, or a cosine down to a tenth of the peak at the end of the run."""

    def rate(progress: Array, num_updates: Array) -> Array:
        warmup = jnp.minimum(num_updates / warmup_updates, 1.0) if warmup_updates else 1.0
        cosine = 0.55 + 0.45 * jnp.cos(jnp.pi * jnp.clip(progress, 0.0, 1.0))
        return jnp.float32(learning_rate) * warmup * (cosine if schedule == "cosine" else 1.0)

    return rate


def make_optimiser(
    *,
    weight_decay: float,
    max_gradient_norm: float,
    name: Literal["adamw", "adafactor", "muon", "sgd"] = "adamw",
) -> optax.GradientTransformationExtraArgs:
    """Clipping by global norm, then an optimiser of Optax with decoupled decay of matrices only: kernels and embedding
    tables, not biases and LayerNorm scales.

    Its `update` takes `learning_rate`. Every optimiser is built with rate 1 and its steps are scaled, so its state must
    not depend on the rate.

      adamw: Loshchilov & Hutter 2019.
      adafactor: Shazeer & Stern 2018, without momentum, and with steps as long as Adam's instead of relative ones
        (section 8). For a matrix with two sides of at least 128 it keeps one number for each row and each column.
      sgd: with momentum 0.9. Its steps are proportional to gradients, so the losses' weights decide how fast each head
        learns; the others' steps have about the same length whatever the weight of a head's only loss is.
      muon: Jordan et al. 2024, for matrices and convolution kernels, in steps as long as AdamW's (Liu et al. 2025,
        section 2.2), so that one learning rate serves both; Adam with Nesterov momentum for the rest.
    """
    decay_after = optax.add_decayed_weights(-weight_decay, stacked_weights.decays)
    makers: dict[str, Callable[[], optax.GradientTransformation]] = {
        "adamw": lambda: optax.adamw(1.0, weight_decay=weight_decay, mask=stacked_weights.decays),
        "adafactor": lambda: optax.adafactor(
            1.0, multiply_by_parameter_scale=False, weight_decay_rate=weight_decay, weight_decay_mask=_is_matrix
        ),
        "sgd": lambda: optax.chain(optax.sgd(1.0, momentum=0.9), decay_after),
        "muon": lambda: optax.chain(
            optax.contrib.muon(1.0, muon_weight_dimension_numbers=_muon_axes, consistent_rms=ADAMS_STEP), decay_after
        ),
    }
    made = optax.chain(
        optax.clip_by_global_norm(max_gradient_norm),
        makers[name](),
        optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), _scale_by_rate),
    )
    if name == "adafactor":  # its state depends on an array's two largest sides, which stacks would change
        return made
    return stacked_weights.over(made)


def _is_matrix(params: Params) -> Any:
    return jax.tree.map(lambda x: x.ndim > 1, params)


def _muon_axes(params: Params) -> Any:
    """The input and output axes of weights, None for those that Muon does not update.

    Muon is for stacks of matrices [M, C, D], and of kernels [M, H, W, C, D].
    """
    axes = {3: MuonDimensionNumbers(1, 2), 5: MuonDimensionNumbers((1, 2, 3), 4)}
    return jax.tree.map(lambda x: axes.get(x.ndim), params)


def _scale_by_rate(updates: Any, state: Any, params: Params = None, *, learning_rate: Array, **_: Any):
    return optax.tree.scale(learning_rate, updates), state


def init(
    model: Model,
    optimiser: optax.GradientTransformation,
    key: Array,
    *,
    scale_loss: bool = False,
    has_target: bool = False,
    has_average: bool = False,
) -> LearnerState:
    """A learner with fresh parameters and optimiser state; `key` samples the parameters.

    Args:
      scale_loss: the state also has a scale of the loss, which float16 needs.
      has_target: there is also a target network, at first with the same parameters.
      has_average: there is also an average of the parameters.
    """
    params = model.init(key)
    optimiser_state = optimiser.init(params)
    if scale_loss:
        optimiser_state = scaled_loss.init(optimiser_state)
    target, average = (jax.tree.map(jnp.copy, params) if has else None for has in (has_target, has_average))
    return LearnerState(params, optimiser_state, jnp.int32(0), target, average)  # buffers of their own: all are donated


def copied(target: Params, params: Params, num_updates: Array, *, period: int) -> Params:
    """A target network that copies the network every `period` updates (Mnih et al. 2015)."""
    return jax.tree.map(partial(jnp.where, num_updates % period == 0), params, target)


def averaged(target: Params, params: Params, num_updates: Array, *, decay: float) -> Params:
    """A target network that is an exponential moving average of the network (Lillicrap et al. 2015)."""
    del num_updates
    return optax.incremental_update(params, target, 1.0 - decay)


def averaged_from_the_start(average: Params, params: Params, num_updates: Array, *, decay: float) -> Params:
    """`averaged`, but of the first updates the plain mean, so that the first parameters do not linger."""
    return optax.incremental_update(params, average, jnp.maximum(1.0 - decay, 1.0 / num_updates))


@jax.named_scope("update")
def update(
    learner: LearnerState,
    batch: Batch,
    learning_rate: Array | float,
    *,
    loss: LossOf,
    optimiser: optax.GradientTransformation,
    follow: Follow | None = None,
    average: Follow | None = None,
    micro_batch: int | None = None,
) -> tuple[LearnerState, Metrics]:
    """One gradient step, skipped if the gradient of a scaled loss overflows; runs where `AXIS` names the devices.

    Args:
      loss: the loss of a batch, with everything else bound.
      follow: the rule by which the target network follows the network, if there is a target network.
      average: the rule by which the average follows the network, if there is one.
      micro_batch: how many of the N windows to compute the gradient of at once, a divisor of N; by default all. A
        scaled loss takes them all, because the whole batch's gradient decides whether it overflows.
    """
    chex.assert_equal_shape_prefix(jax.tree.leaves(batch), 1)
    step = partial(_step, micro_batch=micro_batch or batch.actions.shape[0])
    if isinstance(learner.optimiser_state, ScaledState):
        step = scaled_loss.step
    rate = jnp.float32(learning_rate)
    descend = partial(optax.with_extra_args_support(optimiser).update, learning_rate=rate)
    params, optimiser_state, metrics = step(loss, learner.params, learner.optimiser_state, batch, descend=descend)
    metrics |= {"train/parameter_norm": stacked_weights.norm(params), "train/learning_rate": rate}
    num_updates = learner.num_updates + 1
    followers = (learner.target_params, follow), (learner.average_params, average)
    followed = (old if rule is None else rule(old, params, num_updates) for old, rule in followers)
    return LearnerState(params, optimiser_state, num_updates, *followed), metrics


def _step(
    loss_of: LossOf, params: Params, state: Any, batch: Batch, *, descend: Callable[..., Any], micro_batch: int
) -> tuple[Params, Any, Metrics]:
    gradient = partial(jax.grad(loss_of, has_aux=True), params)
    gradients, metrics = mean_over_devices(micro_batches.mean(gradient, batch, micro_batch))
    metrics["train/gradient_norm"] = stacked_weights.norm(gradients)
    updates, state = descend(gradients, state, params)
    return stacked_weights.apply(params, updates), state, metrics
