"""A study in a folder: how far it goes, what several workers make of it, and what kill -9 costs."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import optuna
import pytest
from optuna.trial import TrialState

from muzero_jax.apps.study.tuning import study as studies
from muzero_jax.apps.study.tuning.trial import FRAMES, MINUTES

OWN = {"x": 0.5}


def quadratic(trial):
    return 1.0 - (trial.suggest_float("x", 0.0, 1.0) - 0.5) ** 2


def opened(folder, sampler="tpe", pruner="median"):
    study = studies.open_study(folder, sampler=sampler, pruner=pruner, seed=0)
    studies.begin(study, OWN, frames=100)
    return study


def searched(study, trials, objective=quadratic):
    announced, said = [], []
    studies.search(study, objective, trials, lambda study, trial: announced.append(trial.number), said.append)
    return announced, said


@pytest.mark.parametrize("sampler", studies.SAMPLERS)
def test_a_search_begins_with_the_presets_values_and_the_same_line_goes_on(sampler, tmp_path):
    announced, _ = searched(opened(tmp_path, sampler), 2)
    assert announced == [0, 1]
    again = opened(tmp_path, sampler)
    assert searched(again, 4)[0] == [2, 3] and searched(again, 4)[0] == []
    assert again.trials[0].params == OWN and studies.best(again).number == 0


@pytest.mark.parametrize("sampler", studies.SAMPLERS)
def test_workers_and_those_that_go_on_draw_other_values(sampler, tmp_path):
    searched(opened(tmp_path, sampler), 3)
    searched(opened(tmp_path, sampler), 5)
    joined = studies.open_study(tmp_path, sampler=sampler, pruner="none", seed=0, worker=os.getpid())
    searched(joined, 7)
    drawn = [trial.params["x"] for trial in joined.trials]
    assert len(set(drawn)) == 7


@pytest.mark.parametrize("pruner", studies.PRUNERS)
def test_every_pruner_takes_curves_of_nine_rungs(pruner):
    def with_curve(trial):
        score = quadratic(trial)
        for rung in range(1, 10):
            trial.report(score, rung)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    study = optuna.create_study(
        direction="maximize", pruner=studies.PRUNERS[pruner](), sampler=studies.SAMPLERS["random"](0, 0)
    )
    study.optimize(with_curve, n_trials=12)
    ended = studies.count(study, TrialState.COMPLETE), studies.count(study, TrialState.PRUNED)
    assert sum(ended) == 12 and (ended[1] == 0 if pruner == "none" else ended[1] > 0)


def test_trials_that_were_interrupted_do_not_count(tmp_path):
    study = opened(tmp_path)

    def interrupted(trial):
        quadratic(trial)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        searched(study, 2, interrupted)
    searched(study, 2)
    assert studies.count(study, *studies.ENDED) == 2


WORKER = """
import sys, time
from pathlib import Path
from muzero_jax.apps.study.tuning import study as studies

def objective(trial):
    trial.suggest_float("x", 0.0, 1.0)
    print("begun", flush=True)
    time.sleep(600)

studies.HEARTBEAT_SECONDS, studies.SILENT_SECONDS = 1, 2
study = studies.open_study(Path(sys.argv[1]), sampler="random", pruner="none", seed=1)
studies.search(study, objective, 3, lambda *each: None, print)
"""


def test_kill_9_of_a_worker_loses_its_trial_alone_which_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "HEARTBEAT_SECONDS", 1)
    monkeypatch.setattr(studies, "SILENT_SECONDS", 2)
    monkeypatch.setattr(studies, "WAIT_SECONDS", 0.1)
    study = opened(tmp_path)
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == b"begun\n"
        os.kill(worker.pid, signal.SIGKILL)
    assert studies.count(study, TrialState.RUNNING) == 1  # the preset's own
    _, said = searched(study, 3)
    assert said == ["waiting for the last trials of other workers"]
    assert [trial.state.name for trial in study.trials].count("FAIL") == 1
    assert studies.count(study, *studies.ENDED) == 3
    assert [trial.params for trial in study.trials].count(OWN) == 2  # lost, and again


@pytest.mark.filterwarnings(
    "ignore:Heartbeat of storage"
)  # the trial of another worker, which this test itself asks for
def test_nobody_begins_a_second_trial_before_the_first_has_timed_the_budget(tmp_path, monkeypatch):
    study = studies.open_study(tmp_path, sampler="random", pruner="none", seed=0)
    studies.begin(study, OWN, frames=None)
    running = study.ask()

    def waited(seconds):
        study.set_user_attr(FRAMES, 100)
        study.tell(running, 0.1)

    monkeypatch.setattr(time, "sleep", waited)
    _, said = searched(study, 2)
    assert said == ["waiting for the first trial, which times the budget, of other workers"]
    assert studies.count(study, *studies.ENDED) == 2


@pytest.mark.parametrize("data", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_study_is_one_sentence(data, tmp_path):
    (tmp_path / studies.FILE).write_bytes(data)
    with pytest.raises(ValueError, match=r"study\.db is no study of ours, or damaged \(.*\); choose another folder$"):
        opened(tmp_path)


def test_a_study_on_a_full_disk_is_not_called_damaged(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("Optuna's own words") from sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(optuna, "create_study", fail)
    with pytest.raises(ValueError, match=r"cannot be opened \(database or disk is full\); free it, or space,"):
        opened(tmp_path)


@pytest.mark.parametrize("name, value", [(FRAMES, "many"), (FRAMES, -1), (MINUTES, [])])
def test_what_a_strangers_study_keeps_beside_its_trials_is_checked(name, value, tmp_path):
    opened(tmp_path).set_user_attr(name, value)
    with pytest.raises(ValueError, match=f"damaged \\({name} is "):
        studies.open_study(tmp_path, sampler="tpe", pruner="median", seed=0)
