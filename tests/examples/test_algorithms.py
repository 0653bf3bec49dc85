"""The algorithms of examples/algorithms: found right by the checker, trained, and played with *their* search."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from muzero_jax import algorithm as algorithms
from muzero_jax.apps import start
from muzero_jax.apps.check import algorithm as checks
from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.apps.study import comparison
from muzero_jax.ops import devices
from muzero_jax.run.metrics import read_records
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from muzero_jax.storage.config_groups import AlgorithmConfig
from muzero_jax.storage.validation import check_resumable
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG
from tests.reference.training import command, quiet
from tests.reference.windows import random_window

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(
    set((ROOT / "examples" / "algorithms").glob("*.py")) - {ROOT / "examples" / "algorithms" / "moves_left.py"}
)
NAMES = ["entropy_bonus", "lambda_schedule", "mean_value", "no_search", "step_size"]
NO_SEARCH = ROOT / "examples" / "algorithms" / "no_search.py"


def with_file(file, *options):
    return replace(CONFIG, algorithm=AlgorithmConfig(str(file), options))


def test_there_are_five_of_at_most_25_lines_beside_the_one_with_a_head():
    assert [file.stem for file in FILES] == NAMES
    assert max(len(file.read_text().splitlines()) for file in FILES) <= 25


def test_the_page_shows_them_whole():
    page = (ROOT / "docs" / "your-own-algorithm.md").read_text()
    files = sorted((ROOT / "examples" / "algorithms").glob("*.py"))
    assert len(files) == 6 and [file.name for file in files if file.read_text().strip() not in page] == []


# `no_search` is trained below, by the command.
@pytest.fixture(scope="module", params=[file for file in FILES if file != NO_SEARCH], ids=lambda file: file.stem)
def trained(request):
    """(name, state, metrics) of four iterations on one device, of which the last one learns."""
    config = with_file(request.param)
    algorithm = algorithms.make(replace(config, self_play=replace(CONFIG.self_play, num_envs=4)))
    mesh = devices.make_mesh(1)
    state, metrics = make_chunk(algorithm, mesh)(make_init(algorithm, 0, mesh)(), np.zeros(4, np.float32))
    return request.param.stem, jax.device_get(state.learner), jax.device_get(metrics)


def test_it_trains(trained):
    name, learner, metrics = trained
    assert learner.num_updates > 0 and np.isfinite(metrics["train/loss"][-1])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner.params))
    added = {"entropy_bonus": "train/entropy_loss", "step_size": "train/step_norm"}
    assert name not in added or metrics[added[name]][-1] != 0


# --- what each of them says -------------------------------------------------------------------------------------------


def made(name, *options):
    return algorithms.make(with_file(ROOT / "examples" / "algorithms" / f"{name}.py", *options))


def test_the_entropy_of_an_undecided_policy_over_four_moves_is_log_4():
    *_, term = made("entropy_bonus", "weight=0.5").terms
    assert (term.name, term.weight) == ("entropy", 0.5)
    window = random_window(0, 2, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)
    legal = jnp.arange(9) < 4
    window = window._replace(
        observation=window.observation > 0.5,
        legal_action_mask=jnp.broadcast_to(legal, window.legal_action_mask.shape),
        is_last=jnp.zeros_like(window.is_last).at[:, 0].set(True),
    )
    usual = tiny_run.algorithm()
    wanted = usual.make_targets(window, jnp.float32(0.0))
    batch = usual.make_batch(window, wanted, jnp.ones(2), jax.random.key(0), terms=usual.terms)
    undecided = muzero_jax.types.Unrolled(None, None, None, jnp.zeros((2, 3, 9)))  # type: ignore
    np.testing.assert_allclose(term.loss(undecided, batch), -np.log(4), rtol=1e-5)  # past the end nothing counts


def test_lambda_falls_with_the_progress_of_the_run():
    window = random_window(0, 4, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)
    scheduled = made("lambda_schedule", "first=1.0", "last=0.5").make_targets
    for progress, td_lambda in ((0.0, 1.0), (0.5, 0.75), (1.0, 0.5)):
        config = replace(CONFIG, targets=replace(CONFIG.targets, td_lambda=td_lambda))
        usual = algorithms.make(config).make_targets
        found, wanted = scheduled(window, jnp.float32(progress)), usual(window, jnp.float32(0.0))
        np.testing.assert_allclose(found.value, wanted.value, rtol=1e-5, atol=1e-6)


def positions(num_games=4):
    environment = tiny_run.algorithm().environment
    return environment.roots(jax.vmap(environment.init)(jax.random.split(jax.random.key(0), num_games)))


def noisy_params():
    """A network with opinions."""
    generator, shapes = np.random.default_rng(0), jax.eval_shape(tiny_run.algorithm().model.init, jax.random.key(0))
    return jax.tree.map(lambda x: jnp.asarray(generator.normal(size=x.shape) * 0.3, x.dtype), shapes)


def test_the_mean_of_all_simulations_is_the_value_of_the_root():
    params = noisy_params()
    usual = tiny_run.algorithm().search(4)(params, jax.random.key(0), positions())
    found = made("mean_value").search(4)(params, jax.random.key(0), positions())
    np.testing.assert_array_equal(found.value, usual.tree.value[0])
    np.testing.assert_array_equal(found.policy, usual.policy)
    assert (found.value != usual.value).all()


def test_without_a_search_the_policy_head_plays():
    model = tiny_run.algorithm().model
    params = noisy_params()
    found = made("no_search").search(64)(params, jax.random.key(0), positions())
    output = model.initial_inference(params, positions().observation)
    np.testing.assert_array_equal(found.action, output.policy_logits.argmax(axis=1))
    np.testing.assert_allclose(found.value, model.to_scalar(output.value_logits))
    window = random_window(1, 4, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)
    targets, usual = (a.make_targets(window, jnp.float32(0.0)) for a in (made("no_search"), tiny_run.algorithm()))
    np.testing.assert_array_equal(targets.policy.argmax(axis=-1), window.action[:, :3])
    weight = np.exp(np.clip((usual.value - window.search_value[:, :3]) / 0.5, -3, 3))
    np.testing.assert_allclose(targets.policy_mask, usual.policy_mask * weight, rtol=1e-4)


# --- from the command line to the board -------------------------------------------------------------------------------


TINY = (
    "--env tic_tac_toe --devices 2 --search.num-simulations 2 --search.max-num-considered-actions 2 "
    "--self-play.num-envs 4 --self-play.rollout-length 4 --replay.replay-length 16 --replay.min-frames 4 "
    "--targets.unroll-steps 1 --targets.td-steps 2 --optimiser.batch-size 4 --optimiser.updates-per-iteration 1 "
    "--iterations-per-chunk 1 --evaluation.num-simulations 2 --no-tensorboard --max-iterations 2 --minutes None "
    "--network.kind mlp --network.width 8 --optimiser.reconstruction-weight 0 --evaluation.interval-minutes 0"
).split()


@pytest.fixture(autouse=True, scope="module")
def quietly():
    with quiet():
        yield


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run of `no_search`, whose file was named by a path that holds in one folder alone; resumed once."""
    folder = tmp_path_factory.mktemp("runs") / "own"
    file = folder.parent / "mine.py"
    file.write_text(NO_SEARCH.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(file.parent)
        patch.setattr(checks, "examine", lambda *arguments: [])  # which has tests of its own
        assert command(*TINY, "--run-dir", folder, "--algorithm", "mine.py", "--algorithm.options", "beta=0.25") == 0
        assert command("--resume", "--run-dir", folder, "--devices", 2, "--max-iterations", 3) == 0
    return folder


def test_a_run_keeps_its_algorithm_and_goes_on_with_it(run_dir):
    config = configs.load(run_dir)
    assert config.algorithm == AlgorithmConfig(str(run_dir.parent / "mine.py"), ("beta=0.25",))
    assert (run_dir / "algorithm.py").read_text() == NO_SEARCH.read_text()
    assert json.loads((run_dir / "summary.json").read_text())["iteration"] == 3
    losses = [record["train/loss"] for record in read_records(run_dir) if "train/loss" in record]
    assert losses and np.isfinite(losses).all() and losses[-1] > 0


def test_what_is_loaded_plays_with_the_runs_own_search(run_dir):
    agent = muzero_jax.load(run_dir)
    state = agent.environment.init(jax.random.key(0))
    found = agent.analyse(state)
    np.testing.assert_allclose(found.policy, found.prior, atol=1e-6)
    assert found.value == pytest.approx(found.prior_value, abs=1e-6) and found.lines == ()


def test_its_search_with_the_true_rules_is_its_own_too(run_dir):
    agent = muzero_jax.load(run_dir).agent
    ask = [agent.search(8, true_rules=rules)(agent.params, jax.random.key(0), positions()) for rules in (False, True)]
    jax.tree.map(np.testing.assert_array_equal, *ask)


def test_the_algorithm_cannot_be_left_out_or_changed_in_a_resumed_run(run_dir, capsys):
    assert command("--resume", "--run-dir", run_dir, "--algorithm.options", "beta=1") == EXIT_ERROR
    assert "made with --algorithm.options" in capsys.readouterr().err
    with pytest.raises(ValueError, match="made with --algorithm.file .*no_search.py, so it cannot go on with None"):
        check_resumable(CONFIG, made_with=with_file(NO_SEARCH))


def test_a_file_that_changed_since_is_not_run(run_dir, capsys):
    file = run_dir.parent / "mine.py"
    text = file.read_text()
    file.write_text(text + "\nprint('ran')\n")
    assert report_errors(evaluate.main, ["match", "--run", str(run_dir)]) == EXIT_ERROR
    said = capsys.readouterr()
    assert "mine.py has changed since you trained with it" in said.err and "ran" not in said.out
    file.write_text(text)


def test_a_run_of_a_record_is_loaded_by_a_program_alone(tmp_path, monkeypatch):
    """The library takes the record itself; nobody builds the configured search for such a run in silence."""
    given = []
    stopped = Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda ready, *_: given.append((ready.config, ready.algorithm)) or stopped)
    algorithm = tiny_run.algorithm()._replace(choose=made("no_search").choose)
    muzero_jax.train(CONFIG, tmp_path / "run", algorithm=algorithm, say=lambda line: None)
    (config, record), *_ = given
    assert record is algorithm and config.algorithm.file == configs.IN_PYTHON
    run = tmp_path / "saved"
    tiny_run.save(run, tiny_run.make_init()())
    configs.save(config, run)
    with pytest.raises(ValueError, match="its algorithm was given by a program and is in no file"):
        muzero_jax.load(run)
    agent = muzero_jax.load(run, algorithm=algorithm)
    assert agent.agent.make_search is algorithm.make_search
    with pytest.raises(ValueError, match="board_size is for what the config names"):
        muzero_jax.load(run, board_size=4, algorithm=algorithm)


def test_runs_of_other_algorithms_are_other_groups(tmp_path):
    """By the text of the file that a run kept, and where a record was given by the run's folder."""
    texts = {"a-seed0": "1", "a-seed1": "1", "b-seed0": "2", "x-seed0": None, "y-seed0": None}
    for seed, (name, text) in enumerate(texts.items()):
        (tmp_path / name).mkdir()
        file = configs.IN_PYTHON if text is None else "mine.py"
        configs.save(replace(CONFIG, algorithm=AlgorithmConfig(file=file), seed=seed), tmp_path / name)
        if text is not None:
            (tmp_path / name / "algorithm.py").write_text(text)
    groups = comparison.group_names([tmp_path / name for name in texts])
    assert len(set(groups.values())) == 4 and groups[tmp_path / "a-seed0"] == groups[tmp_path / "a-seed1"]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("x = 1", "defines no function change; define it there"),
        (
            "def change(algorithm, config): return 3",
            "change returns a int, but must return a muzero_jax.Algorithm",
        ),
        ("def change(algorithm): return algorithm", r"change of .* raised TypeError: change\(\) takes 1"),
        ("def change(algorithm, config): return algorithm._replace(terms=[3])", "reading the terms raised"),
        (
            "def change(algorithm, config): return algorithm._replace(update=None)",
            "update raised TypeError",
        ),
        (
            "def change(algorithm, config):\n"
            "    return algorithm._replace(make_targets=lambda window: algorithm.make_targets(window, 0))",
            "make_targets raised TypeError",
        ),
    ],
)
def test_a_file_that_makes_no_algorithm_is_one_sentence(text, sentence, tmp_path, capsys):
    import re

    (tmp_path / "mine.py").write_text(text)
    assert command(*TINY, "--run-dir", tmp_path / "run", "--algorithm", tmp_path / "mine.py") == EXIT_ERROR
    said = capsys.readouterr().err
    assert re.search(sentence, said) and said.count("\n") == 1 and not (tmp_path / "run").exists()
