"""The results of a study: its trials as a table and a CSV file, and the best settings as a config."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from muzero_jax.apps.study.tuning import study as studies
from muzero_jax.apps.study.tuning.space import Row, own_values, with_values
from muzero_jax.apps.study.tuning.trial import FRAMES, INTERVAL, MINUTES, PROBLEM, with_budget
from muzero_jax.own.files import write_whole
from muzero_jax.run import autotune, tables
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config

TABLE, BEST = "trials.csv", "best.json"
BASE = "the preset's own settings"


def settings(base: Config, trial: FrozenTrial) -> Config:
    """The config of a trial, but for its budget."""
    return with_values(base, trial.params)


def flags(base: Config, trial: FrozenTrial) -> str:
    """The flags that make a trial's settings of the base; words for the base itself."""
    return autotune.flags(base, settings(base, trial)) or BASE


def best_config(base: Config, study: optuna.Study) -> Config:
    """The settings of the best trial, with the frames of a trial as their budget and the base's own evaluations."""
    config = with_budget(settings(base, studies.best(study)), study.user_attrs)
    return replace(config, evaluation=base.evaluation)


def score(trial: FrozenTrial) -> float | None:
    """The final score; of a pruned trial the last one of its curve."""
    if trial.state == TrialState.COMPLETE:
        return trial.value
    return trial.intermediate_values.get(trial.last_step) if trial.last_step is not None else None


def outcome(trial: FrozenTrial) -> str:
    """The end of a trial in words: "84.4%", "pruned at 41.4%"."""
    if PROBLEM in trial.user_attrs:
        return "diverged"
    return f"{'pruned at ' if trial.state == TrialState.PRUNED else ''}{tables.percent(score(trial))}"


def table(base: Config, study: optuna.Study) -> str:
    """The trials that ended, the best first, for a person."""
    rows = [["trial", "score", "95% interval", "frames", "minutes", "end"]]
    for trial in _ranked(study):
        attributes = trial.user_attrs
        interval = tables.percent_interval(attributes[INTERVAL]) if INTERVAL in attributes else ""
        frames, minutes = attributes.get(FRAMES), attributes.get(MINUTES)
        spent = f"{frames:,}" if frames else "-", f"{minutes:.1f}" if minutes else "-"
        end = "diverged" if PROBLEM in attributes else "pruned" if trial.state == TrialState.PRUNED else ""
        name = f"{trial.number} (preset)" if flags(base, trial) == BASE else str(trial.number)
        rows.append([name, tables.percent(score(trial)), interval, *spent, end])
    return "\n".join(tables.align(rows, "<>>>><"))


def write_table(base: Config, rows: list[Row], study: optuna.Study, path: Path) -> None:
    """Writes every trial into a CSV file, also those that were lost, with a column for each field."""
    fields, text = list(own_values(base, rows)), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "score", "low", "high", "frames", "minutes", "problem", *fields])
    for trial in study.get_trials(deepcopy=False):
        given = trial.user_attrs
        low, high = given.get(INTERVAL, ("", "")) if trial.state == TrialState.COMPLETE else ("", "")
        spent = given.get(FRAMES, ""), given.get(MINUTES, "")
        values = [trial.params.get(field, "") for field in fields]
        shown = score(trial)
        state = trial.state.name.lower()
        writer.writerow(
            [trial.number, state, "" if shown is None else shown, low, high, *spent, given.get(PROBLEM, ""), *values]
        )
    write_whole(path, text.getvalue())


def write_best(base: Config, study: optuna.Study, path: Path) -> Config:
    """Writes the best settings so that `train.py --config` takes them; returns them."""
    config = best_config(base, study)
    write_whole(path, configs.to_json(config))
    return config


def _ranked(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that ended: by score, those that were pruned after all others."""
    ended = study.get_trials(deepcopy=False, states=studies.ENDED)

    def key(trial: FrozenTrial) -> Any:
        found = score(trial)
        return trial.state != TrialState.COMPLETE, -1.0 if found is None else -found, trial.number

    return sorted(ended, key=key)
