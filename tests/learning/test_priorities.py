"""Prioritised replay: exact sums, true probabilities, weights that undo the bias, and what becomes of a priority."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from muzero_jax.learning import priorities, replay, targets
from muzero_jax.types import ReplayState, Sample, WriteBack
from tests.reference import targets as reference
from tests.reference.programs import alone, on_devices
from tests.reference.windows import NO_BATCH, frame_of, make_window, random_window

C, B, T = 12, 4, 4
DEVICES = 2


def frames(seed, length, games):
    """A rollout [T, B] of random games."""
    return random_window(seed, length, games)


FRAME = frame_of(frames(0, 1, 1))


def make_ring(seed=0, rollouts=4, games=B):
    """A buffer of C frames after rollouts of T moves each, without devices and without priorities."""

    @jax.jit
    def ring_of(played):
        ring = replay.init(FRAME, num_envs=games, replay_length=C)
        for rollout in played:
            ring = replay.add(ring, rollout)
        return ring

    return ring_of([frames(seed + index, T, games) for index in range(rollouts)])


@partial(jax.jit, static_argnames="end_weight")
def weigh(ring, end_weight=1):
    return replay.start_weights(ring, window_length=5, unroll_steps=2, end_weight=end_weight)


def random_priorities(seed, shape=(C, B)):
    return jax.device_put(np.float32(np.random.default_rng(seed).random(shape) ** 3 + priorities.FLOOR))


def sampling(*, alpha=1.0, beta=1.0, end_weight=1):
    """`priorities.sample` of 50 batches of 400 windows, with its hyperparameters bound."""
    return partial(
        priorities.sample,
        num_updates=50,
        batch_size=400,
        weigh=partial(weigh, end_weight=end_weight),
        priority_exponent=alpha,
        importance_exponent=beta,
    )


def sample_of(ring, **how):
    """A sample of one device."""
    return jax.device_get(alone(sampling(**how), jax.random.key(0), ring))


def ratios(ring, end_weight=1):
    """Q / P [C, B] of each window that may be sampled: its probability without priorities by that with them."""
    start_weights = np.asarray(weigh(ring, end_weight), np.float64)
    prioritised = start_weights * np.asarray(ring.priority, np.float64)
    return start_weights / start_weights.sum() * prioritised.sum() / np.where(start_weights, prioritised, 1)


# --- integers ---------------------------------------------------------------------------------------------------------


def test_emphasis_is_proportional_to_priority_to_the_power_alpha():
    priority, start_weights = random_priorities(0), weigh(make_ring(), end_weight=3)
    emphasis = jax.jit(partial(priorities.emphasis, exponent=0.6))
    found = np.asarray(emphasis(priority, start_weights), np.float64)
    wanted, possible = np.asarray(priority, np.float64) ** 0.6, np.asarray(start_weights) > 0
    np.testing.assert_allclose(
        (found / found[possible].max())[possible], (wanted / wanted[possible].max())[possible], 1e-5
    )


@pytest.mark.parametrize("most", [1, 1000, 2**24, 2**31 - 1])
def test_sampling_weights_sum_to_less_than_2_to_the_31_and_none_is_0(most):
    """Up to start weights that fill an int32 by themselves; 9, of a frame that starts no window, sets no scale."""
    start_weights = jnp.array([[most // 2, most - most // 2 - 1], [0, 1]], jnp.int32)
    priority = jnp.array([[1.0, 0.7], [9.0, 1e-12]])
    found = np.asarray(priorities.emphasis(priority, start_weights, exponent=1.0), np.int64)
    total = (found * np.asarray(start_weights, np.int64)).sum()
    assert found.min() >= 1 and 0 < total < 2**31
    highest = np.where(start_weights > 0, priority, 0).argmax()
    assert found.ravel()[highest] == min((2**31 - 1) // int(start_weights.sum()), 2**24)


def test_after_100_000_updates_sums_of_weights_are_still_exact():
    """A float64 table records the same updates. Sums are not updated but taken again, so nothing drifts."""
    generator, updates, size = np.random.default_rng(0), 1000, 100
    ring = make_ring()._replace(priority=jnp.ones((C, B)))
    slot, game = (generator.integers(n, size=(updates, size)).astype(np.int32) for n in (C, B))
    found = (generator.random((updates, size)) ** 4 + priorities.FLOOR).astype(np.float32)
    table = np.ones((C, B))
    for where, value in zip(zip(slot.ravel(), game.ravel(), strict=True), found.ravel(), strict=True):
        table[where] = value

    def update(ring, step):
        slot, game, priority = step
        return replay.write_back(ring, (WriteBack(slot, game, jnp.ones(size, bool), {"priority": priority}),)), None

    ring, _ = jax.jit(lambda ring, steps: jax.lax.scan(update, ring, steps))(ring, (slot, game, found))
    np.testing.assert_array_equal(np.asarray(ring.priority, np.float64), table)
    weights = np.asarray(weigh(ring) * priorities.emphasis(ring.priority, weigh(ring), exponent=0.6))
    exact = np.cumsum(weights.ravel(), dtype=np.int64)
    np.testing.assert_array_equal(np.cumsum(weights.ravel(), dtype=np.float64), exact)
    np.testing.assert_array_equal(jnp.cumsum(jnp.asarray(weights).ravel()), exact)  # as `replay.sample_starts` sums
    possible = np.asarray(weigh(ring)) > 0
    share = table[possible] ** 0.6 / (table[possible] ** 0.6).sum()
    np.testing.assert_allclose(weights[possible] / exact[-1], share, rtol=1e-5)


def test_a_ticket_is_the_upper_word_of_32_bits_times_the_sum():
    """Against Python's integers, extremes included."""
    generator = np.random.default_rng(0)
    bits = np.concatenate([generator.integers(2**32, size=2000), [0, 1, 2**16 - 1, 2**16, 2**32 - 1]]).astype(np.uint32)
    for total in (1, 3, 2**16 - 1, 2**16, 1_500_000_001, 2**31 - 1):
        found = jax.jit(priorities.tickets)(bits, jnp.int32(total))
        assert found.tolist() == [int(word) * total >> 32 for word in bits]


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha, end_weight", [(1.0, 1), (0.5, 1), (1.0, 5)])
def test_windows_are_sampled_in_proportion_to_start_weight_and_priority_to_the_power_alpha(alpha, end_weight):
    ring = make_ring()._replace(priority=random_priorities(1))
    sample = sample_of(ring, alpha=alpha, end_weight=end_weight)
    counts = np.zeros((C, B))
    np.add.at(counts, (sample.slot, sample.game), 1)
    wanted = np.asarray(weigh(ring, end_weight)) * np.asarray(ring.priority, np.float64) ** alpha
    expected = counts.sum() * wanted / wanted.sum()
    assert (counts[wanted == 0] == 0).all()
    assert chisquare(counts[wanted > 0], expected[wanted > 0]).pvalue > 1e-4
    uniform = np.asarray(weigh(ring, end_weight)) / np.asarray(weigh(ring, end_weight)).sum() * counts.sum()
    assert chisquare(counts[wanted > 0], uniform[wanted > 0]).pvalue < 1e-9


@pytest.mark.parametrize("rollouts", [2, 3, 4, 5])
def test_no_window_crosses_the_write_head_however_high_its_priority(rollouts):
    """The frames that may not start one have a million times the priority."""
    ring = make_ring(rollouts=rollouts)
    possible = np.asarray(weigh(ring)) > 0
    sample = sample_of(ring._replace(priority=jnp.where(possible, 1.0, 1e6)))
    assert possible[sample.slot, sample.game].all()
    counts = np.zeros((C, B))
    np.add.at(counts, (sample.slot, sample.game), 1)
    assert (counts[possible] > 0).all()


@pytest.mark.parametrize("end_weight", [1, 5])
def test_an_importance_weight_is_q_over_p_to_the_power_beta_over_the_largest(end_weight):
    """So priorities do not change the mean over windows, and the preference for ends stays as it is."""
    ring = make_ring()._replace(priority=random_priorities(3))
    sample = sample_of(ring, beta=0.4, end_weight=end_weight)
    raw = ratios(ring, end_weight)[sample.slot, sample.game] ** 0.4
    np.testing.assert_allclose(sample.weight, raw / raw.max(), rtol=1e-4)


def test_two_devices_sample_from_their_own_games_and_share_one_largest_weight():
    """Each device's P is that of its own share of the games; the largest weight of both is 1."""
    halves = [make_ring(seed)._replace(priority=scale * random_priorities(seed)) for seed, scale in ((0, 1), (7, 30))]
    both = jax.tree.map(lambda *x: np.stack(x), *jax.device_get(halves))
    keys = jax.random.split(jax.random.key(0), DEVICES)
    sample = jax.device_get(on_devices(sampling(), keys, both))
    assert sample.slot.shape == (DEVICES, 50, 200)
    each = zip(halves, sample.slot, sample.game, strict=True)
    raw = np.stack([ratios(ring)[slot, game] for ring, slot, game in each])
    np.testing.assert_allclose(sample.weight, raw / raw.max(), rtol=1e-4)
    assert sample.weight.max() == pytest.approx(1)


# --- the life of a priority -------------------------------------------------------------------------------------------


def add_on_devices(rings: ReplayState, seed):
    """A rollout for each device's buffer."""
    new = jax.device_get([frames(seed + device, T, B) for device in range(DEVICES)])
    return on_devices(replay.add, rings, jax.tree.map(lambda *x: np.stack(x), *new))


def test_new_frames_get_the_highest_priority_of_all_devices_and_1_in_an_empty_buffer():
    init = partial(replay.init, FRAME, num_envs=B, replay_length=C)
    assert jax.eval_shape(init).priority is None
    empty = jax.device_get(jax.jit(partial(init, is_prioritised=True))())
    rings = add_on_devices(jax.tree.map(lambda x: np.stack([x] * DEVICES), empty), 0)
    np.testing.assert_array_equal(rings.priority[:, :T], 1)
    np.testing.assert_array_equal(rings.priority[:, T:], 0)
    known = np.array(rings.priority)
    known[:, :T], known[1, 2, 3] = 0.02, 0.4
    rings = add_on_devices(rings._replace(priority=known), 5)
    np.testing.assert_array_equal(rings.priority[:, T : 2 * T], np.float32(0.4))
    np.testing.assert_array_equal(rings.priority[:, :T], known[:, :T])


@pytest.mark.parametrize("search_value_weight", [0.0, 1.0])
def test_a_priority_is_the_distance_of_search_value_and_return_whatever_the_value_target(search_value_weight):
    """Against the reference's n-step returns; the batch's own targets do not matter."""
    window = random_window(4, num_windows=30, length=2 + 4 + 1)
    make_targets = partial(targets.make, unroll_steps=0, td_steps=4, td_lambda=1.0, stop_at_exploration=True)
    learned = partial(make_targets, search_value_weight=search_value_weight)
    make_batch = jax.jit(partial(targets.make_batch, unroll_steps=0, num_frames=1))
    batch = make_batch(window, jax.jit(learned)(window), jnp.ones(30), jax.random.key(0))
    sample = Sample(jnp.arange(30), jnp.arange(30), jnp.linspace(0.1, 1.0, 30))
    stops = partial(targets.stops, stop_at_exploration=True)
    updated = partial(priorities.updated, make_returns=make_targets, stops=stops)
    (found,), metrics = jax.jit(updated)(sample, window, batch)
    _, value, _ = reference.make(window, unroll_steps=2, td_steps=4, td_lambda=1.0)
    error, known = np.abs(np.asarray(window.search_value)[:, 0] - value[:, 0]), ~np.asarray(window.explored)[:, 0]
    expected = np.where(known, error, error[known].mean()) + priorities.FLOOR
    np.testing.assert_allclose(found.values["priority"], expected, rtol=1e-4)
    assert found.is_known.all()
    np.testing.assert_allclose(metrics["train/priority"], error[known].mean(), rtol=1e-4)
    np.testing.assert_allclose(metrics["train/importance_weight"], 0.55, rtol=1e-5)
    assert set(found.values) == {"priority"} and 0 < known.sum() < len(known)


@pytest.mark.parametrize("stop_at_exploration, found", [(True, [0.51, 0.51, 0.51]), (False, [0.51, 0.91, 0.71])])
def test_a_window_whose_return_stops_at_once_gets_the_mean_priority(stop_at_exploration, found):
    """Three games won by their only move, with search values 0.5, 0.1 and 0.9; all have the priority 0.7.

    The second move was random, and the third reached a time limit. |0.5 - 1| and |0.1 - 1| are known errors.
    """
    window = make_window(
        np.ones((3, 2)), [[0, 0], [0, 0], [-1, -1]], search_value=[[0.5, 0], [0.1, 0], [0.9, 0]],
        explored=[[False] * 2, [True] * 2, [False] * 2], is_last=np.ones((3, 2)),
    )  # fmt: skip
    hyperparameters = {"stop_at_exploration": stop_at_exploration}
    make = partial(targets.make, unroll_steps=0, td_steps=1, td_lambda=1.0, **hyperparameters)
    sample = Sample(jnp.zeros(3, jnp.int32), jnp.arange(3), jnp.ones(3))
    stops = partial(targets.stops, **hyperparameters)
    updated = jax.jit(partial(priorities.updated, make_returns=make, stops=stops))
    (write_back,), metrics = updated(sample, window, NO_BATCH)
    ring = make_ring(games=3)._replace(priority=jnp.full((C, 3), 0.7))
    written = jax.jit(replay.write_back)(ring, (write_back,))
    np.testing.assert_allclose(written.priority[0], found, rtol=1e-6)
    np.testing.assert_allclose(metrics["train/priority"], 0.5 if stop_at_exploration else 0.7, rtol=1e-6)


def test_priorities_stay_if_every_return_of_a_batch_stops_at_once():
    window = make_window(np.ones((2, 2)), [[0, 0]] * 2, explored=[[True] * 2] * 2, is_last=np.ones((2, 2)))
    make = partial(targets.make, unroll_steps=0, td_steps=1, td_lambda=1.0, stop_at_exploration=True)
    stops = partial(targets.stops, stop_at_exploration=True)
    sample = Sample(jnp.zeros(2, jnp.int32), jnp.arange(2), jnp.ones(2))
    (found,), _ = priorities.updated(sample, window, NO_BATCH, make_returns=make, stops=stops)
    assert not found.is_known.any()
