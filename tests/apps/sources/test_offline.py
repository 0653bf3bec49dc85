"""Learning from stored games alone: where the buffer comes from, what a chunk leaves alone, and how a run goes on.

The source is the tiny run after three chunks, whose buffer holds 24 of 32 frames of each game.
"""

import functools
import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps import start
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.sources import offline
from muzero_jax.apps.start import Ready
from muzero_jax.run import metrics, program
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import restore_replay
from muzero_jax.storage.config_groups import NetworkConfig, ReplayConfig, SelfPlayConfig
from muzero_jax.storage.validation import validate
from tests.reference import tiny_run
from tests.reference.programs import compiled_before
from tests.reference.tiny_run import CONFIG, assert_same, on_host
from tests.run.conftest import DRAWN

GAMES = "a1 a2 b1 b2 c1\na1 a2 b1 b2 c3 c2\n0 1 2 4 3 5 7 6 8 1/2-1/2\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of the tiny run."""
    run_dir = tmp_path_factory.mktemp("runs") / "source"
    state = tiny_run.make_init()()
    for _ in range(3):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    tiny_run.save(run_dir, state)
    return run_dir


@pytest.fixture
def games(tmp_path):
    """A file of three games, with 20 moves in all."""
    path = tmp_path / "games.txt"
    path.write_text(GAMES)
    return path


def offline_config(source, **changes):
    return offline.begin(replace(CONFIG, offline=str(source), **changes))


@functools.cache
def offline_program():
    """The tiny run's program for stored games, whose batches are all searched again."""
    algorithm = algorithms.make(offline_config("elsewhere"))
    chunk = program.make_chunk(algorithm, tiny_run.mesh(), plays=False)
    return chunk.lower(tiny_run.abstract_state(), tiny_run.PROGRESS).compile()


def frames_of(source):
    """The buffer of a run on the host."""
    return on_host(restore_replay(source / "checkpoints", tiny_run.abstract_state().replay)[1])


# --- a chunk ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chunk(source):
    """States on the host before and after a chunk, and its metrics."""
    _, state = tiny_run.restore_latest(source / "checkpoints")
    before = on_host(state)
    after, numbers = offline_program()(state, tiny_run.PROGRESS)
    return SimpleNamespace(before=before, after=on_host(after), metrics=on_host(numbers))


def test_a_chunk_plays_nothing_and_stores_nothing_but_fresh_targets(chunk):
    assert_same(chunk.before.actor, chunk.after.actor)
    before, after = chunk.before.replay, chunk.after.replay
    found = {"search_policy", "search_value"}
    for name in set(before.transitions._fields) - found:
        np.testing.assert_array_equal(getattr(before.transitions, name), getattr(after.transitions, name))
    assert (before.insert_index, before.num_stored) == (after.insert_index, after.num_stored) == (24, 24)
    for name in found:
        changed = getattr(before.transitions, name) != getattr(after.transitions, name)
        assert changed[:24].any() and not changed[24:].any()
    assert not any(name.startswith("selfplay/") for name in chunk.metrics)


def test_every_iteration_of_a_chunk_learns(chunk):
    np.testing.assert_array_equal(chunk.metrics["train/updates"], [2, 2])
    assert int(chunk.after.iteration) == int(chunk.before.iteration) + 2
    before, after = (jax.tree.leaves(state.learner.params) for state in (chunk.before, chunk.after))
    assert any((x != y).any() for x, y in zip(before, after, strict=True))


# --- what a run takes from its source ---------------------------------------------------------------------------------


def test_a_runs_buffer_decides_the_sizes_and_the_discount(source, tmp_path):
    other = replace(
        CONFIG, self_play=SelfPlayConfig(), replay=ReplayConfig(min_frames=9), network=NetworkConfig(width=32)
    )
    config = validate(offline.fit_to_source(offline.begin(replace(other, offline=str(source))), 2))
    assert (config.self_play.num_envs, config.self_play.rollout_length, config.replay.replay_length) == (8, 4, 32)
    assert config.reanalyze_fraction == 1.0 and config.network.width == 32
    configs.save(replace(CONFIG, targets=replace(CONFIG.targets, discount=0.9)), tmp_path)
    assert offline_config(tmp_path).targets.discount == 0.9


@pytest.mark.parametrize("num_devices, columns, length", [(2, 2, 20), (4, 4, 15)])
def test_games_decide_the_sizes_of_a_buffer_that_devices_can_share(games, num_devices, columns, length):
    """20 moves and windows of 7: two columns of 14 and 6 moves, and 6 frames more that start no window."""
    config = validate(offline.fit_to_source(offline_config(games), num_devices))
    assert (config.self_play.num_envs, config.self_play.rollout_length) == (columns, 1)
    assert config.replay.replay_length == length


def open_source(config):
    return offline.open_source(config, tiny_run.algorithm().environment, lambda text: None)


def test_a_buffer_that_holds_no_window_is_refused(source):
    config = replace(CONFIG, targets=replace(CONFIG.targets, td_steps=25))
    with pytest.raises(ValueError, match=r"stored 24 frames .* \+ 1 = 28 frames; lower --targets.td-steps"):
        open_source(offline.begin(replace(config, offline=str(source))))(tiny_run.abstract_state().replay)


def test_the_true_rules_search_again_only_where_the_buffer_has_their_states(source, games):
    open_source(offline_config(source, model="rules", replay=replace(CONFIG.replay, reanalyze_fraction=0.0)))
    config = offline.fit_to_source(offline_config(games, model="rules"), 2)
    abstract = program.make_init(algorithms.make(config), 0, tiny_run.mesh()).eval_shape().replay
    buffer = open_source(config)(abstract)
    boards = on_host(buffer.transitions.state.observation)
    assert boards.shape == (*buffer.transitions.action.shape, 3, 3, 2) and boards.any()


# --- the buffer -------------------------------------------------------------------------------------------------------


def test_only_the_buffer_is_read_whatever_network_the_run_had(source):
    """The new run's network is wider, and lies on one device instead of two."""
    config = replace(offline_config(source), network=NetworkConfig(width=24, num_bins=5))
    abstract = tiny_run.abstract_state().replay
    one = jax.sharding.SingleDeviceSharding(jax.devices()[1])
    moved = jax.tree.map(lambda x: x.update(sharding=one), abstract)
    buffer = open_source(config)(moved)
    assert_same(buffer, frames_of(source))
    assert all(leaf.sharding == one for leaf in jax.tree.leaves(buffer))


def test_games_lie_in_the_buffer_of_a_run_where_its_program_wants_them(games):
    config = offline.fit_to_source(offline_config(games), 2)
    abstract = program.make_init(algorithms.make(config), 0, tiny_run.mesh()).eval_shape().replay
    buffer = open_source(config)(abstract)
    jax.tree.map(lambda x, like: x.sharding.is_equivalent_to(like.sharding, x.ndim) or 1 / 0, buffer, abstract)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), buffer) == jax.tree.map(lambda x: (x.shape, x.dtype), abstract)
    first, other = on_host(buffer.transitions.action).T
    np.testing.assert_array_equal(first, [0, 3, 1, 4, 2, 0, 1, 2, 4, 3, 5, 7, 6, 8, 0, 3, 1, 4, 2, 0])
    np.testing.assert_array_equal(other[:12], [0, 3, 1, 4, 8, 5] * 2)


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def train(monkeypatch, tmp_path, source):
    """Runs `start.train` in `tmp_path/name` from a copy of the source, with programs that are compiled already."""
    monkeypatch.setattr(Arena, "play", lambda *arguments, **keywords: DRAWN)
    monkeypatch.setattr(Arena, "compile", lambda *arguments, **keywords: None)
    monkeypatch.setattr(program, "make_init", lambda *arguments: tiny_run.make_init())

    def make_chunk(algorithm, mesh, *, plays):
        assert not plays
        return compiled_before(offline_program)

    monkeypatch.setattr(program, "make_chunk", make_chunk)
    copy = shutil.copytree(source, tmp_path / "source")

    def run(name, max_iterations, resume=False):
        config = replace(offline_config(copy), max_iterations=max_iterations)
        session = replace(tiny_run.SESSION, resume=resume)
        ready = Ready(config, tmp_path / name, tiny_run.mesh(), algorithms.make(config))
        with run_directory.opened(ready.run_dir, resume=resume):
            return start.train(ready, session, lambda text: None)

    run.source = copy
    return run


def saved_state(run_dir):
    return on_host(tiny_run.restore_latest(run_dir / "checkpoints")[1])


@pytest.mark.slow
def test_a_run_that_learns_offline_goes_on_without_its_source(train, tmp_path):
    train("unbroken", 4)
    train("broken", 2)
    stored = frames_of(train.source).transitions
    shutil.rmtree(train.source)
    train("broken", 4, resume=True)
    state = saved_state(tmp_path / "broken")
    assert_same(state, saved_state(tmp_path / "unbroken"))
    assert int(state.iteration) == 4 and state.learner.num_updates == 8
    np.testing.assert_array_equal(state.replay.transitions.action, stored.action)
    assert configs.load(tmp_path / "broken").offline == str(train.source)


def test_records_and_summary_tell_of_learning_alone(train, tmp_path):
    """A run that was cut off before its first checkpoint reads its source again."""
    (tmp_path / "run").mkdir()
    configs.save(offline_config(train.source), tmp_path / "run")
    summary = train("run", 4, resume=True).summary
    assert summary["totals"] == {"updates": 8.0} and set(summary["rates"]) == {"updates"}
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary
    chunks = [record for record in metrics.read_records(tmp_path / "run") if "train/loss" in record]
    assert [record["total/updates"] for record in chunks] == [4, 8]
    assert all("train/stale_value" in record and "train/updates_per_second" in record for record in chunks)
    assert not any(name.startswith("selfplay/") or name == "total/frames" for record in chunks for name in record)
