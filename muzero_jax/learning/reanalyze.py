"""Reanalyze: search stored positions again with today's weights, for fresh policy *and* value targets.

(MuZero, appendix H.) No root noise: these are targets, not moves to explore with.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.learning import learner as learners
from muzero_jax.types import Batch, Draws, LearnerState, Metrics, Params, Position, Revision, SearchFn, Transition


def refresh_share(
    learner: LearnerState, window: Transition, key: Array, *, search: SearchFn, share: float, num_frames: int
) -> tuple[Transition, Metrics]:
    """`refresh` of a share of the windows, at least one; returns them all, and how stale the targets had become.

    The target network searches, if there is one.
    """
    num_windows = chosen(window, share)
    params = learners.settled(learner)
    fresh = refresh(params, window, key, search=search, num_windows=num_windows, num_frames=num_frames)
    searched, stored = (jax.tree.map(lambda x: x[:num_windows, :num_frames], w) for w in (fresh, window))
    return fresh, staleness(searched, stored)


def chosen(window: Transition, share: float) -> int:
    """How many of the windows are searched again."""
    return max(1, round(window.action.shape[0] * share))


def note(draws: Draws, window: Transition, batch: Batch, *, share: float, num_frames: int) -> tuple[Revision, Metrics]:
    """The fresh targets of searched windows, for the ring; their metrics are `refresh_share`'s."""
    del batch
    num_windows = chosen(window, share)
    slot, game = draws.slot[:num_windows, None] + jnp.arange(num_frames), draws.game[:num_windows, None]
    revision = Revision(
        slot,
        jnp.broadcast_to(game, slot.shape),
        jnp.ones(slot.shape, bool),
        search_policy=window.search_policy[:num_windows, :num_frames],
        search_value=window.search_value[:num_windows, :num_frames],
    )
    return revision, {}


def refresh(
    params: Params, window: Transition, key: Array, *, search: SearchFn, num_windows: int, num_frames: int
) -> Transition:
    """Replaces `search_policy` and `search_value` of the first `num_frames` frames of the first `num_windows` windows.

    Windows are drawn independently, so "the first" are as random as any. Frames past a game's end belong to the next
    one; they are searched all the same, for the ring, and masked later, as every target there is. A cheap search's
    policy is not learned from, but this one's is.

    Args:
      window: leaves [N, L, ...], with the observation leaf at least `num_frames` long.
    """
    frames = Position(window.observation, window.legal_action_mask, window.state)
    found = search(params, key, jax.tree.map(lambda x: x[:num_windows, :num_frames].reshape(-1, *x.shape[2:]), frames))
    shape = (num_windows, num_frames)
    in_full = window.in_full
    return window._replace(
        search_policy=window.search_policy.at[:num_windows, :num_frames].set(found.policy.reshape(*shape, -1)),
        search_value=window.search_value.at[:num_windows, :num_frames].set(found.value.reshape(shape)),
        in_full=None if in_full is None else in_full.at[:num_windows, :num_frames].set(True),
    )


def staleness(fresh: Transition, stored: Transition) -> Metrics:
    """How far stored targets had drifted from fresh ones, and how many iterations ago they were searched: means.

    Values are compared by their absolute difference, policies by total variation, which is at most 1. A KL divergence
    would be infinite where a stored policy has a 0.
    """
    value = jnp.mean(jnp.abs(fresh.search_value - stored.search_value))
    policy = jnp.mean(0.5 * jnp.sum(jnp.abs(fresh.search_policy - stored.search_policy), axis=-1))
    metrics = {"train/stale_value": value, "train/stale_policy": policy}
    age = stored.search_age
    return metrics if age is None else metrics | {"train/stale_iterations": jnp.mean(age.astype(jnp.float32))}
