"""A study in a folder: an SQLite file that any number of workers share, each trial being one line of it.

SQLite, because Optuna's journal file has no heartbeat: a worker that `kill -9` ended would leave a trial that runs for
ever. Here each trial's worker writes a sign of life every few seconds, and whoever begins the next trial gives those
that are silent to itself.
"""

import sqlite3
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial, TrialState

from muzero_jax.apps.study.tuning.space import Value
from muzero_jax.apps.study.tuning.trial import FRAMES, INTERVAL, MINUTES, RUNGS
from muzero_jax.own.faults import first_line, shown
from muzero_jax.storage.fields import PositiveFloat, PositiveInt, UnitInterval, check_value

FILE = "study.db"
HEARTBEAT_SECONDS, SILENT_SECONDS = 5, 30
"""Between two signs of life, and after which a trial counts as lost: tracing holds Python's lock for seconds."""
MOST_RETRIES = 3
"""Times that a trial whose worker died is begun again; more, and it is what kills them."""
WAIT_SECONDS = 1.0
ENDED = (TrialState.COMPLETE, TrialState.PRUNED)

SAMPLERS: dict[str, Callable[[int, int], optuna.samplers.BaseSampler]] = {  # by the study's seed and the worker's own
    # Jointly, because learning rate and weights go together; `constant_liar` keeps workers from the same place.
    "tpe": lambda _, own: optuna.samplers.TPESampler(
        multivariate=True, constant_liar=True, n_startup_trials=8, seed=own
    ),
    "random": lambda _, own: optuna.samplers.RandomSampler(seed=own),
    "qmc": lambda seed, _: optuna.samplers.QMCSampler(scramble=True, seed=seed, warn_independent_sampling=False),
}
PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=RUNGS, reduction_factor=3),
    "none": optuna.pruners.NopPruner,
}


def open_study(folder: Path, *, sampler: str, pruner: str, seed: int, worker: int = 0) -> optuna.Study:
    """The study in a folder, which is made where there is none.

    `worker` tells workers apart, and the trials so far a search that goes on: else all would draw the same values.
    Raises ValueError in one sentence if the study's file is damaged.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats, and TPE's options, since years
        try:
            study = _open(folder / FILE, PRUNERS[pruner]())
            trials = study.get_trials(deepcopy=False)
            _check(study.user_attrs, trials)
        except Exception as error:  # SQLAlchemy's, Optuna's, or what damaged values raise
            first = error
            while first.__cause__ is not None:
                first = first.__cause__
            file, problem = folder / FILE, shown(first_line(first))
            if isinstance(first, sqlite3.OperationalError):  # locked, or a full disk
                raise ValueError(f"{file} cannot be opened ({problem}); free it, or space, and begin again") from error
            raise ValueError(f"{file} is no study of ours, or damaged ({problem}); choose another folder") from error
        study.sampler = SAMPLERS[sampler](
            seed, int(np.random.SeedSequence((seed, len(trials), worker)).generate_state(1)[0])
        )
    return study


def _open(file: Path, pruner: optuna.pruners.BasePruner) -> optuna.Study:
    storage = optuna.storages.RDBStorage(
        f"sqlite:///{file.resolve()}",
        engine_kwargs={"connect_args": {"timeout": 60}},  # workers write one at a time
        heartbeat_interval=HEARTBEAT_SECONDS,
        grace_period=SILENT_SECONDS,
        heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(MOST_RETRIES),
    )
    return optuna.create_study(
        storage=storage, study_name="tune", direction="maximize", pruner=pruner, load_if_exists=True
    )


def _check(of_study: dict[str, Any], trials: list[FrozenTrial]) -> None:
    """Raises an exception for what a study keeps beside its trials' values, if that is not what we put there."""
    for known in (of_study, *(trial.user_attrs for trial in trials)):
        for name, kind in ((FRAMES, PositiveInt), (MINUTES, PositiveFloat)):
            if name in known:
                check_value(known[name], kind, name)
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            for number in (trial.value, *trial.user_attrs.get(INTERVAL, ())):
                check_value(number, UnitInterval, f"a score of trial {trial.number}")


def begin(study: optuna.Study, values: dict[str, Value], frames: int | None) -> None:
    """Puts the base's own values first in a new study, with the frames of all trials if they are known."""
    if frames is not None:
        study.set_user_attr(FRAMES, frames)
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(values)


def search(
    study: optuna.Study,
    objective: Callable[[Any], float],
    trials: int,
    announce: Callable[[optuna.Study, FrozenTrial], None],
    say: Callable[[str], None],
) -> None:
    """Makes trials until so many have ended, whoever made them; waits for those of other workers.

    `announce` is called with each trial that ended here. Those that Ctrl-C or `kill -9` ended do not count. Two workers
    that begin at once may make one too many.
    """

    def alive(trial: optuna.Trial) -> float:
        """The objective, after a sign of life: the thread's first may come too late for a `kill -9`.

        A trial that never had one counts as alive, and all workers would wait for it for ever.
        """
        trial.storage.record_heartbeat(trial._trial_id)  # type: ignore  # a storage with heartbeats
        return objective(trial)

    is_waiting = False
    while True:
        give_up_the_silent(study)
        ended, running = count(study, *ENDED), count(study, TrialState.RUNNING)
        if ended >= trials:
            return
        knows_budget = FRAMES in study.user_attrs
        if ended + running < trials and (knows_budget or not running):
            is_waiting = False
            study.optimize(alive, n_trials=1, callbacks=[announce])
            continue
        if not is_waiting:
            what = "the last trials" if knows_budget else "the first trial, which times the budget,"
            say(f"waiting for {what} of other workers")
        is_waiting = True
        time.sleep(WAIT_SECONDS)


def give_up_the_silent(study: optuna.Study) -> None:
    """Fails the trials whose workers are silent, and puts each of them first again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def count(study: optuna.Study, *states: TrialState) -> int:
    """Trials in one of these states."""
    return len(study.get_trials(deepcopy=False, states=states))


def best(study: optuna.Study) -> FrozenTrial:
    """The trial with the highest score; of several the first. The base's own trial always ends, so there is one."""
    ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(ended, key=lambda trial: (trial.value, -trial.number))
