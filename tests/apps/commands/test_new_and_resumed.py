"""Where the settings, the weights and the games of a run come from: `--config`, `--resume-if-any`, `--init-from`,
`--offline`.
"""

import os
from dataclasses import replace

import pytest

import muzero_jax
from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED
from muzero_jax.config import config_file
from muzero_jax.run.run import Result
from tests.reference import told_runs
from tests.reference.tiny_run import CONFIG
from tests.reference.training import command, settled

WINDOWS = "--devices 2 --targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8".split()


@pytest.fixture
def began(monkeypatch, tmp_path):
    """The configs of the runs that would have begun, and their folders."""
    seen, stopped = [], Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda run, *_: seen.append((run.config, run.folder)) or stopped)
    monkeypatch.chdir(tmp_path)
    return seen


def test_a_run_begins_with_the_settings_of_a_file_over_which_flags_win(tmp_path):
    settings = tmp_path / "best.json"
    settings.write_text(config_file.to_json(CONFIG))
    config, session, default = settled("--config", settings, "--optimiser.learning-rate", "0.5", "--run-dir", tmp_path)
    assert config.optimiser.learning_rate == 0.5 and config.search == CONFIG.search and config.env == CONFIG.env
    assert default.optimiser.learning_rate == CONFIG.optimiser.learning_rate and not session.resume
    config, *_ = settled("--config", settings, "--frames", "99")  # a budget takes the place of the file's
    assert (config.frames, config.minutes, config.max_iterations) == (99, None, None)


def test_resume_if_any_starts_a_run_or_resumes_it(tmp_path):
    arguments = ["--env", "tic_tac_toe", "--resume-if-any", "--run-dir", str(tmp_path / "run")]
    config, session, _ = settled(*arguments)
    assert not session.resume and config.env == "tic_tac_toe"
    (tmp_path / "run").mkdir()
    config_file.save(CONFIG, tmp_path / "run")
    config, session, _ = settled(*arguments)
    assert session.resume and config.search == CONFIG.search


def test_init_from_gives_the_network_and_overwrite_never_deletes_its_source(began, tmp_path, capsys):
    told_runs.tell(tmp_path / "run", [0.5])
    words = ["--env", "hex", "--board-size", "3", "--devices", "1", "--init-from", "run"]
    assert command(*words) == EXIT_INTERRUPTED
    ((config, _),) = began
    assert config.init_from == str(tmp_path / "run")
    assert config.network == config_file.inspect(tmp_path / "run").network != presets.preset("hex", 3).network
    capsys.readouterr()
    assert command(*words, "--run-dir", "run", "--overwrite") == EXIT_ERROR
    assert "--overwrite would delete" in capsys.readouterr().err and (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "env, model", [("minatar-breakout:hidden", "rules"), ("minatar-breakout:hidden", "learned"), ("hex", "rules")]
)
def test_a_run_says_if_the_ground_truth_model_sees_what_is_hidden_from_the_player(began, capsys, env, model):
    assert command("--env", env, "--model", model, "--devices", "1") == EXIT_INTERRUPTED
    said = any(line.startswith("hidden ") for line in capsys.readouterr().out.splitlines())
    assert said == (env.endswith(":hidden") and model == "rules")


# --- from stored games ------------------------------------------------------------------------------------------------


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.txt"
    path.write_text("a1 a2 b1 b2 c1\n0 1 2 4 3 5 7 6 8\n")
    return path


def test_a_script_and_the_command_begin_the_same_offline_run(began, games, saved_run, tmp_path):
    """A source run gives the command its game."""
    preset = replace(presets.preset("tic_tac_toe", None), minutes=None, updates=10)
    preset = replace(preset, targets=replace(preset.targets, unroll_steps=2, td_steps=4))
    preset = replace(preset, optimiser=replace(preset.optimiser, batch_size=8))
    for number, (source, game) in enumerate(((saved_run, ""), (games, "--env tic_tac_toe"))):
        run_dir, near = tmp_path / f"run{number}", os.path.relpath(source)
        muzero_jax.train(replace(preset, offline=near), run_dir, say=lambda line: None)
        words = f"--offline {near} {game} --updates 10 --run-dir {run_dir}".split()
        train.main([*words, *WINDOWS])
        by_script, by_command = began[-2:]
        assert by_script == by_command and by_script[0].offline == str(source)
