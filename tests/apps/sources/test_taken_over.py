"""What a run takes from elsewhere: stored games as its only data, and the weights that it begins with."""

import functools
import shutil
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps import start
from muzero_jax.apps.sources import offline, warm_start
from muzero_jax.config import config_file
from muzero_jax.config.groups import NetworkConfig, OptimiserConfig, ReplayConfig, SelfPlayConfig
from muzero_jax.config.validation import validate
from muzero_jax.run import metrics, program, run
from muzero_jax.storage import agent_file
from muzero_jax.storage.checkpoint import restore_replay, save_params
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same, on_host
from tests.run.conftest import saved_state

# --- games: `--offline` -----------------------------------------------------------------------------------------------

GAMES = "a1 a2 b1 b2 c1\na1 a2 b1 b2 c3 c2\n0 1 2 4 3 5 7 6 8 1/2-1/2\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of the tiny run after three chunks: its buffer holds 24 of 32 frames of each game."""
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
    algorithm = make_algorithm(offline_config("elsewhere"))
    chunk = program.make_chunk(algorithm, tiny_run.mesh(), plays=False)
    return chunk.lower(tiny_run.abstract_state(), tiny_run.PROGRESS).compile()


def test_an_offline_chunk_plays_no_games_and_changes_only_search_targets(source):
    _, state = tiny_run.restore_latest(source / "checkpoints")
    first = on_host(state)
    after, numbers = offline_program()(state, tiny_run.PROGRESS)
    last = on_host(after)
    assert_same(first.actor, last.actor)
    assert (first.replay.insert_index, first.replay.num_stored) == (last.replay.insert_index, last.replay.num_stored)
    for name in first.replay.transitions._fields:
        before, found = getattr(first.replay.transitions, name), getattr(last.replay.transitions, name)
        if name in ("search_policy", "search_value"):
            assert (before != found)[:24].any() and not (before != found)[24:].any(), "24 frames are stored"
        else:
            np.testing.assert_array_equal(before, found)
    assert not any(name.startswith("selfplay/") for name in numbers)


# --- what a run takes from its source ---------------------------------------------------------------------------------


def test_a_source_run_gives_the_sizes_and_the_discount(tmp_path):
    config_file.save(replace(CONFIG, targets=replace(CONFIG.targets, discount=0.9)), tmp_path)
    other = replace(CONFIG, self_play=SelfPlayConfig(), replay=ReplayConfig(min_frames=9), offline=str(tmp_path))
    config = offline.fit_to_source(offline.begin(other), 2)
    assert (config.self_play.num_envs, config.self_play.rollout_length, config.targets.discount) == (8, 4, 0.9)
    assert (config.replay.replay_length, config.replay.min_frames) == (32, 0)


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


def test_the_ground_truth_model_learns_from_a_run_without_states_and_from_games_with_them(source, games):
    open_source(offline_config(source, model="rules", replay=replace(CONFIG.replay, reanalyze_fraction=0.0)))
    config = offline.fit_to_source(offline_config(games, model="rules"), 2)
    abstract = program.make_init(make_algorithm(config), 0, tiny_run.mesh()).eval_shape().replay
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
    assert_same(buffer, restore_replay(source / "checkpoints", abstract)[1])
    assert all(leaf.sharding == one for leaf in jax.tree.leaves(buffer))


def test_stored_games_form_a_buffer_of_the_programs_shapes_and_sharding(games):
    config = offline.fit_to_source(offline_config(games), 2)
    abstract = program.make_init(make_algorithm(config), 0, tiny_run.mesh()).eval_shape().replay
    buffer = open_source(config)(abstract)
    jax.tree.map(lambda x, like: x.sharding.is_equivalent_to(like.sharding, x.ndim) or 1 / 0, buffer, abstract)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), buffer) == jax.tree.map(lambda x: (x.shape, x.dtype), abstract)
    first, other = on_host(buffer.transitions.action).T
    np.testing.assert_array_equal(first, [0, 3, 1, 4, 2, 0, 1, 2, 4, 3, 5, 7, 6, 8, 0, 3, 1, 4, 2, 0])
    np.testing.assert_array_equal(other[:12], [0, 3, 1, 4, 8, 5] * 2)


def test_stored_games_begin_with_equal_priorities(games):
    config = offline_config(games, replay=replace(CONFIG.replay, priority_exponent=1.0))
    config = offline.fit_to_source(config, 2)
    abstract = program.make_init(make_algorithm(config), 0, tiny_run.mesh()).eval_shape().replay
    assert (np.asarray(open_source(config)(abstract).priority) == 1).all()


def test_an_offline_run_resumes_bit_for_bit_without_its_source_and_records_only_learning(session, source, tmp_path):
    stored = restore_replay(source / "checkpoints", tiny_run.abstract_state().replay)[1]
    unbroken = tiny_run.make_init()()._replace(replay=stored)
    for _ in range(2):
        unbroken, _ = offline_program()(unbroken, tiny_run.PROGRESS)
    copy = str(shutil.copytree(source, tmp_path / "source"))
    session(offline_program(), offline=copy, max_iterations=2)
    shutil.rmtree(copy)
    summary = session(offline_program(), offline=copy, max_iterations=4, resume=True).summary
    assert_same(saved_state(session.directory)[1], unbroken)
    assert not session.plays and summary["totals"] == {"updates": 8.0} and set(summary["rates"]) == {"updates"}
    chunks = [record for record in metrics.read_records(session.directory) if "train/loss" in record]
    assert [record["total/updates"] for record in chunks] == [4, 8]
    assert all("train/stale_value" in record and "train/updates_per_second" in record for record in chunks)
    assert not any(name.startswith("selfplay/") or name == "total/frames" for record in chunks for name in record)


# --- weights: `--init-from` -------------------------------------------------------------------------------------------


def weights(number, config=CONFIG):
    """Weights for the network of a config, all of them like one number but each another."""
    model = make_algorithm(config).model
    leaves, structure = jax.tree.flatten(jax.eval_shape(model.init, jax.random.key(0)))
    return structure.unflatten([np.full(leaf.shape, number + k / 64, leaf.dtype) for k, leaf in enumerate(leaves)])


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """The folder of a run: its newest checkpoint has the weights 1, a version has 2, and an agent beside it 3."""
    run_dir = tmp_path_factory.mktemp("runs") / "source"
    state = tiny_run.make_init()()
    tiny_run.save(run_dir, state._replace(learner=state.learner._replace(params=weights(1))))
    save_params(run_dir / "versions", 4, weights(2))
    agent_file.save(run_dir.parent / "mine.safetensors", CONFIG, weights(3), iteration=5)
    return run_dir


def open_weights(name, config=CONFIG):
    config = replace(config, init_from=str(name))
    return warm_start.open_source(config, make_algorithm(config).model, lambda text: None, given=None)


@pytest.mark.parametrize("name, number", [("RUN", 1), ("RUN/versions/4", 2), ("agent:RUN/../mine.safetensors", 3)])
def test_a_run_a_version_and_an_agent_give_their_weights(first_run, name, number):
    source = name.replace("RUN", str(first_run))
    assert_same(open_weights(source), weights(number))
    preset = NetworkConfig(kind="tower", compute_dtype="bfloat16")
    assert warm_start.network_of(source, preset) == replace(CONFIG.network, compute_dtype="bfloat16")


def test_a_missing_source_or_one_with_its_own_network_file_keeps_the_presets_network(tmp_path):
    (tmp_path / "run").mkdir()
    config_file.save(changed(file="net.py"), tmp_path / "run")
    preset = NetworkConfig(kind="tower")
    for name in ("run", "none"):
        assert warm_start.network_of(str(tmp_path / name), preset) == preset


def test_a_run_begins_with_only_its_sources_weights_and_resumes_bit_for_bit_without_it(session, first_run, tmp_path):
    unbroken = tiny_run.make_init()()
    placed = jax.tree.map(lambda x, like: jax.device_put(x, like.sharding), weights(1), unbroken.learner.params)
    unbroken = unbroken._replace(learner=unbroken.learner._replace(params=placed))
    for _ in range(4):
        unbroken, _ = tiny_run.program()(unbroken, tiny_run.PROGRESS)
    copy = str(shutil.copytree(first_run, tmp_path / "source"))
    session(init_from=copy, max_iterations=4)
    shutil.rmtree(copy)
    session(init_from=copy, max_iterations=8, resume=True)
    assert_same(saved_state(session.directory)[1], unbroken)
    assert config_file.load(session.directory).init_from == copy


def test_a_target_network_begins_as_a_copy_of_the_weights_in_its_own_memory(first_run):
    reanalyzes, target = ReplayConfig(replay_length=32, reanalyze_fraction=0.5), OptimiserConfig(target_period=10)
    config = replace(CONFIG, replay=reanalyzes, optimiser=replace(target, batch_size=8))
    init = program.make_init(make_algorithm(config), 0, tiny_run.mesh())
    abstract = init.eval_shape()
    state = start._first_state(init, abstract, None, open_weights(first_run, config))
    assert_same(state.learner.params, weights(1))
    assert_same(state.learner.target_params, weights(1))
    jax.tree.map(lambda x, like: x.sharding == like.sharding or 1 / 0, state.learner, abstract.learner)
    jax.jit(partial(jax.tree.map, jnp.negative), donate_argnums=0)(state.learner)  # no buffer is shared by both


# --- what does not fit ------------------------------------------------------------------------------------------------

HEX = replace(CONFIG, env="hex", board_size=3)


def changed(**fields):
    return replace(CONFIG, network=replace(CONFIG.network, **fields))


CANONICAL = replace(HEX, network=replace(CONFIG.network, kind="observation", canonical=True))


@pytest.mark.parametrize(
    "made_with, config, says",
    [
        (CONFIG, changed(width=24), r"float32\[\S*16\S*\] \(this one needs float32\[\S*24\S*\]\); they fit"),
        (replace(HEX, board_size=2), HEX, "do not fit .*fully_convolutional"),
        # Weights of another meaning, though they would fit.
        (CONFIG, changed(activation="gelu"), "its network.activation was relu, not gelu; they fit"),
        (CONFIG, changed(support_range=100.0), "its network.support-range was 1.0, not 100.0; they fit"),
        (CONFIG, changed(squash=True), "its network.squash was False, not True; they fit"),
        (
            CANONICAL,
            replace(CANONICAL, network=replace(CANONICAL.network, canonical=False)),
            "network.canonical was True",
        ),
        (changed(num_bins=1), changed(num_bins=1, squash=True), "its network.squash was False, not True; they fit"),
    ],
)
def test_weights_that_do_not_fit_give_a_one_line_error(tmp_path, made_with, config, says):
    agent_file.save(tmp_path / "other.safetensors", made_with, weights(0, made_with), iteration=1)
    with pytest.raises(ValueError, match=f"weights of .*other.safetensors .*{says}") as e:
        open_weights(f"agent:{tmp_path}/other.safetensors", config)
    assert "\n" not in str(e.value)


def test_weights_are_compared_before_anything_is_compiled_or_deleted(session, first_run, monkeypatch):
    session(max_iterations=4)
    monkeypatch.setattr(run, "compile_agent", lambda *arguments, **options: pytest.fail("too late"))
    with pytest.raises(ValueError, match="do not fit this run's network"):
        session(init_from=str(first_run), network=replace(CONFIG.network, width=24), overwrite=True)
    assert (session.directory / "checkpoints" / "4").exists()
