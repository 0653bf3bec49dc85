"""Reanalyze: search stored positions again with the current weights, for fresh policy *and* value targets.

(MuZero, appendix H.) No root noise: these are targets, not moves to explore with.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from muzero_jax.learning import learner as learners
from muzero_jax.ops.devices import AXIS
from muzero_jax.types import Batch, LearnerState, Metrics, Params, Sample, SearchFn, SearchRoots, Transition, WriteBack


def refresh_share(
    learner: LearnerState, window: Transition, key: Array, *, search: SearchFn, share: float, num_frames: int
) -> tuple[Transition, Metrics]:
    """Searches a share of the batch again; returns a device's windows, and how stale their targets had become.

    The search uses the target network, if there is one. The mean of all devices' metrics is that over the share.
    """
    is_chosen = chosen(window, share)
    params = learners.search_params(learner)
    num_windows = len(is_chosen)
    fresh = refresh(params, window, key, search=search, is_chosen=is_chosen, num_frames=num_frames)
    searched, stored = (jax.tree.map(lambda x: x[:num_windows, :num_frames], w) for w in (fresh, window))
    return fresh, staleness(searched, stored, is_chosen / jax.lax.pmean(jnp.mean(is_chosen), AXIS))


def chosen(window: Transition, share: float) -> Bool[Array, " M"]:
    """Mask [M] of a device's first M windows that are searched again: in all `share` of the batch, at least one window.

    The total does not depend on the number of devices. If it does not divide among them, the first have one more, and
    the others search one in vain, because all run one program. Runs where `AXIS` names the devices.
    """
    num_devices = jax.lax.axis_size(AXIS)
    total = max(1, round(window.action.shape[0] * num_devices * share))
    return jnp.arange(-(-total // num_devices)) * num_devices + jax.lax.axis_index(AXIS) < total


def fresh_targets(
    sample: Sample, window: Transition, batch: Batch, *, share: float, num_frames: int
) -> tuple[WriteBack, Metrics]:
    """What `refresh` found, to write back into the buffer; no metrics, because `refresh_share` returns them."""
    del batch
    is_chosen = chosen(window, share)
    num_windows = len(is_chosen)
    slot = sample.slot[:num_windows, None] + jnp.arange(num_frames)

    def of_frames(of_windows: Array) -> Array:
        return jnp.broadcast_to(of_windows[:, None], slot.shape)

    values = {
        "search_policy": window.search_policy[:num_windows, :num_frames],
        "search_value": window.search_value[:num_windows, :num_frames],
        "in_full": jnp.ones(slot.shape, bool),
        "search_age": jnp.zeros(slot.shape, jnp.int32),
    }
    return WriteBack(slot, of_frames(sample.game[:num_windows]), of_frames(is_chosen), values), {}


def refresh(
    params: Params, window: Transition, key: Array, *, search: SearchFn, is_chosen: Bool[Array, " M"], num_frames: int
) -> Transition:
    """Replaces `search_policy` and `search_value` of the first `num_frames` frames of the chosen windows.

    These are among the first M, which are as random as any, because windows are sampled independently. Frames past a
    game's end belong to the next game; they are searched too, for the buffer, and masked later like all targets there.
    Even if the stored search was cheap, this one is in full, so its policy is learned.

    Args:
      window: leaves [N, L, ...], with the observation leaf at least `num_frames` long.
    """
    frames = SearchRoots(window.observation, window.legal_action_mask, window.state)
    num_windows = len(is_chosen)
    shape = (num_windows, num_frames)
    found = search(params, key, jax.tree.map(lambda x: x[:num_windows, :num_frames].reshape(-1, *x.shape[2:]), frames))

    def put(stored: Array, fresh: Array) -> Array:
        kept = jax.vmap(jnp.where)(is_chosen, fresh, stored[:num_windows, :num_frames])
        return stored.at[:num_windows, :num_frames].set(kept)

    return window._replace(
        search_policy=put(window.search_policy, found.policy.reshape(*shape, -1)),
        search_value=put(window.search_value, found.value.reshape(shape)),
        in_full=jax.tree.map(lambda stored: put(stored, jnp.ones(shape, bool)), window.in_full),  # None stays None
    )


def staleness(fresh: Transition, stored: Transition, weight: Float[Array, " M"]) -> Metrics:
    """Metrics of stored targets: their mean distance from fresh ones, and their mean age in iterations.

    Values are compared by their absolute difference, policies by total variation, which is at most 1. A KL divergence
    would be infinite if a stored policy has a 0. `weight` is that of each of the M windows in the means.
    """

    def mean(of_frames: Array) -> Array:
        return jnp.mean(weight[:, None] * of_frames)

    value = mean(jnp.abs(fresh.search_value - stored.search_value))
    policy = mean(0.5 * jnp.sum(jnp.abs(fresh.search_policy - stored.search_policy), axis=-1))
    metrics = {"train/stale_value": value, "train/stale_policy": policy}
    age = stored.search_age
    return metrics if age is None else metrics | {"train/stale_iterations": mean(age.astype(jnp.float32))}
