"""Learning curves of groups of runs (`comparison`) with intervals, over frames, updates, minutes or FLOPs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from muzero_jax.apps.study.comparison import AXES, Axis, Estimate, Point, estimate, groups_of
from muzero_jax.run import charts, metrics

CURVE_POINTS = 40
DASHES = ("-", "--", ":")


def curve(points: Iterable[Point], metric: str, axis: Axis) -> tuple[np.ndarray, Estimate] | None:
    """One group's score on the part of the axis that all its runs cover; None if there is no such part.

    Scores between two evaluations of a run are interpolated linearly.
    """
    runs = traces(points, metric, axis)
    first = max((spent[0] for spent, _ in runs), default=0)
    last = min((spent[-1] for spent, _ in runs), default=0)
    if last <= first:
        return None
    places = np.linspace(first, last, CURVE_POINTS)
    return places, estimate([np.interp(places, spent, scores) for spent, scores in runs])


def traces(points: Iterable[Point], metric: str, axis: Axis) -> list[np.ndarray]:
    """For each run [2, evaluations]: amounts spent and scores; a final score replaces another at the same place."""
    runs: dict[str, dict[float, float]] = {}
    for point in sorted(points, key=lambda point: point.is_final):
        if point.metric == metric:
            runs.setdefault(point.run, {})[getattr(point, axis)] = point.score
    return [np.asarray(sorted(run.items())).T for run in runs.values()]


def has_curves(points: Iterable[Point]) -> bool:
    """Whether any run was measured while it trained."""
    return any(not point.is_final for point in points)


def plot(points: Sequence[Point], path: Path, *, wanted: Sequence[str] = (), axes: Sequence[Axis] = AXES) -> None:
    """Draws learning curves with their intervals: a row for each metric, a column for each axis.

    The default metric is the strongest rollout MCTS that all met, not only at the end. A group whose runs share no part
    of an axis is drawn run by run. Raises ValueError as `charts.check_path`, and for a metric that a group lacks.
    """
    if not points:
        raise ValueError("these runs have no scores of their training yet, so there are no curves to draw")
    groups = groups_of(points)
    known = set.intersection(*({point.metric for point in of} for of in groups.values()))
    known &= {point.metric for point in points if not point.is_final}
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"not all runs measured {unknown[0]} during training; their metrics.jsonl has what they did")
    if not known:
        raise ValueError("all these runs have in common are final scores, so there are no curves to draw")
    shown = list(wanted) or sorted(known, key=_budget)[-1:]
    plot_rows([(metric, metric, points) for metric in shown], path, axes)


def plot_rows(rows: Sequence[tuple[str, str, Sequence[Point]]], path: Path, axes: Sequence[Axis] = AXES) -> None:
    """Draws a row for each (label, metric, points), with a legend of the groups, and a column for each axis.

    Raises ValueError as `charts.check_path` does.
    """
    charts.check_path(path)
    figure = charts.make_figure((4.2 * len(axes) + 2.4, 3.6 * len(rows)))
    grid = figure.subplots(len(rows), len(axes), squeeze=False)
    for row, (label, metric, points) in zip(grid, rows, strict=True):
        for panel, axis in zip(row, axes, strict=True):
            _panel(panel, groups_of(points), metric, axis)
        row[0].set_ylabel(label)
        row[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize="small")
    charts.save(figure, path)


def _budget(metric: str) -> int:
    """The number at the end of an opponent's name, by which opponents are ordered."""
    digits = re.search(r":(\d+)$", metric)
    return int(digits[1]) if digits else 0


def _panel(panel: Any, groups: Mapping[str, list[Point]], metric: str, axis: Axis) -> None:
    for number, (name, points) in enumerate(groups.items()):
        colour = charts.COLOURS[number % len(charts.COLOURS)]
        dashes = DASHES[number // len(charts.COLOURS) % 3]
        found = curve(points, metric, axis)
        runs = traces(points, metric, axis)
        label = f"{name} ({len(runs)})"
        if not found:
            for index, run in enumerate(runs):
                style = {"color": colour, "linestyle": dashes, "linewidth": 0.8, "marker": "o", "markersize": 4}
                panel.plot(*run, **style, label=None if index else label)
            continue
        places, score = found
        panel.plot(places, score.mean, color=colour, linestyle=dashes, label=label)
        if len(groups) <= len(charts.COLOURS):  # more intervals would hide each other
            panel.fill_between(places, score.low, score.high, color=colour, alpha=0.15, linewidth=0)
    panel.set(xlabel=axis)
    if metrics.is_share(metric):
        panel.set_ylim(-0.03, 1.03)
    panel.set_xlim(left=0)
    panel.locator_params(axis="x", nbins=5)
    panel.grid(True, color="0.9")
    panel.spines[["top", "right"]].set_visible(False)
