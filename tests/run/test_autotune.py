"""The sizes that learn fastest: what stays the same while they change, and which of them is kept."""

import functools
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import tyro

from experiments import presets
from muzero_jax.arithmetic import devices
from muzero_jax.run import autotune
from muzero_jax.run.autotune import Kept, Sizes
from muzero_jax.storage.config import Config
from tests.reference.tiny_run import CONFIG

FRAMES = autotune.ring_frames(CONFIG)
PRESETS = [presets.tic_tac_toe(), presets.hex_any(6), presets.connect_four(), presets.go_9x9()]


def windows_per_frame(config):
    o, s = config.optimiser, config.self_play
    return o.updates_per_iteration * o.batch_size / (s.num_envs * s.rollout_length)


def fits(most_games, error: type[Exception] = ValueError, says="{} games need too much"):
    """A measurement in which more games are faster, up to `most_games`, and more raise an error."""

    def measure(config, mesh):
        games = config.self_play.num_envs
        if games > most_games:
            raise error(says.format(games))
        return float(games)

    return measure


@pytest.mark.parametrize("sizes", [Sizes(16, 4, 8), Sizes(8, 8, 8), Sizes(4, 4, 4), Sizes(8, 2, 8)])
def test_other_sizes_learn_as_much_from_each_frame_and_remember_as_many(sizes):
    tuned = autotune.with_sizes(CONFIG, sizes, FRAMES)
    assert autotune.sizes_of(tuned) == sizes
    assert windows_per_frame(tuned) == windows_per_frame(CONFIG)
    assert autotune.ring_frames(tuned) == FRAMES == 256
    assert tuned.replay.min_frames * sizes.num_envs == CONFIG.replay.min_frames * CONFIG.self_play.num_envs


@pytest.mark.parametrize("config", [CONFIG, *PRESETS], ids=lambda c: f"{c.env}{c.board_size or ''}")
def test_the_sizes_of_a_config_are_that_config(config):
    assert autotune.with_sizes(config, autotune.sizes_of(config), autotune.ring_frames(config)) == config


def test_a_ring_too_short_for_so_many_games_grows_until_every_frame_begins_a_window():
    """A window is 2 + 4 + 1 = 7 frames, so after 4 new ones 4 begin one in a ring of 10, and 12 is whole rollouts."""
    ring = autotune.with_sizes(CONFIG, Sizes(64, 4, 8), FRAMES).replay
    assert (ring.replay_length, ring.min_frames) == (12, 1)


def test_long_rollouts_make_no_ring_longer_than_a_game_has_in_the_config():
    assert autotune.with_sizes(CONFIG, Sizes(64, 32, 8), FRAMES).replay.replay_length == 32
    with pytest.raises(ValueError, match="rollouts of 64 are longer than the 32 frames"):
        autotune.with_sizes(CONFIG, Sizes(8, 64, 8), FRAMES)


@pytest.mark.parametrize("config", PRESETS, ids=lambda c: f"{c.env}{c.board_size or ''}")
def test_the_climb_reaches_the_thousands_of_games_that_an_accelerator_wants(config, tmp_path, monkeypatch):
    """Twice the games are twice as fast up to 16,384, and nothing else matters."""
    monkeypatch.setattr(autotune, "_measure", lambda config, mesh: float(min(config.self_play.num_envs, 16_384)))
    tuned = autotune.tune(config, devices.make_mesh(2), minutes=1.0, cache=tmp_path / "cache", say=lambda line: None)
    assert tuned.self_play.num_envs == 16_384
    assert tuned.replay.replay_length >= tuned.window_length
    assert windows_per_frame(tuned) == windows_per_frame(config)


def test_what_cannot_be_is_skipped_with_the_reason_and_the_rest_is_tried(tmp_path, monkeypatch):
    """Memory is for 8 games and two devices share the batch; at one update an iteration, 4 games would get half."""
    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, batch_size=2, updates_per_iteration=1))
    monkeypatch.setattr(autotune, "_measure", fits(8))
    lines = []
    tuned = autotune.tune(config, devices.make_mesh(2), minutes=1.0, cache=tmp_path / "cache", say=lines.append)
    assert tuned == config
    assert [line.removeprefix("autotune: ") for line in lines[:-2]] == [
        "8 games, rollouts of 4, batches of 2: 8 frames/s, to begin with",
        "skips 16 games, rollouts of 4, batches of 2: 16 games need too much",
        f"skips 4 games, rollouts of 4, batches of 2: {no_updates(0.5)}",
        "8 games, rollouts of 8, batches of 2: 8 frames/s, 1.00x the best so far",
        f"skips 8 games, rollouts of 2, batches of 2: {no_updates(0.5)}",
        f"skips 8 games, rollouts of 4, batches of 4: {no_updates(0.5)}",
        "skips 8 games, rollouts of 4, batches of 1: batch size 1 isn't divisible by 2 devices; use "
        "--optimiser.batch-size 2",
    ]


def no_updates(count):
    return f"the replay ratio would need {count} updates an iteration; choose sizes that divide"


@pytest.mark.parametrize(
    ("error", "says", "reason"),
    [
        (ValueError, "{} games need too much", "8 games need too much"),
        (RuntimeError, "RESOURCE_EXHAUSTED: out of memory", "the device's memory is full"),
    ],
)
def test_a_start_that_does_not_fit_is_halved_until_it_does(error, says, reason, tmp_path, monkeypatch):
    """Half of all, the ring as well: nothing else might help. It is not kept: more may fit another day."""
    monkeypatch.setattr(autotune, "_measure", fits(4, error, says))
    lines, cache = [], tmp_path / "cache"
    tune = functools.partial(autotune.tune, CONFIG, devices.make_mesh(2), minutes=1.0, cache=cache, say=lines.append)
    tuned = tune()
    assert autotune.sizes_of(tuned) == Sizes(4, 4, 4)
    assert tuned.replay == CONFIG.replay  # of each game
    words = "8 games, rollouts of 4, batches of 8"
    assert lines[0] == f"autotune: begins with less, because {words} do not fit: {reason}"
    assert not cache.exists()
    assert tune() == tuned


def test_a_start_of_which_no_half_fits_is_refused_with_its_own_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "_measure", fits(0))
    with pytest.raises(ValueError, match="batches of 8 nor halves of that fit: 8 games need too much"):
        autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=tmp_path / "cache", say=lambda line: None)


def test_an_error_that_is_not_about_memory_is_not_taken_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "_measure", fits(4, RuntimeError, "INTERNAL: something else"))
    with pytest.raises(RuntimeError, match="something else"):
        autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=tmp_path / "cache", say=lambda line: None)


def test_what_a_run_had_allocated_is_free_before_the_next_size_is_tried(monkeypatch):
    """An exception that is kept keeps its frames, and these what they hold."""
    held = []

    def measure(config, mesh):
        assert not any(reference() for reference in held)
        state = {1, 2}
        held.append(weakref.ref(state))
        raise ValueError("too much")

    monkeypatch.setattr(autotune, "_measure", measure)
    with pytest.raises(ValueError, match="nor halves"):
        autotune._begin(CONFIG, Kept(autotune.sizes_of(CONFIG), FRAMES), devices.make_mesh(1), lambda line: None)
    assert len(held) == 4  # 8, 4, 2 and 1 games


@pytest.mark.parametrize("most_games", [4, 64])
def test_the_flags_told_at_the_end_make_the_same_run_without_autotune(most_games, tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "_measure", fits(most_games))
    lines = []
    tuned = autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=tmp_path / "cache", say=lines.append)
    told = lines[-1].removeprefix("autotune: the same without a search: ").split()
    assert tuned != CONFIG
    assert tyro.cli(Config, default=CONFIG, args=told) == tuned


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
    measured = [line for line in lines if "frames/s" in line]
    assert len(tried) == len(set(tried)) == len(measured)  # none twice
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
            return float(speed(tried[-1]))

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
    assert any("is the fastest found in 0.5 minutes" in line for line in lines)
    assert any("where the next --autotune goes on" in line for line in lines)
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
    assert lines[-1].endswith(
        f"from {tmp_path / 'cache'}; delete that to search again"
    )  # at last there is nothing left to try


@pytest.mark.parametrize(
    "spoilt", ["{", "[]", "3", '{"key": {"num_envs": 8}}', '{"key": {"sizes": 3, "slower": [], "finished": 1}}']
)
def test_a_spoilt_cache_is_no_cache(tmp_path, monkeypatch, spoilt):
    monkeypatch.setattr(autotune, "_measure", lambda config, mesh: 1.0)
    cache = tmp_path / "autotune.json"
    cache.write_text(spoilt)
    tuned = autotune.tune(CONFIG, devices.make_mesh(2), minutes=1.0, cache=cache, say=lambda line: None)
    assert autotune.sizes_of(tuned) == autotune.sizes_of(CONFIG)


def test_a_rate_is_of_chunks_as_the_run_makes_them_after_one_that_learns(monkeypatch):
    """Tiny: 8 games, rollouts of 4, two iterations a chunk; the clock goes on by a second a chunk, eight in all."""
    calls = []
    run = SimpleNamespace(init=lambda: 0, program=lambda state: (state + 1, calls.append(state)))
    asked = []
    monkeypatch.setattr(autotune, "assemble", lambda config, mesh, say: asked.append(config) or run)
    monkeypatch.setattr(autotune.time, "perf_counter", lambda: float(len(calls)))
    monkeypatch.setattr(autotune, "TIMED_SECONDS", 7.5)
    warm_up = -(-(CONFIG.iterations_to_learn + 1) // 2)
    assert autotune._measure(CONFIG, devices.make_mesh(2)) == 8 * 4 * 2  # frames a chunk, one chunk a second
    assert asked == [CONFIG] and CONFIG.iterations_per_chunk == 2
    assert len(calls) == warm_up + 8 and 2 * warm_up > CONFIG.iterations_to_learn


def test_what_is_kept_is_of_one_length_of_chunks():
    mesh = devices.make_mesh(2)
    longer = replace(CONFIG, iterations_per_chunk=3)
    assert autotune._key(CONFIG, mesh) == autotune._key(replace(CONFIG, minutes=5.0), mesh)
    assert autotune._key(CONFIG, mesh) != autotune._key(longer, mesh)


def test_frames_per_second_are_measured_on_the_real_program(monkeypatch):
    monkeypatch.setattr(autotune, "TIMED_SECONDS", 0.0)
    assert autotune._measure(CONFIG, devices.make_mesh(2)) > 0
