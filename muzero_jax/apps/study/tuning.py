"""Tuning by Optuna: any number of workers share one journal of trials, and each trial is a separate run.

All trials get equally many frames. Fields that trade time for strength therefore do not vary by default; which fields
vary, and in which range, is declared at the config's fields. A trial trains in the worker's own process, so that a
callback can prune it and Ctrl-C reaches the run's own handler. Because the best of many noisy scores is partly luck,
the best settings and the base's are trained at the end with seeds that the search never saw.
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
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, flat, with_values
from muzero_jax.config.fields import Range, differing, fields_of
from muzero_jax.config.session import Session
from muzero_jax.config.validation import validate
from muzero_jax.run import budget, charts
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.metrics import EXPLOITABILITY, Callbacks, Record, key_of
from muzero_jax.run.run import Diverged, Result
from muzero_jax.storage import run_directory

PARTS = 8
"""A trial is compared with the others, and may be pruned, after each of so many equal parts."""
FRAMES, BASE = "frames", "base"
"""Attributes of a study: the frames of a trial, and the config that trials vary."""
ENDED = (TrialState.COMPLETE, TrialState.PRUNED)


class Span(NamedTuple):
    """A range of numbers."""

    low: Any
    high: Any
    log: bool  # sampled on a log scale


Space = Mapping[str, Span | list[Any] | None]
"""The values of each field that varies, by its dotted name; None means the range declared at the field."""


def space(config: Config, chosen: Space) -> dict[str, Span | list[Any]]:
    """The search space: the chosen fields, or all that declare a range; each is widened to hold the config's value."""
    own = flat(config)
    found = dict[str, Span | list[Any]]()
    tuned = {field.name: field.fact.tuned for field in fields_of(Config) if field.fact.tuned}
    usual = {name: None for name, of in tuned.items() if _is_used(config, own[name], of)}
    for name, values in (chosen or usual).items():
        if values is None:
            if name not in tuned:
                raise ValueError(f"{name} has no range of its own; give one, such as 1e-4:1e-2, or some values")
            of = tuned[name]
            scale, most = (own[name], of.most) if of.is_relative else (1, of.high)
            values = Span(of.low * scale, min(most, of.high * scale), of.log)
        if isinstance(values, Span):
            low, high = min(values.low, own[name]), max(values.high, own[name])
            found[name] = Span(low, high, log=values.log and low > 0)
        else:
            found[name] = values if own[name] in values else [*values, own[name]]
    return found


def _is_used(config: Config, value: Any, of: Range) -> bool:
    # A field that is 0 is turned off if its range begins above 0.
    is_on = value != 0 or of.low == 0
    return is_on and of.policy in ("", config.search.policy) and (config.learns_dynamics or not of.of_dynamics)


def open_study(folder: Path, base: Config, metric: str) -> optuna.Study:
    """Opens the study of a metric in a folder, or creates it; raises ValueError if the folder holds something else."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it prints a traceback when a study is stopped
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # about options of TPE
    if folder.exists() and any(folder.iterdir()) and not (folder / "study.journal").exists():
        raise ValueError(f"{folder} exists but holds no study; choose another --study")
    folder.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.journal")))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2)
    direction = "minimize" if is_cost(metric) else "maximize"
    study = optuna.create_study(
        storage=storage, study_name="tune", direction=direction, pruner=pruner, load_if_exists=True
    )
    begun = config_file.from_json(study.user_attrs.get(BASE, config_file.to_json(base)))
    if begun != base:
        flags = " ".join(differing(base, begun))
        raise ValueError(f"{folder} was begun without {flags}; give its own flags, or another --study")
    for name, value in {BASE: config_file.to_json(base), FRAMES: base.frames}.items():
        if value is not None:
            study.set_user_attr(name, value)
    # Multivariate, because learning rate and weights depend on each other. A later worker has another seed and avoids
    # the values of running trials (`constant_liar`); otherwise all workers would sample the same.
    seed = base.seed + len(study.trials)
    study.sampler = optuna.samplers.TPESampler(multivariate=True, constant_liar=True, n_startup_trials=8, seed=seed)
    return study


def is_cost(metric: str) -> bool:
    """Whether less of a metric is better."""
    return key_of(metric) == EXPLOITABILITY


class Objective(NamedTuple):
    """Optuna's objective: trains with the values that a study suggests and returns the final score."""

    base: Config
    space: dict[str, Span | list[Any]]
    folder: Path  # of the study
    metric: str  # as `comparison.Point` names it
    session: Session
    num_devices: int

    def __call__(self, trial: optuna.Trial) -> float:
        """The final score of one trial; raises TrialPruned if it falls behind the other trials or diverges."""
        config = settings(self.base, {name: _suggest(trial, name, values) for name, values in self.space.items()})
        frames = trial.study.user_attrs.get(FRAMES)
        run_dir = self.folder / "trials" / (f"{trial.number:03d}" if frames else "base")
        seen: set[int] = {0}  # parts whose score has been reported

        def on_metrics(record: Record) -> None:
            score = record.get(key_of(self.metric))
            done = record.get("total/frames", 0)
            part = int(PARTS * done / frames + 1e-6) if frames else 0
            if score is not None and part < PARTS and part not in seen:
                seen.add(part)
                trial.report(score, part)
                if trial.should_prune():  # never in the first four trials, of which the base is one
                    raise optuna.TrialPruned

        try:
            self.train(with_frames(config, frames), run_dir, on_metrics)
        except Diverged as error:
            raise optuna.TrialPruned(str(error)) from error
        final = next((point for point in comparison.read_run(run_dir, "", [self.metric]) if point.is_final), None)
        if final is None:
            raise ValueError(f"--metric {self.metric} is not measured in such a run; docs/metrics.md lists what is")
        if not frames:  # the first trial has shown how many frames fit into the minutes
            trial.study.set_user_attr(FRAMES, final.frames)
        return final.score

    def train(self, config: Config, run_dir: Path, on_metrics: Callable[[Record], object] | None = None) -> None:
        """Trains a run to its end without output. A trial keeps its curves and versions but no checkpoints."""
        own = replace(self.session, run_dir=str(run_dir), overwrite=True, tensorboard=False, checkpoint_minutes=0.0)
        try:
            result = _train_quietly(config, own, self.num_devices, Callbacks(on_metrics=on_metrics))
        finally:
            if on_metrics and (run_dir / run_directory.VERSIONS).exists():
                shutil.rmtree(run_dir / run_directory.CHECKPOINTS, ignore_errors=True)
            jax.clear_caches()
            gc.collect()
        if result.interrupted:
            raise Stopped if result.by_system else KeyboardInterrupt


def _train_quietly(config: Config, session: Session, num_devices: int, callbacks: Callbacks) -> Result:
    """Trains a run without output; its state is free once this returns."""
    with start.prepare(config, session, num_devices, lambda line: None) as run:
        return start.train(run, callbacks)


def _suggest(trial: optuna.Trial, name: str, values: Span | list[Any]) -> Any:
    if not isinstance(values, Span):
        return trial.suggest_categorical(name, values)
    suggest = trial.suggest_int if isinstance(values.low, int) else trial.suggest_float
    return suggest(name, values.low, values.high, log=values.log)


def settings(base: Config, values: dict[str, Any]) -> Config:
    """The base with other values, rounded to three digits; raises ValueError if they make no valid config."""
    own = flat(base)
    rounded = {name: float(f"{x:.3g}") if isinstance(x, float) else x for name, x in values.items() if x != own[name]}
    return validate(with_values(base, rounded))


def with_frames(config: Config, frames: int | None) -> Config:
    """The config with `frames` as its only budget; unchanged while they are not known."""
    return replace(config, **dict.fromkeys(budget.FIELDS) | {"frames": frames}) if frames else config


def search(
    study: optuna.Study, objective: Objective, trials: int, announce: Callable[[optuna.Study, FrozenTrial], None]
) -> None:
    """Makes trials until `trials` have ended, counting those of all workers; the first has the base's own values.

    `announce` is called with each trial of this worker that ended. Trials stopped by Ctrl-C or `kill -9` do not count.
    """
    if not study.get_trials(states=ENDED):
        study.enqueue_trial({name: flat(objective.base)[name] for name in objective.space})
    if len(study.get_trials(states=ENDED)) < trials:
        enough = optuna.study.MaxTrialsCallback(trials, states=ENDED)
        study.optimize(objective, callbacks=[announce, enough])


def best(study: optuna.Study, objective: Objective) -> Config:
    """The settings of the best trial, with the frames of a trial."""
    found = study.best_params  # from a journal that a stranger may have written
    values = {name: value for name, value in found.items() if name in objective.space}
    return with_frames(settings(objective.base, values), study.user_attrs[FRAMES])


def draw(study: optuna.Study, folder: Path) -> None:
    """Draws Optuna's plots into the study's folder: history, curves, importances, and slices of the main fields."""
    drawn = {"history.png": plots.plot_optimization_history, "curves.png": plots.plot_intermediate_values}
    # Optuna changes the style of the whole process, and warns if few trials give the importances.
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

    A second worker waits for the first one, and repeats no finished run.
    """
    groups = {"base": with_frames(objective.base, found.frames), name: found}
    run_dirs = list[Path]()
    with filelock.FileLock(objective.folder / ".lock"):
        for seed, (group, config) in ((seed, one) for seed in seeds for one in groups.items()):
            run_dirs.append(run_dir := objective.folder / "seeds" / f"{group}-seed{seed}")
            if not run_directory.has_ended(run_dir):
                objective.train(replace(config, seed=seed), run_dir)
    return comparison.read_runs(run_dirs, [objective.metric])
