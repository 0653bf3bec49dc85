"""`tune.py`: what it searches and leaves behind, and how it is stopped and continues."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.apps.commands import train, tune
from muzero_jax.apps.commands.command_line import EXIT_INTERRUPTED, report_errors
from muzero_jax.apps.study.tuning import Objective
from muzero_jax.storage.config import Config
from tests.reference import told_runs
from tests.reference.training import settled

ROOT = Path(__file__).parents[3]
HEX = ["--env", "hex", "--board-size", "4", "--frames", "65536"]


class Trained:
    """What trains in `Objective.train`'s place: the score tells how near the learning rate is to 0.004."""

    def __init__(self):
        self.runs: list[tuple[Config, Path]] = []
        self.interrupt_at = None

    def __call__(self, config, run_dir, on_metrics=None):
        if len(self.runs) == self.interrupt_at:
            raise KeyboardInterrupt
        self.runs.append((config, run_dir))
        score = max(0.0, 0.9 - 100 * abs(config.optimiser.learning_rate - 0.004))
        told_runs.tell(run_dir, [score / 2, score], seed=config.seed, final=score, config=config)


@pytest.fixture
def trained(monkeypatch):
    made = Trained()
    monkeypatch.setattr(Objective, "train", lambda self, *arguments: made(*arguments))
    return made


def table_of(study):
    return list(csv.DictReader((study / "trials.csv").read_text().splitlines()))


def tuned(folder, *flags):
    return tune.main([*HEX, "--study", str(folder), *flags])


def test_a_study_finds_better_settings_and_compares_them_with_seeds_it_never_saw(trained, tmp_path, capsys):
    study = tmp_path / "study"
    assert tuned(study, "--trials", "8", "--seeds", "2", "--vary", "optimiser.learning-rate") == 0
    trials, finals = trained.runs[:8], trained.runs[8:]
    assert {config.seed for config, _ in trials} == {0} and {config.frames for config, _ in trials} == {65536}
    assert [run_dir.parent.name for _, run_dir in trials] == ["trials"] * 8
    assert [(run_dir.name.split("-")[0], config.seed) for config, run_dir in finals][::2] == [("base", 1), ("base", 2)]
    rows = table_of(study)
    best = max(rows, key=lambda row: float(row["value"]))
    assert len(rows) == 8 and float(rows[0]["params_optimiser.learning_rate"]) == 0.002
    for picture in ("history.png", "curves.png", "importance.png", "slices.png"):
        assert (study / picture).read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    rate = float(f"{float(best['params_optimiser.learning_rate']):.3g}")
    assert f"trial {best['number']}, --optimiser.learning-rate {rate}" in printed
    assert "cannot show less than 0.33" in printed

    config = settled("--config", study / "best.json").config
    assert (config.optimiser.learning_rate, config.frames) == (rate, 65536)


def test_ctrl_c_says_how_to_continue_and_the_same_command_does(trained, tmp_path, capsys):
    trained.interrupt_at = 2
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0") == EXIT_INTERRUPTED
    assert "stopped and saved; continue with: " in capsys.readouterr().out
    trained.interrupt_at = None
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0") == 0 and len(trained.runs) == 3
    assert tuned(tmp_path, "--trials", "4", "--seeds", "0") == 0 and len(trained.runs) == 4


def test_ranges_and_lists_of_ones_own_reach_the_trials(trained, tmp_path):
    own = ["--vary", "replay.end-weight", "2:6", "--vary", "network.kind", "mlp", "observation"]
    assert tuned(tmp_path, "--trials", "6", "--seeds", "0", *own) == 0
    assert {config.network.kind for config, _ in trained.runs} <= {"mlp", "observation"}
    assert all(2 <= config.replay.end_weight <= 6 for config, _ in trained.runs)
    assert len({config.optimiser.learning_rate for config, _ in trained.runs}) == 1


def test_trials_meet_the_one_opponent_that_counts_at_equal_places():
    config = presets.hex_any(4)
    for metric, opponents in (("mcts:40", (40,)), ("openings_right", (100, 1000))):
        found = tune.for_trials(config, metric).evaluation
        assert (found.mcts_simulations, found.parts) == (opponents, 8)
    at_the_end = replace(config, evaluation=replace(config.evaluation, interval_minutes=0.0))
    assert tune.for_trials(at_the_end, "mcts:40").evaluation.parts is None  # so that no trial is pruned


@pytest.mark.parametrize(
    "words, flag",
    [
        (["--env", "hex", "--board-size", "4"], "trials are equal in frames"),
        ([*HEX, "--updates", "5"], "trials are equal in frames"),
        ([*HEX, "--run-dir", "x"], "--run-dir"),
        ([*HEX, "--vary", "network.wdith", "8"], "--network.wdith"),
        ([*HEX, "--vary", "network.width"], "network.width has no range"),
        ([*HEX, "--vary", "env", "a.py", "b.py"], "--vary env"),
        ([*HEX, "--vary", "seed", "1", "2"], "--vary seed"),
        ([*HEX, "--vary", "optimiser.learning-rate", "-1:2"], "--optimiser.learning-rate"),
    ],
)
def test_a_mistake_is_one_sentence(words, flag, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert report_errors(tune.main, words) == 2
    printed = capsys.readouterr().err
    assert flag in printed and printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == [] and trained.runs == []


TINY = (
    "--env tic_tac_toe --minutes 0.02 --trials 2 --seeds 0 --metric mcts:2 --network.width 16 --devices 1 "
    "--self-play.num-envs 16 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--optimiser.batch-size 16 --optimiser.updates-per-iteration 2 --evaluation.games 4 --evaluation.final-games 4 "
    "--evaluation.num-simulations 2 --search.num-simulations 4 --vary optimiser.learning-rate"
).split()


@pytest.mark.slow
def test_two_real_workers_make_one_study(tmp_path):
    """The second begins when the first trial has found how many frames its minutes hold."""
    line = [sys.executable, "experiments/tune.py", *TINY, "--study", str(tmp_path / "study")]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    more = [subprocess.Popen([*line, "--trials", "3"], cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [worker.wait(timeout=300) for worker in more] == [0, 0]
    rows = table_of(tmp_path / "study")
    assert {row["state"] for row in rows} <= {"COMPLETE", "PRUNED"} and 3 <= len(rows) <= 4
    assert not (tmp_path / "study" / "trials" / "001" / "checkpoints").exists()
    best = ["--config", str(tmp_path / "study" / "best.json"), "--run-dir", str(tmp_path / "best"), "--devices", "1"]
    assert report_errors(train.main, best) == 0
