"""The sizes that learn fastest: what stays the same while they change, and which of them is kept."""

import functools
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
    assert not autotune._is_possible(CONFIG, Sizes(64, 4, 8), devices.make_mesh(2))
    assert not autotune._is_possible(CONFIG, Sizes(7, 4, 8), devices.make_mesh(2))  # two devices share the games
    assert autotune._is_possible(CONFIG, Sizes(16, 4, 8), devices.make_mesh(2))


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


@pytest.fixture
def minutes_pass(monkeypatch):
    """Given the speed of sizes, makes every measurement take a minute; returns the list of those measured."""

    def install(speed):
        now, tried = [0.0], []

        def measure(config, mesh):
            now[0] += 60
            tried.append(autotune.sizes_of(config))
            return speed(tried[-1])

        monkeypatch.setattr(autotune.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(autotune, "_measure", measure)
        return tried

    return install


def test_a_search_that_the_time_cut_short_goes_on_the_next_time(tmp_path, minutes_pass):
    """More games help up to 16."""
    tried, lines = minutes_pass(lambda sizes: min(sizes.num_envs, 16)), []
    search = functools.partial(
        autotune.tune, CONFIG, devices.make_mesh(2), cache=tmp_path / "autotune.json", say=lines.append
    )
    assert autotune.sizes_of(search(minutes=0.5)) == autotune.sizes_of(CONFIG)
    assert "in 0.5 minutes; the next --autotune goes on" in lines[-2]
    assert autotune.sizes_of(search(minutes=1.5)).num_envs == 16
    tried.clear()
    finished = search(minutes=60.0)
    assert tried[0] == autotune.sizes_of(finished) and finished.self_play.num_envs == 16
    tried.clear()
    assert search(minutes=60.0) == finished and not tried


def test_short_searches_come_to_an_end_where_nothing_is_faster(tmp_path, minutes_pass):
    """1.5 minutes a search: where it begins and one neighbour, another one each time."""
    tried, lines = minutes_pass(lambda sizes: 1.0), []
    for _ in range(8):
        autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.5, cache=tmp_path / "cache", say=lines.append)
    neighbours = [sizes for sizes in tried if sizes != autotune.sizes_of(CONFIG)]
    assert len(neighbours) == len(set(neighbours)) > 2
    assert lines[-1].endswith(f"from {tmp_path / 'cache'}")  # at last there is nothing left to try


@pytest.mark.parametrize(
    "spoilt", ["{", "[]", "3", '{"key": {"num_envs": 8}}', '{"key": {"sizes": 3, "slower": [], "finished": 1}}']
)
def test_a_spoilt_cache_is_no_cache(tmp_path, monkeypatch, spoilt):
    monkeypatch.setattr(autotune, "_measure", lambda config, mesh: 1.0)
    cache = tmp_path / "autotune.json"
    cache.write_text(spoilt)
    tuned = autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=cache, say=lambda line: None)
    assert autotune.sizes_of(tuned) == autotune.sizes_of(CONFIG)


def test_frames_per_second_are_measured_on_the_real_program(monkeypatch):
    monkeypatch.setattr(autotune, "TIMED_SECONDS", 0.0)
    assert autotune._measure(CONFIG, devices.make_mesh(2)) > 0


def test_a_resumed_run_keeps_its_sizes():
    with pytest.raises(ValueError, match="leave it out with --resume"):
        validate(replace(CONFIG, autotune=True, resume=True))
