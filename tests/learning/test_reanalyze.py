"""Reanalyze: which frames get fresh targets, from whose weights, and without noise."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.environment import make_environment
from muzero_jax.learning import reanalyze, replay, self_play, targets
from muzero_jax.ops.devices import AXIS
from muzero_jax.search.simulator import ground_truth_model, learned_model
from muzero_jax.types import LearnerState, Sample, SearchOutput
from tests.reference.models import make_network, make_tanh_model, random_params
from tests.reference.programs import alone, on_devices
from tests.reference.searches import gumbel
from tests.reference.windows import NO_BATCH, frame_of, random_window

N, L, A, FRAMES = 5, 7, 3, 3


def reading_search(params, key, position):
    """Its answer names the position asked about: value = weight * observation, policy = uniform over legal actions."""
    del key
    legal, observation = position.legal_action_mask, position.observation
    policy = legal / legal.sum(axis=-1, keepdims=True)
    return SearchOutput(jnp.zeros(len(observation), jnp.int32), policy, params * observation[:, 0])


@partial(jax.jit, static_argnames=("num_windows", "num_frames"))
def refresh_by_reading(params, window, key, *, num_windows, num_frames):
    is_chosen = jnp.ones(num_windows, bool)
    return reanalyze.refresh(params, window, key, search=reading_search, is_chosen=is_chosen, num_frames=num_frames)


def fresh_targets(sample, window, *, share, num_frames=FRAMES):
    """What one device writes back."""
    of_batch = partial(reanalyze.fresh_targets, batch=NO_BATCH, share=share, num_frames=num_frames)
    return alone(lambda *x: of_batch(*x)[0], sample, window)


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


def test_refreshing_changes_nothing_that_was_played(window):
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


def test_fresh_targets_have_no_root_noise_and_depend_on_the_weights_given(window):
    """With gumbel_scale 0 two keys agree exactly; other weights give other targets."""
    model = make_tanh_model()
    search = gumbel(learned_model(model, -1.0), num_simulations=4)
    chosen = jnp.ones(N, bool)
    refresh = jax.jit(partial(reanalyze.refresh, search=search, is_chosen=chosen, num_frames=FRAMES))
    old, new = model.init(jax.random.key(0)), model.init(jax.random.key(1))
    one, other = refresh(new, window, jax.random.key(0)), refresh(new, window, jax.random.key(7))
    np.testing.assert_array_equal(one.search_policy, other.search_policy)
    np.testing.assert_array_equal(one.search_value, other.search_value)
    stale = refresh(old, window, jax.random.key(0))
    assert (np.asarray(stale.search_value != one.search_value)[:, :FRAMES]).all()
    illegal = ~np.asarray(window.legal_action_mask)[:, :FRAMES]
    assert (np.asarray(one.search_policy)[:, :FRAMES][illegal] == 0).all()


def learner_with(params, target_params=None):
    return LearnerState(params, None, jnp.int32(0), target_params)


def test_the_target_network_searches_if_there_is_one_and_else_the_network_itself(window):
    refresh = partial(reanalyze.refresh_share, search=reading_search, share=1.0, num_frames=FRAMES)
    for learner, weight in (
        (learner_with(jnp.float32(10.0)), 10),
        (learner_with(jnp.float32(10.0), jnp.float32(3.0)), 3),
    ):
        fresh, _ = alone(refresh, learner, window, jax.random.key(0))
        np.testing.assert_allclose(fresh.search_value[:, :FRAMES], weight * window.observation[:, :FRAMES, 0])


@pytest.mark.parametrize("num_devices, share, total", [(1, 0.05, 3), (8, 0.05, 3), (2, 0.5, 32), (8, 0.001, 1)])
def test_the_number_of_windows_searched_does_not_depend_on_the_number_of_devices(num_devices, share, total):
    """0.05 of 64 windows are 3.2, so 3; if each of 8 devices rounded its share, 8. Metrics are means over these."""
    stored = jax.device_get(random_window(0, 64, L, A))
    stored = stored._replace(search_age=np.arange(64 * L, dtype=np.int32).reshape(64, L))
    share_of_each = jax.tree.map(lambda x: x.reshape(num_devices, -1, *x.shape[1:]), stored)
    places = np.zeros((num_devices, 64 // num_devices), np.int32)
    sample = Sample(places, places, np.ones(places.shape, np.float32))

    def learn(sample, window):
        key = jax.random.key(0)
        refresh = partial(reanalyze.refresh_share, search=reading_search, share=share, num_frames=FRAMES)
        fresh, metrics = refresh(learner_with(jnp.float32(10.0)), window, key)
        found, _ = reanalyze.fresh_targets(sample, fresh, NO_BATCH, share=share, num_frames=FRAMES)
        return fresh, found, jax.lax.pmean(metrics, AXIS)

    fresh, found, metrics = jax.device_get(on_devices(learn, sample, share_of_each))
    is_fresh = (fresh.search_value != share_of_each.search_value).reshape(64, L)
    assert is_fresh.sum() == found.is_known.sum() == total * FRAMES
    assert is_fresh[:, :FRAMES].all(axis=1).sum() == total
    drift = np.abs(fresh.search_value - share_of_each.search_value).reshape(64, L)[is_fresh]
    np.testing.assert_allclose(metrics["train/stale_value"], drift.mean(), rtol=1e-5)
    np.testing.assert_allclose(metrics["train/stale_iterations"], stored.search_age[is_fresh].mean(), rtol=1e-5)


def test_frames_of_cheap_searches_count_as_fully_searched_after_reanalyze(window):
    cheap = window._replace(in_full=jnp.zeros((N, L), bool))
    fresh = refresh_by_reading(jnp.float32(1.0), cheap, jax.random.key(0), num_windows=2, num_frames=FRAMES)
    np.testing.assert_array_equal(fresh.in_full, (np.arange(N)[:, None] < 2) & (np.arange(L) < FRAMES))
    ring = replay.init(frame_of(cheap), num_envs=1, replay_length=L)
    sample = Sample(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32), jnp.ones(1))
    found = fresh_targets(sample, jax.tree.map(lambda x: x[:1], fresh), share=0.2)
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
    fresh = refresh_by_reading(jnp.float32(10.0), window, jax.random.key(0), num_windows=1, num_frames=5)
    found = fresh_targets(sample, fresh, share=1.0, num_frames=5)
    written = jax.jit(replay.write_back)(ring, (found,)).transitions
    np.testing.assert_allclose(written.search_value, 10 * game.observation[..., 0])
    legal = np.asarray(game.legal_action_mask)
    np.testing.assert_allclose(written.search_policy, legal / legal.sum(axis=-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(written.reward, game.reward)


def idle_search(params, key, position):
    """Looks at nothing."""
    legal = position.legal_action_mask.astype(jnp.float32)
    return SearchOutput(jnp.zeros(len(legal), jnp.int32), legal, legal[:, 0])


@pytest.mark.slow
def test_with_the_ground_truth_model_the_positions_that_were_played_are_searched_again():
    """Tic-tac-toe: the positions are reached again by replaying the actions, move by move."""
    environment = make_environment("tic_tac_toe")
    model = make_network("mlp", environment)
    params, search = random_params(model), gumbel(ground_truth_model(environment, model), num_simulations=4)
    start = self_play.init(environment, jax.random.key(1), num_envs=4)
    explore = partial(self_play.choose, exploration=1.0)
    play = partial(self_play.rollout, environment=environment, length=12, choose=explore, keeps_state=True)
    _, trajectory = jax.jit(partial(play, search=idle_search))(params, start, jax.random.key(2))
    assert np.asarray(trajectory.is_last).any()  # 12 moves: every game has ended once and begun again
    ring = replay.add(replay.init(frame_of(trajectory), num_envs=4, replay_length=12), trajectory)
    sample = Sample(jnp.array([7, 11, 0, 3]), jnp.array([0, 1, 2, 3]), jnp.ones(4))
    shape = environment.observation_shape
    window = replay.gather(ring, sample, observation_shape=shape, window_length=1, observation_length=1)
    refresh = partial(reanalyze.refresh, search=search, is_chosen=jnp.ones(4, bool), num_frames=1)
    fresh = jax.jit(refresh)(params, window, jax.random.key(3))

    states, move, positions = start.env_state, jax.jit(jax.vmap(environment.move)), []
    newborn = jax.vmap(environment.init)(jax.random.split(jax.random.key(9), 4))
    for time in range(12):
        positions.append(environment.roots(states))
        step = move(states, trajectory.action[time], jax.random.split(jax.random.key(0), 4))
        states = jax.tree.map(partial(jax.vmap(jnp.where), step.is_last), newborn, step.state)
    reached = jax.tree.map(lambda *x: jnp.stack(x)[sample.slot, sample.game], *positions)
    found = jax.jit(search)(params, jax.random.key(4), reached)
    np.testing.assert_allclose(fresh.search_policy[:, 0], found.policy, atol=1e-6)
    np.testing.assert_allclose(fresh.search_value[:, 0], found.value, atol=1e-6)
    assert (np.asarray(fresh.search_policy[:, 0])[~np.asarray(reached.legal_action_mask)] == 0).all()
    assert len({tuple(row) for row in np.asarray(found.policy).round(4).tolist()}) > 2


# --- staleness --------------------------------------------------------------------------------------------------------


def test_staleness_is_the_mean_distance_of_values_and_of_policies(window):
    weight, one_hot, staleness = np.ones(N, np.float32), np.eye(A, dtype=np.float32), jax.jit(reanalyze.staleness)
    same = staleness(window, window, weight)
    assert same == {"train/stale_value": 0, "train/stale_policy": 0}, "and no age where the buffer keeps none"
    half = np.arange(N * L).reshape(N, L) % 2  # 18 of 35 frames change
    stored = window._replace(search_policy=one_hot[0 * half], search_value=np.float32(0 * half))
    fresh = stored._replace(search_policy=one_hot[2 - 2 * half], search_value=np.float32(-0.5 * (1 - half)))
    moved = staleness(fresh, stored, weight)
    np.testing.assert_allclose(moved["train/stale_value"], 0.5 * 18 / 35, rtol=1e-6)
    np.testing.assert_allclose(moved["train/stale_policy"], 18 / 35, rtol=1e-6)  # total variation: 1 where disjoint
