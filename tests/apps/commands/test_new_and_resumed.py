"""`--config`, `--resume-if-any` and `--init-from`: where the settings and the weights of a run come from."""

import pytest

from muzero_jax.apps import start
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED, report_errors
from muzero_jax.run import compilation_cache
from muzero_jax.run.run import Result
from muzero_jax.storage import config as configs
from tests.reference import told_runs
from tests.reference.tiny_run import CONFIG
from tests.reference.training import settled


@pytest.fixture
def settings(tmp_path):
    """A config.json that lies in no run."""
    file = tmp_path / "best.json"
    file.write_text(configs.to_json(CONFIG))
    return file


def test_a_run_begins_with_the_settings_of_a_file_over_which_flags_win(settings, tmp_path):
    config, session, default = settled("--config", settings, "--optimiser.learning-rate", "0.5", "--run-dir", tmp_path)
    assert config.optimiser.learning_rate == 0.5 and config.search == CONFIG.search and config.env == CONFIG.env
    assert default.optimiser.learning_rate == CONFIG.optimiser.learning_rate and not session.resume
    config, *_ = settled("--config", settings, "--frames", "99")  # a budget takes the place of the file's
    assert (config.frames, config.minutes, config.max_iterations) == (99, None, None)


def test_one_command_begins_a_run_and_later_goes_on_with_it(tmp_path):
    arguments = ["--env", "tic_tac_toe", "--resume-if-any", "--run-dir", str(tmp_path / "run")]
    config, session, _ = settled(*arguments)
    assert not session.resume and config.env == "tic_tac_toe"
    (tmp_path / "run").mkdir()
    configs.save(CONFIG, tmp_path / "run")
    config, session, _ = settled(*arguments)
    assert session.resume and config.search == CONFIG.search
    with pytest.raises(ValueError, match="add --run-dir"):
        settled(*arguments[:-2])


def test_a_run_begins_with_what_init_from_names_and_overwrite_spares_it(monkeypatch, tmp_path, capsys):
    seen, stopped = [], Result({}, interrupted=True)
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(start, "train", lambda ready, *_: seen.append(ready.config) or stopped)
    monkeypatch.chdir(tmp_path)
    told_runs.tell(tmp_path / "run", [0.5])
    words = ["--env", "hex", "--board-size", "3", "--devices", "1", "--init-from", "run"]
    assert report_errors(train.main, words) == EXIT_INTERRUPTED
    assert [config.init_from for config in seen] == [str(tmp_path / "run")]
    capsys.readouterr()
    assert report_errors(train.main, [*words, "--run-dir", "run", "--overwrite"]) == EXIT_ERROR
    assert "--overwrite would delete" in capsys.readouterr().err and (tmp_path / "run").exists()
