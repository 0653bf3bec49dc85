"""The sizes that learn fastest: what stays the same while they change, and which of them is kept."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from muzero_jax import presets
from muzero_jax.ops import devices
from muzero_jax.run import autotune
from muzero_jax.run.autotune import Sizes
from muzero_jax.storage.fields import differing
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG

PRESETS = [presets.tic_tac_toe(), presets.hex_any(6), presets.connect_four(), presets.go_9x9()]
OWN = autotune.sizes_of(CONFIG)


def windows_per_frame(config):
    o, s = config.optimiser, config.self_play
    return o.updates_per_iteration * o.batch_size / (s.num_envs * s.rollout_length)


@pytest.fixture
def tuned(monkeypatch):
    """Tunes on two devices with the speed of sizes as a formula; returns the config, the lines, the sizes measured."""

    def tune(speed, config=CONFIG, *, minutes=1.0):
        lines, tried = [], []

        def measure(config, mesh):
            tried.append(autotune.sizes_of(config))
            return float(speed(tried[-1]))

        monkeypatch.setattr(autotune, "measure", measure)
        found = autotune.tune(config, devices.make_mesh(2), minutes=minutes, say=lines.append)
        return found, [line.removeprefix("autotune: ") for line in lines], tried

    return tune


# --- other sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [Sizes(16, 4, 8), Sizes(8, 8, 8), Sizes(4, 4, 4), Sizes(8, 2, 8)])
def test_other_sizes_learn_as_much_from_each_frame_and_remember_as_many(sizes):
    tuned = autotune.with_sizes(CONFIG, sizes)
    assert autotune.sizes_of(tuned) == sizes
    assert windows_per_frame(tuned) == windows_per_frame(CONFIG)
    assert tuned.replay.replay_length * sizes.num_envs == CONFIG.replay.replay_length * OWN.num_envs
    assert tuned.replay.min_frames * sizes.num_envs == CONFIG.replay.min_frames * OWN.num_envs


@pytest.mark.parametrize("config", [CONFIG, *PRESETS], ids=lambda c: f"{c.env}{c.board_size or ''}")
def test_the_sizes_of_a_config_are_that_config(config):
    assert autotune.with_sizes(config, autotune.sizes_of(config)) == config


def test_a_buffer_holds_at_least_a_window_and_whole_rollouts():
    """A window is 2 + 4 + 1 = 7 frames, so with rollouts of 4 a game keeps 8."""
    replay = autotune.with_sizes(CONFIG, Sizes(64, 4, 8)).replay
    assert (replay.replay_length, replay.min_frames) == (8, 1)


def test_larger_batches_make_the_learning_rates_warm_up_shorter():
    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, warmup_updates=10))
    assert autotune.with_sizes(config, Sizes(16, 4, 16)).optimiser.warmup_updates == 5


# --- the climb --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", PRESETS, ids=lambda c: f"{c.env}{c.board_size or ''}")
def test_the_climb_reaches_the_thousands_of_games_that_an_accelerator_wants(config, tuned):
    """Twice the games are twice as fast up to 16,384, and nothing else matters."""
    found, _, _ = tuned(lambda sizes: min(sizes.num_envs, 16_384), config)
    assert found.self_play.num_envs == 16_384
    assert found.replay.replay_length >= found.window_length
    assert windows_per_frame(found) == windows_per_frame(config)


def test_the_climb_ends_at_the_fastest_sizes_tries_none_twice(tuned):
    """More games help up to 16, longer rollouts and larger batches never."""

    def speed(sizes):
        return min(sizes.num_envs, 16) * 100 / (sizes.rollout_length * sizes.batch_size)

    found, lines, tried = tuned(speed)
    assert autotune.sizes_of(found) == Sizes(16, 1, 1)
    assert len(tried) == len(set(tried)) == sum("frames/s" in line for line in lines)


def test_what_cannot_be_is_skipped_and_the_rest_is_tried(tuned):
    """Memory is for 8 games; at one update an iteration, 4 games would get half."""

    def speed(sizes):
        if sizes.num_envs > 8:
            raise ValueError("16 games need too much")
        return sizes.num_envs

    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, batch_size=2, updates_per_iteration=1))
    found, lines, tried = tuned(speed, config)
    assert found == config
    assert sum(line.startswith("skips") for line in lines) == 4 and Sizes(8, 8, 2) in tried


def test_a_start_that_does_not_fit_is_refused_with_its_own_reason(tuned):
    def speed(sizes):
        raise ValueError(f"{sizes.num_envs} games need too much")

    with pytest.raises(ValueError, match="^8 games need too much$"):
        tuned(speed)


def test_a_full_memory_is_a_reason_to_skip_and_another_failure_is_raised(tuned):
    def fails(says):
        def speed(sizes):
            if sizes.num_envs > OWN.num_envs:
                raise RuntimeError(says)
            return 1.0

        return speed

    with pytest.raises(RuntimeError, match="something else"):
        tuned(fails("INTERNAL: something else"))
    assert tuned(fails("RESOURCE_EXHAUSTED: out of memory"))[0] == CONFIG


def test_when_the_time_is_up_the_fastest_so_far_is_taken(tuned, monkeypatch):
    """A minute a measurement; more games help up to 64."""
    now = [0.0]
    monkeypatch.setattr(autotune.time, "monotonic", lambda: now[0])

    def speed(sizes):
        now[0] += 60
        return min(sizes.num_envs, 64)

    found, _, tried = tuned(speed, minutes=1.5)
    assert len(tried) == 2 and found.self_play.num_envs == 16


def test_the_flags_told_at_the_end_make_the_same_sizes(tuned):
    found, lines, _ = tuned(lambda sizes: min(sizes.num_envs, 64))
    assert lines[-1] == f"the same without a search: {' '.join(differing(found, CONFIG))}"
    assert "--self-play.num-envs 64" in lines[-1]


@pytest.mark.slow
def test_a_rate_is_of_the_real_programs_chunks_after_one_that_learns(monkeypatch):
    """Tiny: 8 games, rollouts of 4, two iterations a chunk; the clock goes on by a second a chunk, eight in all."""
    iterations = []

    def chunk(state, progress):
        state, metrics = tiny_run.program()(state, progress)
        iterations.append(int(state.iteration))
        return state, metrics

    run = SimpleNamespace(init=tiny_run.make_init(), program=SimpleNamespace(advance=chunk))
    monkeypatch.setattr(autotune, "compile_agent", lambda *arguments: run)
    monkeypatch.setattr(autotune.time, "perf_counter", lambda: float(len(iterations)))
    monkeypatch.setattr(autotune, "TIMED_SECONDS", 7.5)
    assert autotune.measure(CONFIG, tiny_run.mesh()) == 8 * 4 * 2  # frames a chunk, one chunk a second
    warm_up = len(iterations) - 8
    assert iterations[warm_up - 1] > CONFIG.iterations_to_learn >= 2 * (warm_up - 1)
