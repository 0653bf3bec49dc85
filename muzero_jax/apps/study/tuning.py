"""Tuning by Optuna: any number of workers draw trials from one journal, and each trial is a run of its own.

Trials are equal in frames, so nothing varies by default that buys strength with time. Which fields vary, and in which
range, stands at the config's fields. A trial trains in the worker's own process: a callback ends a hopeless one, and
Ctrl-C reaches the run's own handler. The best of many noisy scores is partly luck. Therefore the best settings and the
base's are trained at the end with seeds that the search never saw.
"""

import gc
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import jax
import matplotlib
import numpy as np
import optuna
from matplotlib import pyplot
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as plots

from muzero_jax.apps import start
from muzero_jax.apps.study import comparison
from muzero_jax.run import budget, charts
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.metrics import Callbacks, Record
from muzero_jax.run.run import Diverged
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import differing, fields_of
from muzero_jax.storage.validation import validate

PARTS = 8
"""Equal parts of a trial after which it is compared with the others, and may be pruned."""
FRAMES, BASE = "frames", "base"
"""Under these names a study keeps the frames of its trials, and the config that they vary."""
ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


class Span(NamedTuple):
    """All numbers between two."""

    low: Any
    high: Any
    log: bool  # drawn evenly on a log scale


Space = Mapping[str, Span | list[Any] | None]
"""The values of each field that varies, by its dotted name; None stands for the field's own range."""


def space(config: Config, chosen: Space) -> dict[str, Span | list[Any]]:
    """The chosen fields, or else all that have a range of their own, each with the config's own value in it."""
    own, found = configs.flat(config), dict[str, Span | list[Any]]()
    tuned = {field.name: field.fact.tuned for field in fields_of(Config) if field.fact.tuned}
    # What is 0 was turned off, and a range that begins above 0 has no place for it.
    for name, values in (chosen or {name: None for name, of in tuned.items() if own[name] or not of.low}).items():
        if values is None:
            if name not in tuned:
                raise ValueError(f"{name} has no range of its own; give one, such as 1e-4:1e-2, or some values")
            low, high, _, log, is_relative, most = tuned[name]
            values = Span(low * own[name], min(most, high * own[name]), log) if is_relative else Span(low, high, log)
        if isinstance(values, Span):
            found[name] = values._replace(low=min(values.low, own[name]), high=max(values.high, own[name]))
        else:
            found[name] = values if own[name] in values else [*values, own[name]]
    return found


def open_study(folder: Path, base: Config) -> optuna.Study:
    """The study in a folder, which is begun where there is none; ValueError if it is another or something else."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it shows a traceback where somebody stops a study
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # options of TPE, since years
    if folder.exists() and any(folder.iterdir()) and not (folder / "study.journal").exists():
        raise ValueError(f"{folder} exists but holds no study; choose another --study")
    folder.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.journal")))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2)
    study = optuna.create_study(
        storage=storage, study_name="tune", direction="maximize", pruner=pruner, load_if_exists=True
    )
    begun = configs.from_json(study.user_attrs.get(BASE, configs.to_json(base)))
    if begun != base:
        flags = " ".join(differing(base, begun))
        raise ValueError(f"{folder} was begun without {flags}; give its own flags, or another --study")
    for name, value in {BASE: configs.to_json(base), FRAMES: base.frames}.items():
        if value is not None:
            study.set_user_attr(name, value)
    # Jointly, because learning rate and weights go together. A worker that comes later has another seed and keeps away
    # from what is under way: else all would draw the same values.
    seed = base.seed + len(study.trials)
    study.sampler = optuna.samplers.TPESampler(multivariate=True, constant_liar=True, n_startup_trials=8, seed=seed)
    return study


class Objective(NamedTuple):
    """Trains with the values that a study suggests; called, it returns the final score."""

    base: Config
    space: dict[str, Span | list[Any]]
    folder: Path  # of the study
    metric: str  # as `comparison.Point` names it
    session: Session
    num_devices: int

    def __call__(self, trial: optuna.Trial) -> float:
        """The score of one trial; raises TrialPruned for a hopeless one, and for one that diverged."""
        config = settings(self.base, {name: _suggest(trial, name, values) for name, values in self.space.items()})
        frames = trial.study.user_attrs.get(FRAMES)
        run_dir = self.folder / "trials" / (f"{trial.number:03d}" if frames else "base")
        seen: set[int] = {0}  # parts of the trial after which its score is known

        def on_metrics(record: Record) -> None:
            score, done = record.get(comparison.key_of(self.metric)), record.get("total/frames", 0)
            part = int(PARTS * done / frames + 1e-6) if frames else 0
            if score is not None and part < PARTS and part not in seen:
                seen.add(part)
                trial.report(score, part)
                if trial.should_prune():  # not in the first four trials, so never the base's
                    raise optuna.TrialPruned

        try:
            self.train(with_frames(config, frames), run_dir, on_metrics)
        except Diverged as error:
            raise optuna.TrialPruned(str(error)) from error
        final = next((point for point in comparison.read_run(run_dir, "", [self.metric]) if point.is_final), None)
        if final is None:
            raise ValueError(f"--metric {self.metric} is not measured in such a run; docs/metrics.md lists what is")
        if not frames:  # the first trial has found what its minutes hold
            trial.study.set_user_attr(FRAMES, final.frames)
        return final.score

    def train(self, config: Config, run_dir: Path, on_metrics: Callable[[Record], object] | None = None) -> None:
        """Trains a run to its end, in silence. A trial keeps its curves and its weights, and no replay buffer."""
        own = replace(self.session, run_dir=str(run_dir), overwrite=True, tensorboard=False, checkpoint_minutes=0.0)
        try:
            with start.prepare(config, own, self.num_devices, say := lambda line: None) as ready:
                result = start.train(ready, own, say, Callbacks(on_metrics=on_metrics))
        finally:
            if on_metrics and (run_dir / run_directory.VERSIONS).exists():
                shutil.rmtree(run_dir / run_directory.CHECKPOINTS, ignore_errors=True)
            jax.clear_caches()
            gc.collect()
        if result.interrupted:
            raise Stopped if result.by_system else KeyboardInterrupt


def _suggest(trial: optuna.Trial, name: str, values: Span | list[Any]) -> Any:
    if not isinstance(values, Span):
        return trial.suggest_categorical(name, values)
    suggest = trial.suggest_int if isinstance(values.low, int) else trial.suggest_float
    return suggest(name, values.low, values.high, log=values.log)


def settings(base: Config, values: dict[str, Any]) -> Config:
    """The base with other values, rounded so that they can be typed; ValueError if no run can be made of it."""
    own = configs.flat(base)
    rounded = {name: float(f"{x:.3g}") if isinstance(x, float) else x for name, x in values.items() if x != own[name]}
    return validate(configs.with_values(base, rounded))


def with_frames(config: Config, frames: int | None) -> Config:
    """The config with so many frames as its one budget, once they are known."""
    return replace(config, **dict.fromkeys(budget.FIELDS) | {"frames": frames}) if frames else config


def search(
    study: optuna.Study, objective: Objective, trials: int, announce: Callable[[optuna.Study, FrozenTrial], None]
) -> None:
    """Makes trials until so many have ended, whoever made them; the first has the base's own values.

    `announce` is called with each trial that ended here. Those that Ctrl-C or `kill -9` ended do not count.
    """
    if not study.get_trials(states=ENDED):
        study.enqueue_trial({name: configs.flat(objective.base)[name] for name in objective.space})
    if len(study.get_trials(states=ENDED)) < trials:
        enough = optuna.study.MaxTrialsCallback(trials, states=ENDED)
        study.optimize(objective, callbacks=[announce, enough])


def best(study: optuna.Study, objective: Objective) -> Config:
    """The settings of the best trial, with the frames of a trial."""
    found = study.best_params  # which a stranger may have put there
    values = {name: value for name, value in found.items() if name in objective.space}
    return with_frames(settings(objective.base, values), study.user_attrs[FRAMES])


def draw(study: optuna.Study, folder: Path) -> None:
    """Draws Optuna's plots into the study's folder: how it went, which fields decided, and where these scored best."""
    drawn = {"history.png": plots.plot_optimization_history, "curves.png": plots.plot_intermediate_values}
    # Optuna sets a style for the whole process, and warns that it weighs fields by few trials.
    with matplotlib.rc_context({"figure.figsize": (13.0, 5.0)}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(study.get_trials(states=(TrialState.COMPLETE,))) >= 4:
            evaluator = PedAnovaImportanceEvaluator(target_quantile=0.25)  # the better quarter (Watanabe et al. 2023)
            weightiest = list(get_param_importances(study, evaluator=evaluator))[:4]
            drawn["importance.png"] = partial(plots.plot_param_importances, evaluator=evaluator)
            drawn["slices.png"] = partial(plots.plot_slice, params=weightiest)
        for name, plot in drawn.items():
            figure = np.ravel(plot(study))[0].figure
            charts.save(figure, folder / name, bbox_inches="tight")
            pyplot.close(figure)


def compare(objective: Objective, found: Config, name: str, seeds: Sequence[int]) -> list[comparison.Point]:
    """Trains the found settings and the base's with seeds that the search did not see; returns their scores.

    A second worker waits for the first, and trains nothing twice.
    """
    groups, run_dirs = {"base": with_frames(objective.base, found.frames), name: found}, list[Path]()
    with filelock.FileLock(objective.folder / ".lock"):
        for seed, (group, config) in ((seed, one) for seed in seeds for one in groups.items()):
            run_dirs.append(run_dir := objective.folder / "seeds" / f"{group}-seed{seed}")
            if not run_directory.has_ended(run_dir):
                objective.train(replace(config, seed=seed), run_dir)
    return comparison.read_runs(run_dirs, [objective.metric])
