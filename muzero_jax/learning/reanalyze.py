"""Reanalyze: search stored positions again with the current weights, for fresh policy *and* value targets.

(MuZero, appendix H.) No root noise: these are targets, not moves to explore with.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import LearnerState, Metrics, Sample, SearchFn, SearchRoots, Transition, WriteBack


def refresh(
    learner: LearnerState,
    sample: Sample,
    window: Transition,
    key: Array,
    *,
    search: SearchFn,
    share: float,
    num_frames: int,
) -> tuple[Transition, tuple[WriteBack, ...], Metrics]:
    """Searches the first `num_frames` frames of some windows again, with the target network if there is one.

    Frames past a game's end belong to the next game; they are searched too, for the buffer, and masked later like all
    targets there. Even if the stored search was cheap, this one is in full, so its policy is learned.

    Args:
      sample: where the N windows start.
      window: leaves [N, L, ...], with the observation leaf at least `num_frames` long.
      share: how much of the batch is searched (`chosen`).

    Returns:
      the windows with fresh policies and values, what the buffer stores of them, and how stale they had become.
    """
    is_chosen = chosen(window, share)
    num_windows = len(is_chosen)
    stored = jax.tree.map(lambda x: x[:num_windows, :num_frames], window)
    shape = stored.action.shape
    roots = SearchRoots(stored.observation, stored.legal_action_mask, stored.state)
    found = search(learner.search_params, key, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), roots))
    fresh = {
        "search_policy": found.policy.reshape(*shape, -1),
        "search_value": found.value.reshape(shape),
        "in_full": jnp.ones(shape, bool),
    }

    def put(old: Array, new: Array) -> Array:
        kept = jax.vmap(jnp.where)(is_chosen, new, old[:num_windows, :num_frames])
        return old.at[:num_windows, :num_frames].set(kept)

    kept = {name: put(getattr(window, name), new) for name, new in fresh.items() if getattr(window, name) is not None}
    write_back = WriteBack(
        slot=sample.slot[:num_windows, None] + jnp.arange(num_frames),
        game=jnp.broadcast_to(sample.game[:num_windows, None], shape),
        is_known=jnp.broadcast_to(is_chosen[:, None], shape),
        values=fresh,
    )
    weight = is_chosen / jax.lax.pmean(jnp.mean(is_chosen), AXIS)  # a mean of all devices' is then over the share
    return window._replace(**kept), (write_back,), staleness(fresh, stored, weight)


def chosen(window: Transition, share: float) -> Bool[Array, " M"]:
    """Mask [M] of a device's first M windows that are searched again: in all `share` of the batch, at least one window.

    The first are as random as any, because windows are sampled independently. The total does not depend on the number
    of devices. If it does not divide among them, the first have one more, and the others search one in vain, because
    all run one program. Runs where `AXIS` names the devices.
    """
    num_devices = jax.lax.axis_size(AXIS)
    total = max(1, round(window.action.shape[0] * num_devices * share))
    return jnp.arange(-(-total // num_devices)) * num_devices + jax.lax.axis_index(AXIS) < total


def staleness(fresh: dict[str, Array], stored: Transition, weight: Float[Array, " M"]) -> Metrics:
    """Metrics of stored targets: their mean distance from fresh ones.

    Values are compared by their absolute difference, policies by total variation, which is at most 1. A KL divergence
    would be infinite if a stored policy has a 0. `weight` is that of each of the M windows in the means.
    """

    def mean(of_frames: Array) -> Array:
        return jnp.mean(weight[:, None] * of_frames)

    value = mean(jnp.abs(fresh["search_value"] - stored.search_value))
    policy = mean(0.5 * jnp.sum(jnp.abs(fresh["search_policy"] - stored.search_policy), axis=-1))
    return {"train/stale_value": value, "train/stale_policy": policy}
