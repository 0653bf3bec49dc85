"""The pictures of a study: how the search went, which fields decided, and what the better trials have in common."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from matplotlib.colors import Normalize
from optuna.trial import FrozenTrial, TrialState

from muzero_jax.evaluation.charts import BLUE, RED, make_figure
from muzero_jax.run.tuning import study as studies
from muzero_jax.run.tuning.space import Row, Span, Value
from muzero_jax.run.tuning.trial import FRAMES, RUNGS

HISTORY, IMPORTANCE, PARALLEL = "history.png", "importance.png", "parallel.png"
GREY = "0.6"


def draw_all(study: optuna.Study, rows: Sequence[Row], own: Mapping[str, Value], folder: Path) -> list[Path]:
    """Draws what there is to draw into the study's folder; returns the files.

    `own` are the base's values, whose trial is marked in each picture.
    """
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.state in studies.ENDED]
    drawn = [_history(trials, own, study.user_attrs[FRAMES], folder / HISTORY)]
    if weights := studies.importances(study):
        drawn.append(_importance(weights, folder / IMPORTANCE))
    if studies.count(study, TrialState.COMPLETE) > 1:
        drawn.append(_parallel([t for t in trials if t.value is not None], rows, own, folder / PARALLEL))
    return drawn


def _history(trials: Sequence[FrozenTrial], own: Mapping[str, Value], frames: int, path: Path) -> Path:
    """Left the final scores in the order of trials, right the curves at equal frames."""
    figure = make_figure((11.0, 4.0))
    scores, curves = figure.subplots(1, 2)
    ended = [trial for trial in trials if trial.value is not None]
    pruned = [trial for trial in trials if trial.value is None and trial.intermediate_values]
    best = list(itertools.accumulate((_value(trial) for trial in ended), max))
    scores.step([t.number for t in ended], best, where="post", color=BLUE, linewidth=1.2, label="best so far")
    scores.plot([t.number for t in ended], [t.value for t in ended], "o", color=BLUE, markersize=5, label="trial")
    last = [trial.intermediate_values[max(trial.intermediate_values)] for trial in pruned]
    if pruned:
        scores.plot([t.number for t in pruned], last, "x", color=GREY, markersize=5, label="pruned, its last score")
    for trial in trials:
        is_own = trial.params == dict(own)
        steps = sorted(trial.intermediate_values)
        places, values = [step * frames / RUNGS for step in steps], [trial.intermediate_values[s] for s in steps]
        style = {"color": RED, "zorder": 3} if is_own else {"color": BLUE if trial.value is not None else GREY}
        curves.plot(places, values, marker=".", linewidth=1.8 if is_own else 0.8, **style)
        if is_own and trial.value is not None:
            scores.plot([trial.number], [trial.value], "o", color=RED, markersize=7, label="the preset's settings")
            scores.axhline(trial.value, color=RED, linewidth=0.8, linestyle="--")
    _finish(scores, "Trials", "trial", "final score")
    _finish(curves, "Curves at equal frames", "frames", "score while training")
    curves.set_xlim(0, 1.03 * frames)
    scores.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
    figure.savefig(path, dpi=120)
    return path


def _importance(weights: Mapping[str, float], path: Path) -> Path:
    """A bar for each field."""
    names = list(weights)[::-1]
    figure = make_figure((7.5, 1.2 + 0.32 * len(names)))
    panel = figure.subplots()
    panel.barh(range(len(names)), [weights[name] for name in names], color=BLUE, height=0.7)
    for place, name in enumerate(names):
        panel.text(weights[name] + 0.005, place, f"{weights[name]:.0%}", va="center", fontsize="small")
    panel.set_yticks(range(len(names)), names)
    _finish(panel, "Which fields decided", "share in telling the better quarter from the rest (PED-ANOVA)", "")
    panel.grid(False, axis="y")
    panel.set_xlim(0, 1.15 * max(weights.values()) or 1)
    figure.savefig(path, dpi=120)
    return path


def _parallel(trials: Sequence[FrozenTrial], rows: Sequence[Row], own: Mapping[str, Value], path: Path) -> Path:
    """A line for each trial through its values; the darker, the better. The base's is dashed."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable

    figure = make_figure((max(6.0, 1.6 + 1.25 * len(rows)), 4.8))
    panel = figure.subplots()
    ranked = sorted(trials, key=_value)
    values = np.array([_value(trial) for trial in ranked])
    scale = ScalarMappable(Normalize(values[0], max(values[-1], values[0] + 1e-3)), colormaps["viridis_r"])
    for trial, shade in zip(ranked, scale.to_rgba(values), strict=True):
        heights = [_height(row, trial.params[row.field]) for row in rows]
        is_own = trial.params == dict(own)
        colour = RED if is_own else shade
        panel.plot(
            range(len(rows)), heights, color=colour, linestyle="--" if is_own else "-", linewidth=1.6, zorder=2 + is_own
        )
    for place, row in enumerate(rows):
        panel.axvline(place, color="0.8", linewidth=0.8, zorder=0)
        for value, height in _marks(row):
            panel.text(place + 0.04, height, f"{value:.3g}", fontsize="x-small", color="0.3", va="center")
    panel.set_xticks(range(len(rows)), [row.field.replace(".", ".\n").replace("_", " ") for row in rows], fontsize=8)
    panel.tick_params(length=0)
    panel.set_yticks([])
    panel.set(xlim=(-0.2, len(rows) - 0.5), ylim=(-0.06, 1.06))
    panel.spines[:].set_visible(False)
    panel.set_title("Trials that were not pruned; dashed: the preset's settings", loc="left", fontweight="bold")
    figure.colorbar(scale, ax=panel, label="final score", pad=0.01)
    figure.savefig(path, dpi=120)
    return path


def _value(trial: FrozenTrial) -> float:
    """The score of a trial that ended."""
    return trial.value or 0.0


def _height(row: Row, value: Value) -> float:
    """The place of a value on its field's axis, from 0 to 1."""
    if not isinstance(row, Span):
        return row.values.index(value) / max(1, len(row.values) - 1)
    low, high, value = (math.log(v) if row.log else float(v) for v in (row.low, row.high, value))
    return (value - low) / (high - low)


def _marks(row: Row) -> list[tuple[Value, float]]:
    """The values that are written beside a field's axis."""
    values = (row.low, row.high) if isinstance(row, Span) else row.values
    return [(value, _height(row, value)) for value in values]


def _finish(panel: Any, title: str, xlabel: str, ylabel: str) -> None:
    panel.set_title(title, loc="left", fontweight="bold")
    panel.set(xlabel=xlabel, ylabel=ylabel)
    panel.grid(True, color="0.9")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
