"""The algorithms of examples/algorithms: what each changes, and that they train, and play with *their* search."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from examples.algorithms import entropy_bonus, lambda_schedule, mean_value, moves_left, no_search
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps import start
from muzero_jax.apps.check import algorithm_checks
from muzero_jax.apps.commands.command_line import EXIT_ERROR
from muzero_jax.apps.study import comparison
from muzero_jax.config import config_file
from muzero_jax.config.config import IN_PYTHON
from muzero_jax.config.groups import AlgorithmConfig
from muzero_jax.config.validation import validate
from muzero_jax.networks.contract import Abilities
from muzero_jax.networks.own_head import with_head
from muzero_jax.run.metrics import read_records
from muzero_jax.run.run import Result
from muzero_jax.types import Targets, Unrolled
from tests.reference import tiny_run
from tests.reference.models import BOARD, make_network, random_params
from tests.reference.pages import ROOT
from tests.reference.tiny_run import CONFIG
from tests.reference.training import TINY, command
from tests.reference.windows import make_window, random_window
from tests.run.conftest import draw_matches

FILES = sorted((ROOT / "examples" / "algorithms").glob("*.py"))
HEAD = replace(CONFIG, algorithm=AlgorithmConfig((moves_left.__file__,)))


def test_the_guide_shows_every_example_in_full():
    page = (ROOT / "docs" / "your-own-algorithm.md").read_text()
    assert len(FILES) == 6 and [file for file in FILES if file.read_text().strip() not in page] == []


@pytest.mark.slow
def test_check_accepts_an_algorithm_with_its_own_head():
    assert muzero_jax.check(make_algorithm(HEAD)) == []


# --- what each of them changes ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window():
    return random_window(1, 4, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)


@pytest.fixture(scope="module")
def params():
    """Random weights, because fresh heads predict the same everywhere."""
    return random_params(tiny_run.algorithm().model)


@pytest.fixture(scope="module")
def roots():
    return tiny_run.openings(4)


def changed(file, **options):
    return file.change(tiny_run.algorithm(), CONFIG, **options)


def test_the_entropy_bonus_of_a_uniform_policy_over_four_moves_is_log_4(window):
    *_, term = changed(entropy_bonus, weight=0.5).terms
    assert (term.name, term.weight) == ("entropy", 0.5)
    window = window._replace(
        observation=np.asarray(window.observation) > 0.5,
        legal_action_mask=np.broadcast_to(np.arange(9) < 4, window.legal_action_mask.shape),
        is_last=np.broadcast_to(np.arange(CONFIG.window_length) == 0, window.is_last.shape),
    )
    usual = tiny_run.algorithm()

    @jax.jit
    def loss(window):
        wanted = usual.make_targets(window, jnp.float32(0.0))
        batch = usual.make_batch(window, wanted, jnp.ones(4), jax.random.key(0), num_frames=usual.num_frames)
        return term.loss(Unrolled(None, None, None, jnp.zeros((4, 3, 9))), batch)  # type: ignore

    np.testing.assert_allclose(loss(window), -np.log(4), rtol=1e-5)  # past the end nothing counts


@pytest.mark.parametrize(("progress", "td_lambda"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)])
def test_lambda_falls_with_the_progress_of_the_run(window, progress, td_lambda):
    config = replace(CONFIG, targets=replace(CONFIG.targets, td_lambda=td_lambda))
    wanted = jax.jit(make_algorithm(config).make_targets)(window, 0.0)
    found = jax.jit(changed(lambda_schedule, first=1.0, last=0.5).make_targets)(window, progress)
    np.testing.assert_allclose(found.value, wanted.value, rtol=1e-5, atol=1e-6)


def test_the_schedule_keeps_the_other_targets_of_the_config(window):
    """Of the actions' values, which self-play without a search learns."""
    config = replace(CONFIG, model="none", search=replace(CONFIG.search, policy="none"))
    algorithm = make_algorithm(config)
    both = lambda_schedule.change(algorithm, config), algorithm
    found, usual = (jax.eval_shape(each.make_targets, window, 0.5) for each in both)
    assert found == usual and usual.by_action


def test_mean_value_returns_the_trees_root_value_as_the_search_value(params, roots):
    searches = (algorithm.search(4) for algorithm in (tiny_run.algorithm(), changed(mean_value)))
    usual, found = (jax.jit(search)(params, jax.random.key(0), roots) for search in searches)
    np.testing.assert_array_equal(found.value, usual.tree.value[0])
    np.testing.assert_array_equal(found.policy, usual.policy)
    assert (found.value != usual.value).all()


def test_without_a_search_the_policy_head_plays_and_learns_advantage_weighted_actions(params, roots, window):
    usual, alone = tiny_run.algorithm(), changed(no_search)
    found = jax.jit(alone.search(64))(params, jax.random.key(0), roots)
    output = jax.jit(usual.model.initial_inference)(params, roots[0])
    np.testing.assert_array_equal(found.action, np.argmax(output.policy_logits, axis=1))
    np.testing.assert_allclose(found.value, usual.model.to_scalar(output.value_logits), rtol=1e-5, atol=1e-6)
    targets, wanted = (jax.device_get(jax.jit(a.make_targets)(window, 0.0)) for a in (alone, usual))
    window = jax.device_get(window)
    np.testing.assert_array_equal(targets.policy.argmax(axis=-1), window.action[:, :3])
    weight = np.exp(np.clip((wanted.value - window.search_value[:, :3]) / 0.5, -3, 3))
    np.testing.assert_allclose(targets.policy_mask, wanted.policy_mask * weight, rtol=1e-4)


def test_moves_left_counts_to_the_first_end_and_is_never_positive_after_it_or_without_one():
    ends = np.array([[0, 0, 1, 0, 1], [0, 0, 0, 0, 0]], bool)
    window = make_window(np.zeros((2, 5), int), np.where(ends, 0.0, -1.0))._replace(is_last=jnp.asarray(ends))
    made = Targets(*7 * [jnp.zeros((2, 4))])
    algorithm = tiny_run.algorithm()._replace(make_targets=lambda window, progress: made)
    targets = moves_left.change(algorithm, None).make_targets(window, 0)
    left = np.asarray(targets.extras["moves_left"]) * moves_left.MOST
    np.testing.assert_allclose(np.maximum(left, 0), [[3, 2, 1, 0], [0, 0, 0, 0]], rtol=1e-6)


# --- several files ----------------------------------------------------------------------------------------------------


def with_files(*files, options=()):
    return replace(CONFIG, algorithm=AlgorithmConfig(tuple(map(str, files)), options))


def test_files_change_the_algorithm_one_after_another_and_share_options(tmp_path):
    """The second sees what the first did; each gets the options that it has a parameter for."""
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(
        "def change(algorithm, config, twice, both):\n    return algorithm._replace(min_frames=twice * both)\n"
    )
    second.write_text(
        "def change(algorithm, config, both):\n    return algorithm._replace(min_frames=algorithm.min_frames + both)\n"
    )
    options = ("twice=2", "both=7")
    assert make_algorithm(with_files(first, second, options=options)).min_frames == 21
    with pytest.raises(ValueError, match="missing"):
        make_algorithm(with_files(second, first, options=("both=7",)))
    with pytest.raises(ValueError, match="no parameter config"):
        make_algorithm(with_files(second, options=("both=7", "config=1")))
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="two files first.py"):
        validate(with_files(first, tmp_path / "other" / "first.py"))


def test_a_head_of_ones_own_reads_every_position_also_an_afterstate():
    base = make_network("mlp", BOARD, abilities=Abilities(num_codes=4, encodes_chance=True))
    model = with_head(base, BOARD, "mine", lambda key, shape: jnp.ones(shape), lambda w, x: x.reshape(len(x), -1) @ w)
    params = model.init(jax.random.key(0))
    root = model.initial_inference(params, jnp.zeros((3, *BOARD.observation_shape)))
    moved = model.recurrent_inference(params, root.embedding, jnp.zeros(3, jnp.int32))
    followed = model.follow_code(params, moved.embedding, jax.nn.one_hot(jnp.arange(3), 4))
    for output in (root, moved, followed):
        np.testing.assert_allclose(output.extras["mine"], output.embedding.reshape(3, -1).sum(axis=1), rtol=1e-5)
    seen = jnp.zeros((3, *BOARD.observation_shape))
    np.testing.assert_array_equal(
        model.encode_chance(params, seen, seen), base.encode_chance(params["model"], seen, seen)
    )


# --- from the command line to the board -------------------------------------------------------------------------------

OURS = (
    "--env tic_tac_toe --network.kind mlp --optimiser.reconstruction-weight 0 --iterations-per-chunk 1 "
    "--max-iterations 2 --minutes None --evaluation.interval-minutes 0"
).split()


MINE = """
from examples.algorithms import entropy_bonus, lambda_schedule, moves_left, no_search, step_size

def change(algorithm, config, beta=0.5):
    for each in (entropy_bonus, lambda_schedule, step_size, moves_left):
        algorithm = each.change(algorithm, config)
    return no_search.change(algorithm, config, beta)
"""


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run with all changes but `mean_value`, from a file given by a relative path; resumed once."""
    folder = tmp_path_factory.mktemp("runs") / "own"
    (folder.parent / "mine.py").write_text(MINE)
    own = "--algorithm mine.py --algorithm.options beta=0.25".split()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        draw_matches(patch)
        patch.setattr(algorithm_checks, "examine", lambda *arguments: [])  # which has tests of its own
        assert command(*TINY, *OURS, *own, "--run-dir", folder) == 0
        assert command("--resume", "--run-dir", folder, "--devices", 2, "--max-iterations", 3) == 0
    return folder


def test_a_run_keeps_its_algorithm_resumes_with_it_and_plays_with_its_search_and_head(run_dir, roots, capsys):
    assert config_file.load(run_dir).algorithm == AlgorithmConfig((str(run_dir.parent / "mine.py"),), ("beta=0.25",))
    assert (run_dir / "algorithm.py").read_text() == MINE
    last = [record for record in read_records(run_dir) if "train/loss" in record][-1]
    assert last["train/entropy_loss"] < 0 < min(last[f"train/{name}"] for name in ("step_norm", "moves_left_loss"))
    agent = muzero_jax.load(run_dir)
    state = agent.environment.init(jax.random.key(0))
    found = agent.analyse(state)
    np.testing.assert_allclose(found.policy, found.prior, atol=1e-6)
    assert found.value == pytest.approx(found.prior_value, abs=1e-6) and found.lines == ()
    assert np.abs(agent.params["head"]).max() > 0
    assert agent.network(state.observation[None]).extras["moves_left"].shape == (1,)
    ask = [agent.search_fn(8, true_rules=rules)(agent.params, jax.random.key(0), roots) for rules in (False, True)]
    jax.tree.map(np.testing.assert_array_equal, *ask)
    assert command("--resume", "--run-dir", run_dir, "--algorithm.options", "beta=1") == EXIT_ERROR
    assert "made with --algorithm.options" in capsys.readouterr().err


def test_a_run_of_an_algorithm_given_in_python_needs_it_again_to_load(tmp_path, monkeypatch):
    """The library uses the record itself, and never the configured algorithm instead."""
    given = []
    stopped = Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda ready, *_: given.append((ready.config, ready.algorithm)) or stopped)
    algorithm = tiny_run.algorithm()._replace(choose=changed(no_search).choose)
    muzero_jax.train(CONFIG, tmp_path / "run", algorithm=algorithm, say=lambda line: None)
    (config, record), *_ = given
    assert record is algorithm and config.algorithm.files == IN_PYTHON
    run = tmp_path / "saved"
    tiny_run.save(run, tiny_run.make_init()())
    config_file.save(config, run)
    with pytest.raises(ValueError, match="its algorithm was given by a program"):
        muzero_jax.load(run)
    assert muzero_jax.load(run, algorithm=algorithm).make_search is algorithm.make_search


def test_runs_of_different_algorithms_are_different_groups(tmp_path):
    """Grouped by the text of the saved file, or by folder if a program gave the algorithm."""
    texts = {"a-seed0": "1", "a-seed1": "1", "b-seed0": "2", "x-seed0": None, "y-seed0": None}
    for seed, (name, text) in enumerate(texts.items()):
        (tmp_path / name).mkdir()
        files = IN_PYTHON if text is None else ("mine.py",)
        config_file.save(replace(CONFIG, algorithm=AlgorithmConfig(files=files), seed=seed), tmp_path / name)
        if text is not None:
            (tmp_path / name / "algorithm.py").write_text(text)
    groups = comparison.group_names([tmp_path / name for name in texts])
    assert len(set(groups.values())) == 4 and groups[tmp_path / "a-seed0"] == groups[tmp_path / "a-seed1"]
