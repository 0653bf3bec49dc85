"""The sizes that learn fastest: what stays the same while they change, and which of them is kept."""

from dataclasses import replace

import pytest

from muzero_jax.config.fields import differing
from muzero_jax.config.session import Session
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run import autotune
from muzero_jax.run.autotune import TunedSizes
from tests.reference.tiny_run import CONFIG

OWN = autotune.sizes_of(CONFIG)


def windows_per_frame(config):
    o, s = config.optimiser, config.self_play
    return o.updates_per_iteration * o.batch_size / (s.num_envs * s.rollout_length)


@pytest.fixture
def tuned(monkeypatch):
    """Tunes with the speed of sizes as a formula; returns the config, the lines, the sizes measured."""

    def tune(speed, config=CONFIG, *, minutes=1.0):
        lines, tried = [], []

        def measure(config, mesh, session):
            tried.append(autotune.sizes_of(config))
            return float(speed(tried[-1]))

        monkeypatch.setattr(autotune, "measure", measure)
        found = autotune.tune(config, make_mesh(2), Session(autotune_minutes=minutes), lines.append)
        return found, [line.removeprefix("autotune: ") for line in lines], tried

    return tune


@pytest.mark.parametrize(
    "sizes", [OWN, TunedSizes(16, 4, 8), TunedSizes(8, 8, 8), TunedSizes(4, 4, 4), TunedSizes(8, 2, 8)]
)
def test_other_sizes_keep_the_replay_ratio_and_the_number_of_stored_frames(sizes):
    tuned = autotune.with_sizes(CONFIG, sizes)
    assert autotune.sizes_of(tuned) == sizes and (tuned == CONFIG) == (sizes == OWN)
    assert windows_per_frame(tuned) == windows_per_frame(CONFIG)
    assert tuned.replay.replay_length * sizes.num_envs == CONFIG.replay.replay_length * OWN.num_envs
    assert tuned.replay.min_frames * sizes.num_envs == CONFIG.replay.min_frames * OWN.num_envs


def test_a_buffer_holds_a_window_in_whole_rollouts_and_larger_batches_warm_up_shorter():
    """A window is 2 + 4 + 1 = 7 frames, so with rollouts of 4 a game keeps 8."""
    replay = autotune.with_sizes(CONFIG, TunedSizes(64, 4, 8)).replay
    assert (replay.replay_length, replay.min_frames) == (8, 1)
    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, warmup_updates=10))
    assert autotune.with_sizes(config, TunedSizes(16, 4, 16)).optimiser.warmup_updates == 5


def test_tuning_ends_at_the_fastest_sizes_and_tries_none_twice(tuned):
    """More games help up to 16, longer rollouts and larger batches never."""
    found, lines, tried = tuned(lambda s: min(s.num_envs, 16) * 100 / (s.rollout_length * s.batch_size))
    assert autotune.sizes_of(found) == TunedSizes(16, 1, 1) and len(tried) == len(set(tried))
    assert lines[-1] == f"the same without a search: {' '.join(differing(found, CONFIG))}"


@pytest.mark.parametrize("error", [ValueError("16 games need too much"), RuntimeError("RESOURCE_EXHAUSTED: memory")])
def test_sizes_that_fail_are_skipped_and_the_rest_is_tried(error, tuned):
    """Memory suffices for 8 games; with one update an iteration for 8 games, 4 would get half an update."""

    def speed(sizes):
        if sizes.num_envs > 8:
            raise error
        return sizes.num_envs

    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, batch_size=2, updates_per_iteration=1))
    found, lines, tried = tuned(speed, config)
    assert found == config and sum(line.startswith("skips") for line in lines) == 4 and TunedSizes(8, 8, 2) in tried


def test_when_the_time_is_up_the_fastest_so_far_is_taken(tuned, monkeypatch):
    """A minute a measurement; more games help up to 64."""
    now = [0.0]
    monkeypatch.setattr(autotune.time, "monotonic", lambda: now[0])

    def speed(sizes):
        now[0] += 60
        return min(sizes.num_envs, 64)

    found, _, tried = tuned(speed, minutes=1.5)
    assert len(tried) == 2 and found.self_play.num_envs == 16
