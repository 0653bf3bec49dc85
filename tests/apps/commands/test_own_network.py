"""A network of one's own in one file, from the command line to the board: no edit anywhere else."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import muzero_jax
from muzero_jax.algorithm import playing
from muzero_jax.apps import start
from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.games.environment import make_environment
from muzero_jax.ops import devices
from muzero_jax.run.metrics import read_records
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from muzero_jax.storage.config_groups import NetworkConfig
from tests.reference.training import command, quiet, settled

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "transformer.py"
TINY = (
    "--env tic_tac_toe --devices 2 --search.num-simulations 4 --search.max-num-considered-actions 4 "
    "--self-play.num-envs 4 --self-play.rollout-length 4 --replay.replay-length 16 --replay.min-frames 4 "
    "--targets.unroll-steps 1 --targets.td-steps 2 --optimiser.batch-size 4 --optimiser.updates-per-iteration 1 "
    "--iterations-per-chunk 1 --evaluation.num-simulations 2 --no-tensorboard --max-iterations 2 --minutes None"
).split()
OPTIONS = ["--network.options", "width=16", "depth=1"]


@pytest.fixture(autouse=True, scope="module")
def quietly():
    with quiet():
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run of two iterations with the example, named by a path that holds in one folder alone."""
    run_dir = tmp_path_factory.mktemp("runs") / "own"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(EXAMPLE.parent)
        assert command(*TINY, "--run-dir", run_dir, "--network", EXAMPLE.name, *OPTIONS) == 0
    return run_dir


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """What `train.py` says of a network file with this text: one sentence."""
    monkeypatch.setattr(start, "train", lambda *arguments: pytest.fail("too late"))

    def say(text, *arguments):
        (tmp_path / "net.py").write_text(text)
        status = command(*TINY, "--run-dir", tmp_path / "run", "--network", tmp_path / "net.py", *arguments)
        error = capsys.readouterr().err
        assert status == EXIT_ERROR and error.count("\n") == 1 and "net.py" in error, error
        assert not (tmp_path / "run").exists()
        return error

    return say


def test_the_example_is_short_and_nothing_is_wrong_with_it():
    assert len(EXAMPLE.read_text().splitlines()) <= 100
    config = configs.Config(env="tic_tac_toe", network=NetworkConfig(file=str(EXAMPLE), num_bins=3))
    environment = make_environment("tic_tac_toe")
    assert muzero_jax.check(playing.build_model(config, environment), environment) == []


@pytest.mark.slow  # notebook 07 trains a network of its own in CI
def test_a_network_of_ones_own_trains_by_its_file_and_options(trained):
    config = configs.load(trained)
    assert (config.network.file, config.network.options) == (str(EXAMPLE), ("width=16", "depth=1"))
    assert json.loads((trained / "summary.json").read_text())["iteration"] == 2
    records = [record for record in read_records(trained) if "train/loss" in record]
    assert records and all(np.isfinite(record["train/loss"]) for record in records)


@pytest.mark.slow  # notebook 07 trains a network of its own in CI
def test_its_run_is_loaded_for_play_from_anywhere(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = muzero_jax.load(trained)
    state = agent.environment.init(jax.random.key(0))
    assert 0 <= agent.act(state) < 9
    assert agent.iteration == 2


@pytest.mark.slow  # notebook 07 trains a network of its own in CI
def test_its_run_is_resumed_from_anywhere_with_its_own_options(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    seen = []
    stopped = Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda ready, *_: seen.append(ready.config) or stopped)
    assert command("--resume", "--run-dir", trained, "--devices", 2, "--max-iterations", 3) == 130
    assert seen[0].network == configs.load(trained).network
    assert command("--resume", "--run-dir", trained, "--network.options", "width=32") == EXIT_ERROR
    assert "made with --network.options" in capsys.readouterr().err


@pytest.mark.slow  # notebook 07 trains a network of its own in CI
def test_a_run_whose_file_is_gone_says_so(trained, tmp_path, capsys):
    config = configs.load(trained)
    text = configs.to_json(config).replace(str(EXAMPLE), str(tmp_path / "gone.py"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(text)
    assert report_errors(evaluate.main, ["match", "--run", str(tmp_path / "run")]) == EXIT_ERROR
    assert f"there is no file {tmp_path / 'gone.py'}" in capsys.readouterr().err


def test_both_spellings_of_the_flag_mean_the_same(monkeypatch):
    monkeypatch.setattr(devices, "configure_devices", lambda *arguments: 2)
    for spelling in (["--network", str(EXAMPLE)], [f"--network={EXAMPLE}"], ["--network.file", str(EXAMPLE)]):
        config, *_ = settled(*TINY, *spelling)
        assert config.network.file == str(EXAMPLE)


@pytest.mark.parametrize("flag", ["--network.width", "--network.num_blocks"])
def test_a_flag_of_the_built_in_networks_is_refused(flag, capsys):
    assert command(*TINY, "--network", EXAMPLE, flag, 32) == EXIT_ERROR
    name = flag.rpartition(".")[2]
    assert f"does not reach a network of your own; write --network.options {name}=" in capsys.readouterr().err


# --- mistakes ---------------------------------------------------------------------------------------------------------

GOOD = EXAMPLE.read_text()


@pytest.mark.parametrize(
    "text, arguments, sentence",
    [
        ("import nothing_like_it", [], "raised ModuleNotFoundError: No module named"),
        ("x = 1", [], "defines no function make_model; define it there"),
        (GOOD, ["--network.options", "widht=3"], "make_model() got an unexpected keyword argument 'widht'"),
        (
            "def make_model(environment, support): return support.bins",
            [],
            "raised AttributeError: 'Support' object",
        ),
        (
            "def make_model(environment, support): return 3",
            [],
            "returns a int, but must return a muzero_jax.types.Model",
        ),
        (
            GOOD.replace("(self.num_actions, self.num_bins,", "(4, self.num_bins,"),
            [],
            "policy_logits must be float32[3, 9]",
        ),
        (GOOD, ["--network.options", "width=wide"], "init raised "),
    ],
)
def test_a_file_that_makes_no_network_is_one_sentence(refused, text, arguments, sentence):
    assert sentence in refused(text, *arguments)


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert command(*TINY, "--network", tmp_path / "no.py") == EXIT_ERROR
    assert f"cannot read {tmp_path / 'no.py'} (No such file" in capsys.readouterr().err


@pytest.mark.slow
def test_what_may_be_meant_is_a_warning_before_anything_is_compiled(tmp_path, capsys, monkeypatch):
    """A search that is never deep may bear embeddings that grow."""
    monkeypatch.setattr(start, "train", lambda *arguments: Result({}, interrupted=True))
    file = tmp_path / "net.py"
    file.write_text(GOOD.replace("self._judge(min_max_scale(trunk)", "self._judge(2 * embedding + 1"))
    assert command(*TINY, *OPTIONS, "--network", file, "--run-dir", tmp_path / "run") == 130
    said = capsys.readouterr().out
    assert f"warning     {file}: embeddings grow" in said
