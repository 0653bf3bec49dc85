"""One trial of a search over settings: a run in a folder of its own, whose strength curve the study sees by frames.

It trains in the worker's own process. The callback of an evaluation ends a hopeless run, Ctrl-C reaches the run's own
handler, and `kill -9` of a worker leaves no child that goes on training. A child would give its memory back, for ten
seconds of imports a trial; here the compiled programs are dropped instead.

Evaluations come by the clock, and trials are compared at equal frames. So a curve is read at the ninths of the budget
(its rungs), between two evaluations by a straight line.
"""

import gc
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import optuna

from muzero_jax.apps import start
from muzero_jax.apps.study.tuning.space import Row, Value, own_values, with_values
from muzero_jax.run import budget
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.metrics import Record
from muzero_jax.run.run import Diverged
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from muzero_jax.storage.run_directory import CHECKPOINTS, VERSIONS

RUNGS = 9
"""Places of a curve where trials are compared; a power of 3, the factor by which hyperband thins them out."""
EVALUATIONS = 6
"""Evaluations of a trial, about: the clock says when, and a slower trial has more."""
FRAMES, MINUTES, INTERVAL, PROBLEM = "frames", "minutes", "ci95", "problem"
"""Names under which studies and trials keep what they spent, the score's 95% interval, and why a run ended early."""
TRIALS = "trials"

Train = Callable[[Config, Path, Callable[[Record], object]], dict[str, Any]]
"""Trains a run in a folder, calls a function with each evaluation, and returns the summary."""


class Curve:
    """A run's scores by frames."""

    def __init__(self):
        self._points: list[tuple[float, float]] = []
        self._rung = 0  # the last one that was passed

    def add(self, frames: float, score: float) -> None:
        """Takes the score of one evaluation."""
        self._points.append((frames, score))

    def rungs(self, budget_frames: int) -> list[tuple[int, float]]:
        """The rungs that were passed since the last call, with their scores; those before the first evaluation have
        none.
        """
        passed: list[tuple[int, float]] = []
        while (place := (self._rung + 1) * budget_frames / RUNGS) <= self._points[-1][0] and self._rung < RUNGS:
            self._rung += 1
            if self._points[0][0] <= place:
                passed.append((self._rung, self._score_at(place)))
        return passed

    def _score_at(self, place: float) -> float:
        (f0, s0), (f1, s1) = next(
            (before, after)
            for before, after in zip(self._points[:1] + self._points, self._points, strict=False)
            if before[0] <= place <= after[0]
        )
        return s0 if f1 == f0 else s0 + (s1 - s0) * (place - f0) / (f1 - f0)


class Trial(NamedTuple):
    """The objective of a study: trains with the values that it suggests, and returns the final score."""

    base: Config  # the settings that the study begins with
    rows: list[Row]
    folder: Path  # of the study
    opponent: str  # as metrics name it: "mcts:100"
    train: Train

    def __call__(self, trial: optuna.Trial) -> float:
        """The score of one trial; raises TrialPruned for a hopeless one, and for one that diverged."""
        values = {row.field: _suggest(trial, row) for row in self.rows}
        is_base = values == own_values(self.base, self.rows)
        curve, known = Curve(), trial.study.user_attrs

        def on_evaluation(record: Record) -> None:
            if (score := record.get(f"eval/{self.opponent}")) is None:
                return
            curve.add(float(record["total/frames"]), score)
            trial.set_user_attr(FRAMES, int(record["total/frames"]))
            trial.set_user_attr(MINUTES, record["time/minutes"])
            if FRAMES in known:
                self._report(trial, curve, known[FRAMES], may_prune=not is_base)

        try:
            config = with_budget(with_values(self.base, values), known)
            summary = self.train(config, self.folder / TRIALS / f"{trial.number:03d}", on_evaluation)
        except KeyboardInterrupt:
            trial.study.enqueue_trial(trial.params)
            raise
        except Diverged as error:
            if is_base:  # it can be no better with other values
                raise
            trial.set_user_attr(PROBLEM, str(error))
            raise optuna.TrialPruned from error
        match = summary["strength"][self.opponent]
        trial.set_user_attr(INTERVAL, list(match["ci95"]))
        if FRAMES not in known:
            trial.study.set_user_attr(FRAMES, int(summary["totals"]["frames"]))
            self._report(trial, curve, int(summary["totals"]["frames"]), may_prune=False)
        if is_base:
            trial.study.set_user_attr(MINUTES, trial.user_attrs[MINUTES])
        return match["score"]

    def _report(self, trial: optuna.Trial, curve: Curve, budget_frames: int, *, may_prune: bool) -> None:
        passed = curve.rungs(budget_frames)
        for rung, score in passed:
            trial.report(score, rung)
        if may_prune and passed and passed[-1][0] < RUNGS and trial.should_prune():
            raise optuna.TrialPruned


def _suggest(trial: optuna.Trial, row: Row) -> Value:
    if row.is_whole:
        return trial.suggest_int(row.field, int(row.low), int(row.high), log=row.log)
    return trial.suggest_float(row.field, row.low, row.high, log=row.log)


def with_budget(config: Config, known: dict[str, Any]) -> Config:
    """The config with the frames of all trials, where the first one has found them, and evaluations on its way."""
    if FRAMES in known:
        config = replace(config, **dict.fromkeys(budget.FIELDS) | {"frames": known[FRAMES]})
    minutes, own = known.get(MINUTES, config.minutes), config.evaluation.interval_minutes
    interval = min(own, minutes / EVALUATIONS) if minutes else own
    return replace(config, evaluation=replace(config.evaluation, interval_minutes=interval))


def trainer(session: Session, num_devices: int, *, keeps_checkpoints: bool = False) -> Train:
    """Trains runs on so many devices, in silence, as `session` says but for the folder.

    Without `keeps_checkpoints` a run that has ended keeps its curves and its agent, and no replay buffer.
    """

    def train(config: Config, run_dir: Path, on_evaluation: Callable[[Record], object]) -> dict[str, Any]:
        own = replace(session, run_dir=str(run_dir), overwrite=True, tensorboard=False, checkpoint_minutes=0.0)
        try:
            with start.prepare(config, own, num_devices, _silent) as ready:
                result = start.train(ready, own, _silent, Callbacks(on_evaluation=on_evaluation))
        finally:
            if not keeps_checkpoints and (run_dir / VERSIONS).exists():
                shutil.rmtree(run_dir / CHECKPOINTS, ignore_errors=True)
            jax.clear_caches()
            gc.collect()
        if result.interrupted:
            raise Stopped if result.by_system else KeyboardInterrupt
        return result.summary

    return train


def _silent(line: str) -> None:
    """Says nothing: a trial is one line of the study's."""
