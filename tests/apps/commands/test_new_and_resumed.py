"""`--config`, `--resume-if-any` and `--init-from`: where the settings and the weights of a run come from."""

import json
from dataclasses import asdict, replace

import pytest

from muzero_jax.algorithm import playing
from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED, report_errors
from muzero_jax.presets import preset
from muzero_jax.run import compilation_cache
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from tests.reference import told_runs
from tests.reference.tiny_run import CONFIG
from tests.reference.training import command, settled


@pytest.fixture
def settings(tmp_path):
    """A config.json that lies in no run."""
    file = tmp_path / "best.json"
    values = asdict(CONFIG)
    file.write_text(json.dumps(values))
    return file


def test_a_run_begins_with_the_settings_of_a_file_over_which_flags_win(settings, tmp_path):
    arguments = ["--config", str(settings), "--optimiser.learning-rate", "0.5", "--run-dir", str(tmp_path / "run")]
    config, session, default = settled(*arguments)
    assert config.optimiser.learning_rate == 0.5 and config.search == CONFIG.search and config.env == CONFIG.env
    assert not session.resume
    assert default.optimiser.learning_rate == CONFIG.optimiser.learning_rate


def test_a_budget_among_the_flags_takes_the_place_of_those_of_the_file(settings):
    config, *_ = settled("--config", settings, "--frames", "99")
    assert (config.frames, config.minutes, config.max_iterations) == (99, None, None)


def test_a_file_of_settings_runs_no_python_that_it_names(settings, tmp_path, capsys):
    values = json.loads(settings.read_text())
    mark, code = tmp_path / "mark", tmp_path / "net.py"
    code.write_text(f"open({str(mark)!r}, 'w')")
    values["network"]["file"] = str(code)
    settings.write_text(json.dumps(values))
    assert command("--config", settings, "--run-dir", tmp_path / "run") == EXIT_ERROR
    assert "net.py" in capsys.readouterr().err and not mark.exists()


@pytest.mark.parametrize("text, sentence", [(None, "there is no file"), ("{", "is not a config of ours")])
def test_a_file_that_holds_no_settings_is_one_sentence(text, sentence, tmp_path, capsys):
    if text:
        (tmp_path / "x.json").write_text(text)
    assert command("--config", tmp_path / "x.json") == EXIT_ERROR
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_one_command_begins_a_run_and_later_goes_on_with_it(tmp_path):
    run_dir = tmp_path / "run"
    arguments = ["--env", "tic_tac_toe", "--resume-if-any", "--run-dir", str(run_dir)]
    config, session, _ = settled(*arguments)
    assert not session.resume and config.env == "tic_tac_toe"
    run_dir.mkdir()
    configs.save(CONFIG, run_dir)
    config, session, _ = settled(*arguments)
    assert session.resume and config.search == CONFIG.search


def test_resuming_if_there_is_a_run_needs_a_folder(capsys):
    assert command("--env", "tic_tac_toe", "--resume-if-any") == EXIT_ERROR
    assert "add --run-dir" in capsys.readouterr().err


def test_a_run_begins_with_what_init_from_names_and_overwrite_spares_it(monkeypatch, tmp_path, capsys):
    seen = []
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    stopped = Result({}, interrupted=True)
    monkeypatch.setattr(start, "train", lambda ready, *_: seen.append(ready.config) or stopped)
    monkeypatch.chdir(tmp_path)
    told_runs.tell(tmp_path / "run", [0.5])
    words = ["--env", "hex", "--board-size", "3", "--devices", "1", "--init-from", "run"]
    assert report_errors(train.main, words) == EXIT_INTERRUPTED
    assert [config.init_from for config in seen] == [str(tmp_path / "run")]
    capsys.readouterr()
    assert report_errors(train.main, [*words, "--run-dir", "run", "--overwrite"]) == EXIT_ERROR
    assert "--overwrite would delete" in capsys.readouterr().err and (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "env, model, told",
    [
        ("minatar-breakout:hidden", "rules", True),
        ("minatar-breakout:hidden", "learned", False),
        ("minatar-breakout", "rules", False),
        ("tic_tac_toe", "rules", False),
    ],
)
def test_a_run_says_that_the_rules_see_what_the_player_cannot(env, model, told, tmp_path):
    said: list[str] = []
    config = replace(preset(env, None), model=model)
    start._introduce(config, playing.build_environment(config), 1, tmp_path, said.append, verbose=False)
    assert any(line.startswith("hidden") for line in said) == told
