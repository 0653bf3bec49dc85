"""`tune.py`: what it searches and leaves behind, how others join, and how it is stopped and goes on."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muzero_jax.apps.commands import entry, train, tune
from muzero_jax.apps.commands.command_line import EXIT_INTERRUPTED, report_errors
from muzero_jax.apps.study.tuning import trial
from muzero_jax.storage.config import Config
from tests.reference import told_runs
from tests.reference.training import settled

ROOT = Path(__file__).parents[3]
HEX = ["--env", "hex", "--board-size", "4", "--frames", "65536"]


class Trained:
    """A trainer in the real one's place: the score tells how near the learning rate is to 0.004."""

    def __init__(self):
        self.runs: list[tuple[Config, Path]] = []
        self.interrupt_at = None

    def __call__(self, config, run_dir, on_evaluation):
        if len(self.runs) == self.interrupt_at:
            raise KeyboardInterrupt
        self.runs.append((config, run_dir))
        score = max(0.0, 0.9 - 100 * abs(config.optimiser.learning_rate - 0.004))
        for part in (1, 2, 3):
            seen = {"total/frames": config.frames * part // 3, "time/minutes": part / 3}
            on_evaluation({"eval/mcts:100": score * part / 3} | seen)
        told_runs.tell(run_dir, [score / 2, score], seed=config.seed, final=score, config=config)
        return {"strength": {"mcts:100": {"score": score, "ci95": [0.0, 1.0]}}, "totals": {"frames": config.frames}}


@pytest.fixture
def trained(monkeypatch):
    made = Trained()
    monkeypatch.setattr(trial, "trainer", lambda *arguments, **options: made)
    return made


def table_of(study):
    return list(csv.DictReader((study / "trials.csv").read_text().splitlines()))


def tuned(folder, *flags):
    return tune.main([*HEX, "--study", str(folder), "--sampler", "random", *flags])


def test_a_study_finds_better_settings_and_compares_them_with_seeds_it_never_saw(trained, tmp_path, capsys):
    assert tuned(tmp_path / "study", "--trials", "8", "--seeds", "2", "--fields", "optimiser.learning-rate") == 0
    trials, finals = trained.runs[:8], trained.runs[8:]
    assert {config.seed for config, _ in trials} == {0} and {config.frames for config, _ in trials} == {65536}
    assert [run_dir.parent.name for _, run_dir in trials] == ["trials"] * 8
    assert sorted({(run_dir.name.split("-")[0], config.seed) for config, run_dir in finals})[:2] == [
        ("preset", 1),
        ("preset", 2),
    ]
    rows = table_of(tmp_path / "study")
    best = max(rows, key=lambda row: float(row["score"]))
    assert len(rows) == 8 and float(rows[0]["optimiser.learning_rate"]) == 0.002
    for picture in ("history.png", "curves.png", "importance.png", "slices.png", "seeds.png"):
        assert (tmp_path / "study" / picture).read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    rate = float(f"{float(best['optimiser.learning_rate']):.3g}")
    assert f"trial {best['trial']}, --optimiser.learning-rate {rate}" in printed
    assert "--config" in printed and f"trial{best['trial']}" in printed

    best = settled("--config", tmp_path / "study" / "best.json").config
    assert (best.optimiser.learning_rate, best.frames) == (rate, 65536)


def test_ctrl_c_says_how_to_go_on_and_the_same_line_does(trained, tmp_path, capsys):
    trained.interrupt_at = 2
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0", "--fields", "replay.end-weight") == EXIT_INTERRUPTED
    assert "stopped and saved; go on with: " in capsys.readouterr().out
    trained.interrupt_at = None
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0", "--fields", "replay.end-weight") == 0
    assert len(trained.runs) == 3


def test_another_worker_joins_with_the_studys_own_settings(trained, tmp_path, capsys):
    assert tuned(tmp_path, "--trials", "2", "--seeds", "0", "--fields", "replay.end-weight") == 0
    settings = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps(settings | {"trials": 4}))
    assert tune.main(["--join", str(tmp_path)]) == 0
    assert report_errors(tune.main, ["--join", str(tmp_path), "--trials", "9"]) == 2
    assert report_errors(tune.main, ["--join", str(tmp_path), "--seed", "9"]) == 2
    assert [(config.frames, config.board_size) for config, _ in trained.runs] == [(65536, 4)] * 4
    assert "4 trials have ended" in capsys.readouterr().out


def test_nothing_better_is_said_and_not_compared(trained, tmp_path, capsys):
    assert tuned(tmp_path, "--trials", "1", "--optimiser.learning-rate", "0.004") == 0
    assert len(trained.runs) == 1 and "the preset's own settings" in capsys.readouterr().out


MISTAKES = {
    "no budget": (["--env", "hex", "--board-size", "4"], "trials are equal in frames"),
    "two budgets": ([*HEX, "--updates", "5"], "trials are equal in frames"),
    "several runs": ([*HEX, "--vary", "optimiser.learning-rate", "1e-3"], "--vary is for one run"),
    "a folder for one run": ([*HEX, "--run-dir", "x"], "--run-dir is for one run"),
    "an unknown flag": ([*HEX, "--trails", "3"], "there is no flag --trails"),
    "an unknown field": ([*HEX, "--fields", "network.width"], "there is no range for network.width"),
    "no trial": ([*HEX, "--trials", "0"], "--trials is 0"),
    "no study to join": (["--join", "nowhere"], "there is no study in nowhere"),
}


@pytest.mark.parametrize("words, sentence", MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_one_sentence(words, sentence, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert report_errors(tune.main, words) == 2
    printed = capsys.readouterr().err
    assert sentence in printed and printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == [] and trained.runs == []


def test_a_study_with_other_flags_is_refused(trained, tmp_path, capsys):
    assert tuned(tmp_path / "study", "--trials", "1") == 0
    assert report_errors(lambda words: tuned(tmp_path / "study", *words), ["--network.width", "64"]) == 2
    assert "was begun without --network.width 64" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(trained, tmp_path, capsys):
    (tmp_path / "letter.txt").write_text("dear")
    assert report_errors(lambda words: tuned(tmp_path), []) == 2
    assert "holds no study" in capsys.readouterr().err


def test_without_optuna_a_sentence_names_the_extra():
    assert "[tune]" in entry.lacking("optuna") and "tune" in entry.COMMANDS


TINY = (
    "--env tic_tac_toe --frames 2000 --trials 2 --seeds 0 --mcts-simulations 2 --network.width 16 --devices 1 "
    "--self-play.num-envs 16 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--optimiser.batch-size 16 --optimiser.updates-per-iteration 2 --evaluation.games 4 --evaluation.final-games 4 "
    "--evaluation.num-simulations 2 --search.num-simulations 4 --fields optimiser.learning-rate"
).split()


@pytest.mark.slow
def test_real_trials_survive_kill_9_of_a_worker(tmp_path):
    """Two trials of tic-tac-toe; the first worker is killed in the first of them, and the same line ends the study."""
    line = [sys.executable, "experiments/tune.py", *TINY, "--study", str(tmp_path / "study")]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL) as first:
        run = tmp_path / "study" / "trials" / "000"
        while not (run / "config.json").exists():
            assert first.poll() is None
            time.sleep(0.1)
        first.send_signal(signal.SIGKILL)
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    rows = table_of(tmp_path / "study")
    assert sorted(row["state"] for row in rows) == ["complete", "complete", "fail"]
    assert not (tmp_path / "study" / "trials" / "001" / "checkpoints").exists()
    best = ["--config", str(tmp_path / "study" / "best.json"), "--run-dir", str(tmp_path / "best"), "--devices", "1"]
    assert report_errors(train.main, best) == 0
