"""Reanalyze: which frames get fresh targets, from whose weights, and without noise."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.learning import reanalyze, targets
from muzero_jax.search.policies import gumbel_search
from muzero_jax.search.simulator import learned_model
from muzero_jax.types import QTransform, SearchOutput
from tests.reference.models import make_tanh_model
from tests.reference.windows import random_window

N, L, A, FRAMES = 5, 7, 3, 3


def reading_search(params, key, position):
    """Its answer names the position asked about: value = weight * observation, policy = uniform over legal actions."""
    del key
    legal, observation = position.legal_action_mask, position.observation
    policy = legal / legal.sum(axis=-1, keepdims=True)
    return SearchOutput(jnp.zeros(len(observation), jnp.int32), policy, params * observation[:, 0])


refresh_by_reading = jax.jit(
    partial(reanalyze.refresh, search=reading_search), static_argnames=("num_windows", "num_frames")
)


@pytest.fixture(scope="module")
def window():
    return random_window(0, N, L, A)


@pytest.mark.parametrize("num_windows", [1, 2, N])
def test_the_first_frames_of_the_first_windows_get_fresh_policy_and_value(window, num_windows):
    fresh = refresh_by_reading(jnp.float32(10.0), window, jax.random.key(0), num_windows=num_windows, num_frames=FRAMES)
    for i in range(N):
        for frame in range(L):
            if i < num_windows and frame < FRAMES:
                legal = np.asarray(window.legal_action_mask[i, frame])
                np.testing.assert_allclose(fresh.search_value[i, frame], 10 * window.observation[i, frame, 0])
                np.testing.assert_allclose(fresh.search_policy[i, frame], legal / legal.sum(), rtol=1e-6)
            else:
                assert fresh.search_value[i, frame] == window.search_value[i, frame]
                np.testing.assert_array_equal(fresh.search_policy[i, frame], window.search_policy[i, frame])


def test_what_happened_in_the_game_stays_as_it_was(window):
    fresh = refresh_by_reading(jnp.float32(10.0), window, jax.random.key(0), num_windows=N, num_frames=FRAMES)
    for name in ("observation", "legal_action_mask", "action", "reward", "discount", "explored"):
        np.testing.assert_array_equal(getattr(fresh, name), getattr(window, name))


def test_observations_beyond_the_refreshed_frames_need_not_be_gathered(window):
    short = window._replace(observation=window.observation[:, :FRAMES])
    refresh = partial(refresh_by_reading, num_windows=2, num_frames=FRAMES)
    one, other = (refresh(jnp.float32(1.0), w, jax.random.key(0)) for w in (window, short))
    np.testing.assert_array_equal(one.search_value, other.search_value)


def test_fresh_policies_and_values_reach_the_targets():
    """A one-move return bootstraps from the fresh value of the next frame, and the policy target is the fresh one."""
    window = random_window(1, N, L, A, end_probability=0.0)._replace(explored=jnp.zeros((N, L), bool))
    fresh = refresh_by_reading(jnp.float32(10.0), window, jax.random.key(0), num_windows=N, num_frames=L)
    found = targets.make(fresh, unroll_steps=2, td_steps=1, td_lambda=1.0, stop_at_exploration=True)
    expected = window.reward[:, :3] + window.discount[:, :3] * 10 * window.observation[:, 1:4, 0]
    np.testing.assert_allclose(found.value, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.policy, fresh.search_policy[:, :3])


def test_targets_hold_no_root_noise_and_come_from_the_weights_given(window):
    """With gumbel_scale 0 two keys agree exactly; other weights give other targets."""
    model = make_tanh_model()
    search = gumbel_search(
        learned_model(model, -1.0),
        num_simulations=4,
        max_num_considered_actions=3,
        gumbel_scale=0.0,
        qtransform=QTransform(0.1, 50.0, rescale_values=False),
        improved_value=True,
    )
    refresh = jax.jit(partial(reanalyze.refresh, search=search, num_windows=N, num_frames=FRAMES))
    old, new = model.init(jax.random.key(0)), model.init(jax.random.key(1))
    one, other = refresh(new, window, jax.random.key(0)), refresh(new, window, jax.random.key(7))
    np.testing.assert_array_equal(one.search_policy, other.search_policy)
    np.testing.assert_array_equal(one.search_value, other.search_value)
    stale = refresh(old, window, jax.random.key(0))
    assert (np.asarray(stale.search_value != one.search_value)[:, :FRAMES]).all()
    illegal = ~np.asarray(window.legal_action_mask)[:, :FRAMES]
    assert (np.asarray(one.search_policy)[:, :FRAMES][illegal] == 0).all()


def test_staleness_is_the_mean_distance_of_values_and_of_policies(window):
    same = reanalyze.staleness(window, window)
    assert (same["train/stale_value"], same["train/stale_policy"]) == (0, 0)
    one_hot = jnp.broadcast_to(jnp.eye(A)[0], (N, L, A))
    stored = window._replace(search_policy=one_hot, search_value=jnp.zeros((N, L)))
    half = jnp.arange(N * L).reshape(N, L) % 2 == 0  # 18 of 35 frames change
    fresh = stored._replace(
        search_policy=jnp.where(half[..., None], jnp.eye(A)[2], one_hot), search_value=jnp.where(half, -0.5, 0.0)
    )
    moved = reanalyze.staleness(fresh, stored)
    np.testing.assert_allclose(moved["train/stale_value"], 0.5 * 18 / 35, rtol=1e-6)
    np.testing.assert_allclose(moved["train/stale_policy"], 18 / 35, rtol=1e-6)  # total variation: 1 where disjoint
