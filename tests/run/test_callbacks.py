"""A user's functions get the records, and if one of them fails nothing is lost."""

import json

import pytest

import muzero_jax
from muzero_jax.apps import start
from muzero_jax.run import metrics
from muzero_jax.run.run import Result
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run


class TrialPruned(Exception):
    """What a library for sweeps raises to end a trial."""


def test_an_exception_of_a_callback_is_raised_after_the_run_is_saved(session):
    heard, evaluations, error = [], [], TrialPruned("no hope")

    def fail(record):
        heard.append(record["iteration"])
        raise error

    with pytest.raises(TrialPruned) as raised:
        session(max_iterations=8, on_metrics=fail, on_evaluation=lambda record: heard.append("evaluation"))
    assert raised.value is error and heard == [2], "nothing is called once one has failed"
    assert str(session.directory) in error.__notes__[0]
    assert checkpoint_steps(session.directory / "checkpoints") == [2]
    assert json.loads((session.directory / "summary.json").read_text())["finished"] is False
    resumed = session(max_iterations=8, resume=True, on_evaluation=evaluations.append)
    assert resumed.summary["iteration"] == 8
    records = metrics.read_records(session.directory)
    assert [record["iteration"] for record in records] == [2, 4, 6, 8, 8], "no record is lost or comes twice"
    assert evaluations == records[4:] and evaluations[0]["eval/random"] == 0.5, "the final matches"


def test_train_takes_a_budget_and_refuses_what_the_command_refuses(monkeypatch, tmp_path, saved_run):
    handed = []
    monkeypatch.setattr(start, "train", lambda *arguments: handed.append(arguments) or Result({}, False))
    muzero_jax.train(tiny_run.CONFIG, tmp_path / "run", minutes=3.0)
    ready, session, *_ = handed[0]
    assert (ready.config.minutes, ready.config.max_iterations) == (3, None)
    assert (session.overwrite, ready.run_dir.name, ready.mesh.size) == (False, "run", 2)
    with pytest.raises(ValueError, match="--minutes is -1.0"):
        muzero_jax.train(tiny_run.CONFIG, tmp_path / "run", minutes=-1.0)
    with pytest.raises(ValueError, match="holds a run already"):
        muzero_jax.train(tiny_run.CONFIG, saved_run)
