"""The sizes that learn fastest: what stays the same while they change, and which of them is kept."""

from dataclasses import replace

import pytest

from muzero_jax import autotune, devices
from muzero_jax.autotune import Sizes
from muzero_jax.config import validate
from tests.reference.tiny_run import CONFIG


def windows_per_frame(config):
    o, s = config.optimiser, config.self_play
    return o.updates_per_iteration * o.batch_size / (s.num_envs * s.rollout_length)


@pytest.mark.parametrize("sizes", [Sizes(16, 4, 8), Sizes(8, 8, 8), Sizes(4, 4, 4), Sizes(8, 2, 8)])
def test_other_sizes_learn_as_much_from_each_frame_and_remember_as_many(sizes):
    tuned = autotune.with_sizes(CONFIG, sizes)
    assert autotune.sizes_of(tuned) == sizes
    assert windows_per_frame(tuned) == windows_per_frame(CONFIG)
    assert tuned.replay.replay_length * sizes.num_envs == CONFIG.replay.replay_length * CONFIG.self_play.num_envs


def test_a_ring_too_short_for_a_window_is_refused_and_not_tried():
    with pytest.raises(ValueError, match="replay-length"):
        autotune.with_sizes(CONFIG, Sizes(64, 4, 8))
    assert not autotune._fits(CONFIG, Sizes(64, 4, 8), devices.make_mesh(2))
    assert not autotune._fits(CONFIG, Sizes(7, 4, 8), devices.make_mesh(2))  # two devices share the games
    assert autotune._fits(CONFIG, Sizes(16, 4, 8), devices.make_mesh(2))


def test_the_climb_ends_at_the_fastest_sizes_and_the_next_run_finds_them(tmp_path, monkeypatch):
    """Speed here is a formula: more games help up to 16, longer rollouts and larger batches never."""
    tried = []

    def measure(config, mesh):
        sizes = autotune.sizes_of(config)
        tried.append(sizes)
        return min(sizes.num_envs, 16) * 100 / (sizes.rollout_length * sizes.batch_size)

    monkeypatch.setattr(autotune, "_measure", measure)
    lines, cache = [], tmp_path / "cache" / "autotune.json"
    arguments = {"minutes": 1.0, "cache": cache, "say": lines.append}
    tuned = autotune.tune(CONFIG, devices.make_mesh(2), **arguments)
    assert autotune.sizes_of(tuned) == Sizes(16, 1, 2)
    assert len(tried) == len(set(tried)) == len(lines) - 2  # none twice; the last lines say the result
    tried.clear()
    assert autotune.tune(CONFIG, devices.make_mesh(2), **arguments) == tuned
    assert not tried
    other = replace(CONFIG, search=replace(CONFIG.search, num_simulations=5))
    autotune.tune(other, devices.make_mesh(2), **arguments)
    assert tried  # another search is another question


def test_a_spoilt_cache_is_no_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "_measure", lambda config, mesh: 1.0)
    cache = tmp_path / "autotune.json"
    cache.write_text("{")
    tuned = autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=cache, say=lambda line: None)
    assert autotune.sizes_of(tuned) == autotune.sizes_of(CONFIG)


def test_frames_per_second_are_measured_on_the_real_program(monkeypatch):
    monkeypatch.setattr(autotune, "TIMED_SECONDS", 0.0)
    assert autotune._measure(CONFIG, devices.make_mesh(2)) > 0


def test_a_resumed_run_keeps_its_sizes():
    with pytest.raises(ValueError, match="leave it out with --resume"):
        validate(replace(CONFIG, autotune=True, resume=True))
