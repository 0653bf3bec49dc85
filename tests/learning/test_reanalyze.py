"""Reanalyze: which frames get fresh targets, from whose weights, and without noise."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.environment import make_environment
from muzero_jax.learning import reanalyze, replay, self_play
from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import LearnerState, Sample, SearchOutput
from tests.reference.programs import alone, on_devices
from tests.reference.windows import frame_of, random_window

N, L, A, FRAMES = 5, 7, 3, 3


def reading_search(params, key, position):
    """Its answer names the position asked about: value = weight * observation, policy = uniform over legal actions."""
    del key
    legal, observation = position.legal_action_mask, position.observation
    policy = legal / legal.sum(axis=-1, keepdims=True)
    return SearchOutput(jnp.zeros(len(observation), jnp.int32), policy, params * observation[:, 0])


def learner_with(params, target_params=None):
    return LearnerState(params, None, jnp.int32(0), target_params)


def refreshed(window, *, weight=10.0, num_windows=N, num_frames=FRAMES, sample=None, target=None):
    """What one device gets of `num_windows` windows that are searched again, and what it writes back."""
    num = len(window.action)
    sample = sample or Sample(jnp.zeros(num, jnp.int32), jnp.arange(num), jnp.ones(num))
    refresh = partial(reanalyze.refresh, search=reading_search, share=num_windows / num, num_frames=num_frames)
    fresh, (found,), _ = alone(refresh, learner_with(jnp.float32(weight), target), sample, window, jax.random.key(0))
    return fresh, found


@pytest.fixture(scope="module")
def window():
    return random_window(0, N, L, A)


@pytest.mark.parametrize("num_windows", [1, 2, N])
def test_the_first_frames_of_the_first_windows_get_fresh_policy_and_value(window, num_windows):
    fresh, _ = refreshed(window, num_windows=num_windows)
    for i in range(N):
        for frame in range(L):
            if i < num_windows and frame < FRAMES:
                legal = np.asarray(window.legal_action_mask[i, frame])
                np.testing.assert_allclose(fresh.search_value[i, frame], 10 * window.observation[i, frame, 0])
                np.testing.assert_allclose(fresh.search_policy[i, frame], legal / legal.sum(), rtol=1e-6)
            else:
                assert fresh.search_value[i, frame] == window.search_value[i, frame]
                np.testing.assert_array_equal(fresh.search_policy[i, frame], window.search_policy[i, frame])


def test_the_target_network_searches_if_there_is_one_and_else_the_network_itself(window):
    for target, weight in ((None, 10), (jnp.float32(3.0), 3)):
        fresh, _ = refreshed(window, target=target)
        np.testing.assert_allclose(fresh.search_value[:, :FRAMES], weight * window.observation[:, :FRAMES, 0])


@pytest.mark.parametrize("num_devices, share, total", [(1, 0.05, 3), (8, 0.05, 3), (2, 0.5, 32), (8, 0.001, 1)])
def test_the_number_of_windows_searched_does_not_depend_on_the_number_of_devices(num_devices, share, total):
    """0.05 of 64 windows are 3.2, so 3; if each of 8 devices rounded its share, 8. Metrics are means over these."""
    stored = jax.device_get(random_window(0, 64, L, A))
    share_of_each = jax.tree.map(lambda x: x.reshape(num_devices, -1, *x.shape[1:]), stored)
    places = np.zeros((num_devices, 64 // num_devices), np.int32)
    sample = Sample(places, places, np.ones(places.shape, np.float32))

    def learn(sample, window):
        learner, key = learner_with(jnp.float32(10.0)), jax.random.key(0)
        refresh = partial(reanalyze.refresh, search=reading_search, share=share, num_frames=FRAMES)
        fresh, (found,), metrics = refresh(learner, sample, window, key)
        return fresh, found, jax.lax.pmean(metrics, AXIS)

    fresh, found, metrics = jax.device_get(on_devices(learn, sample, share_of_each))
    is_fresh = (fresh.search_value != share_of_each.search_value).reshape(64, L)
    assert is_fresh.sum() == found.is_known.sum() == total * FRAMES
    assert is_fresh[:, :FRAMES].all(axis=1).sum() == total
    drift = np.abs(fresh.search_value - share_of_each.search_value).reshape(64, L)[is_fresh]
    np.testing.assert_allclose(metrics["train/stale_value"], drift.mean(), rtol=1e-5)


def test_frames_of_cheap_searches_count_as_fully_searched_after_reanalyze(window):
    cheap = window._replace(in_full=jnp.zeros((N, L), bool))
    fresh, _ = refreshed(cheap, num_windows=2)
    np.testing.assert_array_equal(fresh.in_full, (np.arange(N)[:, None] < 2) & (np.arange(L) < FRAMES))
    ring = replay.init(frame_of(cheap), num_envs=1, replay_length=L)
    sample = Sample(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32), jnp.ones(1))
    _, found = refreshed(jax.tree.map(lambda x: x[:1], cheap), num_windows=1, sample=sample)
    written = jax.jit(replay.write_back)(ring, (found,))
    np.testing.assert_array_equal(written.transitions.in_full[:, 0], np.arange(L) < FRAMES)


def test_frames_of_the_next_episode_at_a_windows_end_get_their_own_targets_too():
    """The second of five frames ends a game. The three after it are learned from in other windows."""
    game = random_window(3, 5, 1, A, end_probability=0.0)  # time-major: [T, B]
    last = game.is_last.at[1, 0].set(True)
    game = game._replace(is_last=last, discount=jnp.where(last, 0.0, game.discount))
    ring = jax.jit(replay.add)(replay.init(frame_of(game), num_envs=1, replay_length=5), game)
    sample = Sample(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32), jnp.ones(1))
    gather = partial(replay.gather, observation_shape=(2,), window_length=5, observation_length=5)
    window = jax.jit(gather)(ring, sample)
    _, found = refreshed(window, num_windows=1, num_frames=5, sample=sample)
    written = jax.jit(replay.write_back)(ring, (found,)).transitions
    np.testing.assert_allclose(written.search_value, 10 * game.observation[..., 0])
    legal = np.asarray(game.legal_action_mask)
    np.testing.assert_allclose(written.search_policy, legal / legal.sum(axis=-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(written.reward, game.reward)


def test_with_the_ground_truth_model_each_frame_is_searched_from_its_own_state():
    """Tic-tac-toe by random moves: the state that a frame's search gets shows the frame's observation."""
    environment = make_environment("tic_tac_toe")

    def comparing_search(params, key, position):
        """Its value is 1 where the observation and the legal moves are those of the state."""
        seen, legal = jax.vmap(environment.observe)(position.state), jax.vmap(environment.legal)(position.state)
        is_own = (seen == position.observation).all((1, 2, 3)) & (legal == position.legal_action_mask).all(-1)
        return SearchOutput(jnp.zeros(len(legal), jnp.int32), legal.astype(jnp.float32), is_own.astype(jnp.float32))

    def searched_again(start):
        explore = partial(self_play.choose, exploration=1.0)
        play = partial(self_play.rollout, environment=environment, search=comparing_search, choose=explore)
        _, frames = play(None, start, jax.random.key(2), length=12, keeps_state=True)
        ring = replay.add(replay.init(frame_of(frames), num_envs=4, replay_length=12), frames)
        sample = Sample(jnp.array([7, 11, 0, 3]), jnp.arange(4), jnp.ones(4))
        shape = environment.observation_shape
        window = replay.gather(ring, sample, observation_shape=shape, window_length=3, observation_length=3)
        stored = window._replace(search_value=jnp.zeros((4, 3)))
        refresh = partial(reanalyze.refresh, search=comparing_search, share=1.0, num_frames=3)
        return refresh(learner_with(jnp.float32(0.0)), sample, stored, jax.random.key(3))[0]

    fresh = alone(searched_again, self_play.init(environment, jax.random.key(1), num_envs=4))
    np.testing.assert_array_equal(fresh.search_value, 1)
    assert len(np.unique(np.reshape(fresh.observation, (12, -1)), axis=0)) > 6


# --- staleness --------------------------------------------------------------------------------------------------------


def test_staleness_is_the_mean_distance_of_values_and_of_policies(window):
    weight, one_hot, staleness = np.ones(N, np.float32), np.eye(A, dtype=np.float32), jax.jit(reanalyze.staleness)
    same = staleness(window._asdict(), window, weight)
    assert same == {"train/stale_value": 0, "train/stale_policy": 0}
    half = np.arange(N * L).reshape(N, L) % 2  # 18 of 35 frames change
    stored = window._replace(search_policy=one_hot[0 * half], search_value=np.float32(0 * half))
    fresh = stored._replace(search_policy=one_hot[2 - 2 * half], search_value=np.float32(-0.5 * (1 - half)))
    moved = staleness(fresh._asdict(), stored, weight)
    np.testing.assert_allclose(moved["train/stale_value"], 0.5 * 18 / 35, rtol=1e-6)
    np.testing.assert_allclose(moved["train/stale_policy"], 18 / 35, rtol=1e-6)  # total variation: 1 where disjoint
