"""`train.py --offline` as a user types it."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import muzero_jax
from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.run import compilation_cache
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from tests.reference import tiny_run

ROOT = Path(__file__).parents[3]
WINDOWS = "--devices 2 --targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8".split()
TINY = (
    "--network.width 16 --search.num-simulations 4 --optimiser.updates-per-iteration 2 --max-iterations 4 "
    "--evaluation.interval-minutes 0 --evaluation.final-games 4 --evaluation.num-simulations 2 "
    "--evaluation.mcts-simulations 1"
).split()


@pytest.fixture
def began(monkeypatch):
    """The configs of the runs that would have begun, and their folders."""
    seen = []

    def begin(ready, *_):
        seen.append((ready.config, ready.run_dir))
        return Result({}, interrupted=True)

    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(start, "train", begin)
    return seen


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.txt"
    path.write_text("a1 a2 b1 b2 c1\n0 1 2 4 3 5 7 6 8\n")
    return path


def refusal(capsys, *arguments):
    """The one sentence that a command is refused with."""
    assert report_errors(train.main, [str(argument) for argument in arguments]) == EXIT_ERROR
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    return error


def test_a_runs_games_bring_their_game_and_sizes(began, saved_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--offline", str(saved_run), *WINDOWS, "--updates", "10"]
    train.main(arguments)
    ((config, run_dir),) = began
    assert (config.env, config.offline, run_dir) == (
        "tic_tac_toe",
        str(saved_run),
        Path("runs/tic_tac_toe-offline-seed0"),
    )
    assert config.self_play.num_envs == tiny_run.CONFIG.self_play.num_envs
    assert (config.replay.replay_length, config.reanalyze_fraction, config.minutes) == (32, 1.0, None)
    assert f"offline     from the games of {saved_run} alone; none are played" in capsys.readouterr().out
    train.main([*arguments, "--replay.reanalyze-fraction", "0.5"])
    assert began[1][0].reanalyze_fraction == 0.5


def test_a_file_of_games_is_kept_by_its_whole_path(began, games, monkeypatch):
    monkeypatch.chdir(games.parent)
    train.main(["--offline", games.name, "--env", "tic_tac_toe", *WINDOWS])
    ((config, _),) = began
    assert config.offline == str(games) and config.self_play.num_envs == 2


def test_a_script_takes_the_same_way_in_as_the_command(began, games, saved_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preset = replace(presets.preset("tic_tac_toe", None), minutes=None, updates=10)
    preset = replace(preset, targets=replace(preset.targets, unroll_steps=2, td_steps=4))
    preset = replace(preset, optimiser=replace(preset.optimiser, batch_size=8))
    for number, source in enumerate((saved_run, games)):
        said, run_dir = [], tmp_path / f"run{number}"
        muzero_jax.train(replace(preset, offline=os.path.relpath(source)), run_dir, say=said.append)
        train.main([
            *("--offline", str(source), "--env", "tic_tac_toe", "--updates", "10"),
            *("--run-dir", str(run_dir), *WINDOWS),
        ])  # fmt: skip
        by_script, by_command = began[-2:]
        assert by_script == by_command
        assert f"offline     from the games of {source} alone; none are played" in said
    discounted = replace(preset, offline=str(saved_run), targets=replace(preset.targets, discount=0.9))
    with pytest.raises(ValueError, match="with --targets.discount 1.0, not 0.9"):
        muzero_jax.train(discounted, tmp_path / "refused")
    assert len(began) == 4 and not (tmp_path / "refused").exists()


def test_help_shows_the_flag_and_the_sources_defaults(saved_run, capsys):
    train.main(["--offline", str(saved_run), "--help"])
    assert "--offline TEXT\n    learn from stored games alone" in capsys.readouterr().out
    train.main(["--offline", str(saved_run), "--help-all"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "searched again with fresh weights" in shown and "1 where stored games alone are learned from" in shown


def test_mistakes_are_one_sentence(began, games, saved_run, tmp_path, capsys):
    assert "add --env NAME" in refusal(capsys, "--offline", games)
    assert "there is no" in refusal(capsys, "--offline", tmp_path / "none", "--env", "tic_tac_toe")
    for part in ("checkpoints", "versions"):
        (saved_run / part).mkdir(exist_ok=True)
        assert f"is a part of a run, which has its games; name {saved_run}" in refusal(
            capsys, "--offline", saved_run / part
        )
    assert "--env tic_tac_toe, not hex" in refusal(capsys, "--offline", saved_run, "--env", "hex", "--board-size", 3)
    assert "--frames counts moves" in refusal(capsys, "--offline", saved_run, *WINDOWS, "--frames", 100)
    assert "did you mean --offline?" in refusal(capsys, "--ofline", saved_run)
    sentence = refusal(capsys, "--offline", saved_run, *WINDOWS, "--run-dir", saved_run, "--overwrite")
    assert "--overwrite would delete" in sentence
    assert "--targets.td-steps is -9" in refusal(capsys, "--offline", saved_run, "--targets.td-steps", -9)
    assert began == []


@pytest.mark.slow
def test_a_tiny_run_learns_from_a_file_goes_on_and_plays(games, tmp_path):
    """The real commands: train, resume without the file, evaluate."""

    def run(script, *arguments):
        command = [sys.executable, f"experiments/{script}.py", *map(str, arguments)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run_dir = tmp_path / "run"
    output = run("train", "--offline", games, "--env", "tic_tac_toe", "--run-dir", run_dir, *WINDOWS, *TINY)
    assert "learning from 2 games with 14 moves" in output and "frames" not in output.split("Work")[1]
    games.unlink()
    run("train", "--resume", "--run-dir", run_dir, "--max-iterations", 8, "--devices", 2)
    assert json.loads((run_dir / "summary.json").read_text())["totals"]["updates"] == 16
    assert configs.load(run_dir).offline == str(games)
    match = run("evaluate", "match", "--run", run_dir, "--games", 4, "--num-simulations", 2, "--json")
    assert json.loads(match)["games"] == 4
