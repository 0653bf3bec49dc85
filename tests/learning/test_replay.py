"""The replay buffer against a list that forgets nothing, and samples against their weights."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from muzero_jax.learning import replay
from muzero_jax.ops.observations import as_numbers
from muzero_jax.types import Sample, WriteBack
from tests.reference.windows import frame_of, make_window

C, B, T, L, K = 12, 3, 4, 6, 2
END_WEIGHT = 5

add = jax.jit(replay.add)
start_weights = jax.jit(replay.start_weights, static_argnames=("window_length", "unroll_steps", "end_weight"))
weights_of = partial(start_weights, window_length=L, unroll_steps=K, end_weight=END_WEIGHT)
sample_starts = jax.jit(replay.sample_starts, static_argnames="shape")
gather_of = jax.jit(replay.gather, static_argnames=("observation_shape", "window_length", "observation_length"))
gather = partial(gather_of, observation_shape=(2,))
write_back = jax.jit(replay.write_back)


def rollout(index):
    """The index-th rollout; every frame names its time and its game, and about one in four ends a game."""
    time = np.arange(index * T, (index + 1) * T)[:, None] + np.zeros(B, np.int32)
    name = 100 * time + np.arange(B)
    discount = np.where(np.random.default_rng(index).random((T, B)) < 0.25, 0.0, -1.0)
    observation = np.stack([time, name], axis=-1)
    return make_window(name, discount, action=name, observation=observation, search_value=-name)


TRANSITION = frame_of(rollout(0))


def empty(transition=TRANSITION, length=C, **options):
    """A buffer of B games without frames."""
    return jax.jit(partial(replay.init, transition, num_envs=B, replay_length=length, **options))()


def sample_at(slot, game):
    """These windows, all of weight 1."""
    return jax.device_put(Sample(np.int32(slot), np.int32(game), np.ones(len(slot), np.float32)))


@pytest.fixture(scope="module")
def histories():
    """After each of 8 rollouts (the buffer holds 3): the buffer, and whether each move played [time, B] was a last."""
    ring, ends, snapshots = empty(), np.zeros((0, B), bool), []
    for index in range(8):
        trajectory = rollout(index)
        ring, ends = add(ring, trajectory), np.concatenate([ends, trajectory.discount == 0])
        snapshots.append((ring, ends))
    return snapshots


# --- the buffer -------------------------------------------------------------------------------------------------------


def test_frame_t_of_game_b_lies_at_t_mod_c(histories):
    for ring, ends in histories:
        total = len(ends)
        for time in range(max(0, total - C), total):
            np.testing.assert_array_equal(ring.transitions.action[time % C], 100 * time + np.arange(B))
        assert int(ring.num_stored) == min(total, C)
        assert int(ring.insert_index) == total % C


def test_a_buffer_keeps_the_dtypes_it_was_made_with():
    transition = TRANSITION._replace(search_policy=jax.ShapeDtypeStruct((3,), jnp.bfloat16))
    ring = add(empty(transition, T), rollout(0))
    packed = jax.eval_shape(replay.pack, transition)
    assert packed.search_policy.dtype == jnp.bfloat16
    assert jax.tree.map(lambda x: x.dtype, ring.transitions) == jax.tree.map(lambda x: x.dtype, packed)


def test_bools_are_stored_eight_to_a_byte_and_read_back_unchanged():
    """2 x 3 x 3 cells in three bytes, 9 legal actions in two, first bit first."""
    generator = np.random.default_rng(0)
    boards, legal = (generator.random((T, B, *shape)) < 0.5 for shape in ((2, 3, 3), (9,)))
    trajectory = rollout(0)._replace(
        observation=boards, legal_action_mask=legal, search_policy=np.zeros((T, B, 9), np.float32)
    )
    trajectory = jax.device_put(trajectory)
    ring = add(empty(frame_of(trajectory), T), trajectory)
    assert (ring.transitions.observation.shape, ring.transitions.legal_action_mask.shape) == ((T, B, 3), (T, B, 2))
    byte = int("".join(str(int(legal[0, 0, bit])) for bit in range(8)), 2)
    assert int(ring.transitions.legal_action_mask[0, 0, 0]) == byte
    sample = sample_at(np.zeros(B), np.arange(B))
    window = gather_of(ring, sample, observation_shape=(2, 3, 3), window_length=T, observation_length=T)
    assert window.observation.dtype == window.legal_action_mask.dtype == bool
    np.testing.assert_array_equal(window.observation, boards.swapaxes(0, 1))
    np.testing.assert_array_equal(window.legal_action_mask, legal.swapaxes(0, 1))


def test_bytes_are_read_back_unchanged_and_networks_see_them_from_0_to_1():
    pictures = np.arange(T * B * 4, dtype=np.uint8).reshape(T, B, 4) + np.uint8(100)
    trajectory = jax.device_put(rollout(0)._replace(observation=pictures))
    ring = add(empty(frame_of(trajectory), T), trajectory)
    assert ring.transitions.observation.nbytes == pictures.nbytes
    sample = sample_at(np.zeros(B), np.arange(B))
    window = gather_of(ring, sample, observation_shape=(4,), window_length=T, observation_length=T)
    assert window.observation.dtype == np.uint8
    np.testing.assert_array_equal(window.observation, pictures.swapaxes(0, 1))
    np.testing.assert_allclose(as_numbers(window.observation), pictures.swapaxes(0, 1) / 255, rtol=1e-6)


def test_only_bools_are_packed():
    floats = rollout(0)
    packed = replay.pack(floats)
    assert packed.observation is floats.observation
    assert replay.unpack(packed, (2,)).observation is floats.observation


# --- which windows may be sampled -------------------------------------------------------------------------------------


def test_start_weights_equal_those_by_brute_force_over_all_stored_windows(histories):
    """Windows with an end among the first K moves count END_WEIGHT times; those not wholly stored have weight 0.

    Windows that go on past the end of a game keep their weight, because they teach absorption.
    """
    for ring, ends in histories:
        table = np.zeros((C, B), int)
        for time in range(max(0, len(ends) - C), len(ends) - L + 1):
            table[time % C] = np.where(ends[time : time + K].any(axis=0), END_WEIGHT, 1)
        np.testing.assert_array_equal(weights_of(ring), table)
    assert {0, 1, END_WEIGHT} == set(np.unique(table))


# --- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rollouts", [2, 3, 4, 5, 8])
def test_windows_are_consecutive_frames_of_one_game_also_across_the_end_of_the_buffer(histories, rollouts):
    ring, ends = histories[rollouts - 1]
    total = len(ends)
    slot, game = np.nonzero(np.asarray(weights_of(ring)))
    padding = C * B - len(slot)  # one shape, one compilation
    sample = sample_at(*(np.pad(x, (0, padding)) for x in (slot, game)))
    window = gather(ring, sample, window_length=L, observation_length=L)
    for i in range(len(slot)):
        name = np.asarray(window.action[i])
        assert (name % 100 == game[i]).all()
        time = name // 100
        np.testing.assert_array_equal(np.diff(time), 1)
        assert time[0] % C == slot[i] and max(0, total - C) <= time[0] and time[-1] < total
        np.testing.assert_array_equal(window.observation[i], np.stack([time, name], axis=-1))
        np.testing.assert_array_equal(window.search_value[i], -name)
        np.testing.assert_array_equal(window.reward[i], name)


def test_observation_length_1_gathers_only_the_first_observation(histories):
    ring = histories[-1][0]
    sample = sample_at(np.zeros(36), np.ones(36))
    whole = gather(ring, sample, window_length=L, observation_length=L)
    first = gather(ring, sample, window_length=L, observation_length=1)
    assert first.observation.shape == (36, 1, 2)
    assert first.action.shape == (36, L)
    np.testing.assert_array_equal(first.observation, whole.observation[:, :1])


# --- samples ----------------------------------------------------------------------------------------------------------


def test_windows_are_sampled_in_proportion_to_their_weights():
    weights = np.array([[0, 1, 5], [1, 0, 0], [2, 1, 1], [0, 5, 0]], np.int32)
    shape = (40, 500)
    slot, game = sample_starts(jax.random.key(0), weights, shape)
    assert slot.shape == game.shape == shape and slot.dtype == game.dtype == jnp.int32
    counts = np.zeros(weights.shape)
    np.add.at(counts, (np.asarray(slot), np.asarray(game)), 1)
    assert (counts[weights == 0] == 0).all()
    expected = counts.sum() * weights / weights.sum()
    assert chisquare(counts[weights > 0], expected[weights > 0]).pvalue > 1e-4
    again, other = (sample_starts(jax.random.key(seed), weights, shape)[0] for seed in (0, 1))
    assert (again == slot).all() and (other != slot).any()


def test_samples_are_exact_where_float32_could_not_count(monkeypatch):
    """2^25 + 1 has no float32: a slot of weight 1 behind 2^25 tickets would never be sampled."""
    big = 2**25
    tickets = jnp.array([0, big - 1, big, big + 1, big + 2, 2 * big + 1, 2 * big + 2], jnp.int32)
    monkeypatch.setattr(jax.random, "randint", lambda key, shape, low, high, dtype: tickets.astype(dtype))
    weights = jnp.array([[big, 1], [0, 1], [big, 9]], jnp.int32)
    slot, game = replay.sample_starts(jax.random.key(0), weights, tickets.shape)
    np.testing.assert_array_equal(2 * slot + game, [0, 0, 1, 3, 4, 4, 5])


# --- what learning writes back ----------------------------------------------------------------------------------------


def test_of_several_known_values_written_to_a_frame_the_last_one_counts_and_nothing_else_changes(histories):
    """Against a loop over findings [U, M] in the order of their updates; a quarter of them are unknown."""
    ring, generator, size = histories[-1][0], np.random.default_rng(0), (5, 40)
    found = WriteBack(
        slot=generator.integers(2 * C, size=size).astype(np.int32),  # taken modulo the ring's length
        game=generator.integers(B, size=size).astype(np.int32),
        is_known=generator.random(size) < 0.75,
        values={
            "search_policy": generator.random((*size, 3)).astype(np.float32),
            "search_value": generator.normal(size=size).astype(np.float32),
        },
    )
    policy, value = (np.array(x) for x in (ring.transitions.search_policy, ring.transitions.search_value))
    for update in range(5):
        for i in range(40):
            if found.is_known[update, i]:
                where = found.slot[update, i] % C, found.game[update, i]
                policy[where], value[where] = (
                    found.values[name][update, i] for name in ("search_policy", "search_value")
                )
    wanted = ring._replace(transitions=ring.transitions._replace(search_policy=policy, search_value=value))
    jax.tree.map(np.testing.assert_array_equal, write_back(ring, (found,)), wanted)


@pytest.mark.parametrize("rollouts", [2, 3, 4, 5, 8])
def test_fresh_targets_land_in_exactly_the_frames_that_were_searched(histories, rollouts):
    """Every window that may be sampled is searched, also across the end of the buffer; new values name their frame."""
    ring, ends = histories[rollouts - 1]
    total = len(ends)
    slot, game = np.nonzero(np.asarray(weights_of(ring)))
    padding = C * B - len(slot)
    sample = sample_at(*(np.pad(x, (0, padding), mode="edge") for x in (slot, game)))
    window = gather(ring, sample, window_length=L, observation_length=L)
    values = {"search_value": 1000.0 + window.action, "search_policy": window.search_policy * 0}
    shape = window.action.shape
    place = sample.slot[:, None] + jnp.arange(L), jnp.broadcast_to(sample.game[:, None], shape)
    found = WriteBack(*place, is_known=jnp.ones(shape, bool), values=values)
    written = write_back(ring, (found,)).transitions
    for time in range(total - C, total):
        row = written.search_value[time % C]
        expected = 1000.0 + 100 * time + np.arange(B) if time >= max(0, total - C) else np.zeros(B)
        np.testing.assert_array_equal(row, expected)
        assert not np.asarray(written.search_policy[time % C]).any()


def test_writing_only_a_priority_changes_nothing_else():
    ring = empty(is_prioritised=True)
    found = WriteBack(jnp.array([5]), jnp.array([1]), jnp.array([True]), {"priority": jnp.array([0.5])})
    written = write_back(ring, (found,))
    jax.tree.map(np.testing.assert_array_equal, written.transitions, ring.transitions)
    assert float(written.priority[5, 1]) == 0.5 and np.count_nonzero(written.priority != ring.priority) == 1
