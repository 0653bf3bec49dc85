"""Reanalyze: search stored positions again with today's weights, for fresh policy *and* value targets.

(MuZero, appendix H.) No root noise: these are targets, not moves to explore with.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.types import Params, Position, SearchFn, Transition


def refresh_share(
    params: Params, window: Transition, key: Array, *, search: SearchFn, share: float, num_frames: int
) -> tuple[Transition, dict[str, Array]]:
    """`refresh` of a share of the windows, at least one; returns them all, and how stale the targets had become."""
    num_windows = max(1, round(window.action.shape[0] * share))
    fresh = refresh(params, window, key, search=search, num_windows=num_windows, num_frames=num_frames)
    searched, stored = (jax.tree.map(lambda x: x[:num_windows], w) for w in (fresh, window))
    return fresh, staleness(searched, stored)


def refresh(
    params: Params, window: Transition, key: Array, *, search: SearchFn, num_windows: int, num_frames: int
) -> Transition:
    """Replaces `search_policy` and `search_value` of the first `num_frames` frames of the first `num_windows` windows.

    Windows are drawn independently, so "the first" are as random as any. Frames past a window's end belong to
    another game; they are searched all the same, and masked later, as every target there is.

    Args:
      window: leaves [N, L, ...], with the observation leaf at least `num_frames` long.
    """
    chosen = jax.tree.map(lambda x: x[:num_windows, :num_frames], (window.observation, window.legal_action_mask))
    observation, legal_action_mask = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), chosen)
    found = search(params, key, Position(observation, legal_action_mask, None))
    shape = (num_windows, num_frames)
    return window._replace(
        search_policy=window.search_policy.at[:num_windows, :num_frames].set(found.policy.reshape(*shape, -1)),
        search_value=window.search_value.at[:num_windows, :num_frames].set(found.value.reshape(shape)),
    )


def staleness(fresh: Transition, stored: Transition) -> dict[str, Array]:
    """How far stored targets had drifted from fresh ones: mean absolute value difference and policy distance."""
    value = jnp.mean(jnp.abs(fresh.search_value - stored.search_value))
    policy = jnp.mean(0.5 * jnp.sum(jnp.abs(fresh.search_policy - stored.search_policy), axis=-1))
    return {"train/stale_value": value, "train/stale_policy": policy}
