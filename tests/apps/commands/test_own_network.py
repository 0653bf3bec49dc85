"""A network of one's own in one file, from the command line to the board: no edit anywhere else."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import muzero_jax
from muzero_jax.algorithm import playing
from muzero_jax.apps import start
from muzero_jax.apps.commands.command_line import EXIT_ERROR
from muzero_jax.games.environment import make_environment
from muzero_jax.run.metrics import read_records
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from muzero_jax.storage.config_groups import NetworkConfig
from tests.reference.training import command, quiet

EXAMPLE = Path(__file__).parents[3] / "examples" / "transformer.py"
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


def test_the_example_is_short_and_nothing_is_wrong_with_it():
    assert len(EXAMPLE.read_text().splitlines()) <= 100
    config = configs.Config(env="tic_tac_toe", network=NetworkConfig(file=str(EXAMPLE), num_bins=3))
    environment = make_environment("tic_tac_toe")
    assert muzero_jax.check(playing.build_model(config, environment), environment) == []


@pytest.mark.slow  # notebook 07 trains a network of its own in CI
def test_a_network_of_ones_own_trains_plays_and_goes_on_from_anywhere(tmp_path, monkeypatch, capsys):
    """Its file is named by a path that holds in one folder alone."""
    run_dir = tmp_path / "own"
    monkeypatch.chdir(EXAMPLE.parent)
    assert command(*TINY, "--run-dir", run_dir, "--network", EXAMPLE.name, *OPTIONS) == 0
    config = configs.load(run_dir)
    assert (config.network.file, config.network.options) == (str(EXAMPLE), ("width=16", "depth=1"))
    assert json.loads((run_dir / "summary.json").read_text())["iteration"] == 2
    losses = [record["train/loss"] for record in read_records(run_dir) if "train/loss" in record]
    assert losses and np.isfinite(losses).all()

    monkeypatch.chdir(tmp_path)
    agent = muzero_jax.load(run_dir)
    assert agent.iteration == 2 and 0 <= agent.act(agent.environment.init(jax.random.key(0))) < 9
    seen, stopped = [], Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda ready, *_: seen.append(ready.config) or stopped)
    assert command("--resume", "--run-dir", run_dir, "--devices", 2, "--max-iterations", 3) == 130
    assert seen[0].network == config.network
    assert command("--resume", "--run-dir", run_dir, "--network.options", "width=32") == EXIT_ERROR
    assert "made with --network.options" in capsys.readouterr().err


GOOD = EXAMPLE.read_text()


@pytest.mark.parametrize(
    "text, arguments, says",
    [
        ("import nothing_like_it", [], "ModuleNotFoundError"),
        ("x = 1", [], "make_model"),
        (GOOD, ["--network.options", "widht=3"], "'widht'"),
        (GOOD, ["--network.width", "32"], "--network.options width="),
        ("def make_model(environment, support): return 3", [], "must return a muzero_jax.types.Model"),
        (GOOD.replace("(self.num_actions, self.num_bins,", "(4, self.num_bins,"), [], "policy_logits must be float32"),
    ],
)
def test_a_file_that_makes_no_network_is_one_sentence(tmp_path, capsys, monkeypatch, text, arguments, says):
    monkeypatch.setattr(start, "train", lambda *arguments: pytest.fail("too late"))
    (tmp_path / "net.py").write_text(text)
    words = [*TINY, "--run-dir", tmp_path / "run", "--network", tmp_path / "net.py", *arguments]
    assert command(*words) == EXIT_ERROR and not (tmp_path / "run").exists()
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and says in error


@pytest.mark.slow
def test_what_may_be_meant_is_a_warning_before_anything_is_compiled(tmp_path, capsys, monkeypatch):
    """A search that is never deep may bear embeddings that grow."""
    monkeypatch.setattr(start, "train", lambda *arguments: Result({}, interrupted=True))
    file = tmp_path / "net.py"
    file.write_text(GOOD.replace("self._judge(min_max_scale(trunk)", "self._judge(2 * embedding + 1"))
    assert command(*TINY, *OPTIONS, "--network", file, "--run-dir", tmp_path / "run") == 130
    assert f"warning     {file}: embeddings grow" in capsys.readouterr().out
