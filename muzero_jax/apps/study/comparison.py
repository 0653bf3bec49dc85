"""Several runs of each of several groups: their scores with intervals, as a table.

Runs that differ in their seed alone are a group. A group is judged by the interquartile mean of its runs, with
percentile intervals of the bootstrap over runs (Agarwal et al. 2021, "Deep RL at the edge of the statistical
precipice", section 4). There is one game, so theirs is the stratified bootstrap with one stratum.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from muzero_jax.run import metrics, tables
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import names

Axis = Literal["frames", "updates", "minutes", "flops"]
AXES: tuple[Axis, ...] = get_args(Axis)
COLUMNS: dict[Axis, str] = {
    "frames": "total/frames",
    "updates": "total/updates",
    "minutes": "time/minutes",
    "flops": "total/flops",
}
KINDS: dict[Axis, Callable[[float], float]] = {"frames": int, "updates": int, "minutes": float, "flops": float}
RESAMPLES = 2000


class Point(NamedTuple):
    """One score of one run."""

    group: str
    run: str  # tells the runs of a group apart
    seed: int
    frames: int
    updates: int
    minutes: float
    flops: float  # of the network's products, in self-play and learning
    opponent: str
    score: float  # in [0, 1]
    is_final: bool  # of the longer matches at the run's end
    games: int  # of the match


HEADING = (
    "Final scores: interquartile means over runs, 95% intervals of the bootstrap; "
    "up to three runs: mean, lowest, highest"
)
"""The first line of the table of scores."""


class Estimate(NamedTuple):
    """An interquartile mean over runs and the ends of its 95% interval, which are NaN for one run.

    Of two or three runs the interval of the bootstrap goes from the lowest to the highest, and is no 95% interval.
    """

    mean: Any
    low: Any
    high: Any
    count: int


def estimate(scores: Sequence[Any]) -> Estimate:
    """The interquartile mean over the first axis, one entry a run; with fewer than four runs it is their mean."""
    from scipy import stats  # here, because it takes half a second to import

    values = np.asarray(scores, np.float64)
    mean = stats.trim_mean(values, 0.25, axis=0)
    if len(values) < 2:
        return Estimate(mean, np.nan * mean, np.nan * mean, len(values))
    chosen = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    resampled = stats.trim_mean(values[chosen], 0.25, axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return Estimate(mean, low, high, len(values))


def read_runs(run_dirs: Sequence[Path]) -> list[Point]:
    """The scores of all runs, if they have any.

    Raises ValueError in one sentence for a folder that holds no run, and for runs of two games.
    """
    games = {configs.inspect(run_dir).env_name: run_dir for run_dir in run_dirs}
    if len(games) > 1:
        one, other = list(games)[:2]
        raise ValueError(f"{games[one]} played {one} and {games[other]} {other}; compare runs of one game")
    return [point for run_dir, group in group_names(run_dirs).items() for point in read_run(run_dir, group)]


def read_run(run_dir: Path, group: str) -> list[Point]:
    """The scores of one run: those of `metrics.jsonl`, of whose last record the final matches take the place."""
    config = configs.inspect(run_dir)
    records = [record for record in metrics.read_records(run_dir) if metrics.scores(record)]
    matches = run_directory.strength(run_dir)
    final = {name: match["score"] for name, match in matches.items()}
    found: list[Point] = []
    for record in records:
        is_final = bool(final) and record is records[-1]
        spent = {axis: KINDS[axis](record.get(column) or 0) for axis, column in COLUMNS.items()}
        scores = final if is_final else metrics.scores(record)
        point = partial(Point, group, str(run_dir), config.seed, is_final=is_final, **spent)
        for name, score in scores.items():
            games = matches[name]["games"] if is_final else config.evaluation.games
            found.append(point(opponent=name, score=score, games=games))
    return found


def group_names(run_dirs: Sequence[Path]) -> dict[Path, str]:
    """A name for the group of each run: what its runs' folders have in common, else the flags that are its own."""
    flags = {run_dir: _flags(run_dir) for run_dir in run_dirs}
    keys = {run_dir: json.dumps(flags[run_dir], sort_keys=True) for run_dir in run_dirs}
    groups = {key: [run_dir for run_dir in run_dirs if keys[run_dir] == key] for key in keys.values()}
    stems = {key: [_stem(run_dir) for run_dir in runs] for key, runs in groups.items()}
    common = {key: os.path.commonprefix(names).rstrip("-_") or names[0] for key, names in stems.items()}
    shared = set.intersection(*(set(values.items()) for values in flags.values())) if flags else set()

    def name(key: str) -> str:
        own = dict(set(flags[groups[key][0]].items()) - shared)
        shown = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in sorted(own.items()))
        is_clear = common[key] and list(common.values()).count(common[key]) == 1
        return common[key] if is_clear else f"{common[key]} {shown}".strip()

    return {run_dir: name(keys[run_dir]) for run_dir in run_dirs}


def _stem(run_dir: Path) -> str:
    """A run's folder without its seed: "hex-5" of runs/hex-5-seed0, "rules" of study/rules/seed0."""
    name = re.sub(r"[-_]?seed\d+$", "", run_dir.resolve().name)
    return name or run_dir.resolve().parent.name


def _flags(run_dir: Path) -> dict[str, str]:
    """The run's config as texts by dotted name, without what a run has for itself."""
    config = configs.inspect(run_dir)
    flags = {name: str(value) for name, value in configs.flat(config).items() if name not in names(Config, "own")}
    if config.algorithm.file == configs.IN_PYTHON:  # records have no names of their own
        flags["algorithm.file"] += f" ({_stem(run_dir)})"
    kept = run_dir / run_directory.ALGORITHM
    return flags | ({"algorithm.text": hashlib.sha256(kept.read_bytes()).hexdigest()[:8]} if kept.is_file() else {})


def are_alike(one: Config, other: Config, *, budgets: bool = True) -> bool:
    """Whether two runs differ in nothing but what a run has for itself; with `budgets` False, in their budgets too."""
    return set(differing([one, other])) <= set(() if budgets else names(Config, "budget"))


def differing(runs: Sequence[Config]) -> list[str]:
    """The fields in which runs differ, apart from what a run has for itself."""
    first, *others = map(configs.flat, runs)
    return [
        name
        for name, value in first.items()
        if name not in names(Config, "own") and any(other[name] != value for other in others)
    ]


def groups_of(points: Iterable[Point]) -> dict[str, list[Point]]:
    """The points by group, in the order in which groups come first."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.group, []).append(point)
    return groups


def final_scores(points: Iterable[Point]) -> dict[str, Estimate]:
    """One group's score against each opponent at the end of its runs."""
    by_opponent: dict[str, list[float]] = {}
    for point in points:
        if point.is_final:
            by_opponent.setdefault(point.opponent, []).append(point.score)
    return {opponent: estimate(scores) for opponent, scores in by_opponent.items()}


def expected(points: Sequence[Point], opponent: str, num_runs: int) -> tuple[float, float]:
    """Where the mean final score of `num_runs` new runs lies in 95 of 100 cases, by what a group's runs scored.

    The prediction interval of a normal mean. Runs that scored alike still played finite matches, so the spread is at
    least that of their games (with one win and one loss added, which no perfect score does away with).
    """
    from scipy import stats

    finals = [point for point in points if point.is_final and point.opponent == opponent]
    scores, games = np.array([point.score for point in finals]), float(np.mean([point.games for point in finals]))
    smoothed = (scores.mean() * games + 1) / (games + 2)
    variance = smoothed * (1 - smoothed) / games
    if len(scores) > 1:
        variance = max(variance, scores.var(ddof=1))
    quantile = stats.t.ppf(0.975, len(scores) - 1) if len(scores) > 1 else stats.norm.ppf(0.975)
    half = float(quantile * np.sqrt(variance * (1 / len(scores) + 1 / num_runs)))
    return max(0.0, float(scores.mean()) - half), min(1.0, float(scores.mean()) + half)


def result(points: Sequence[Point]) -> dict[str, Any]:
    """The final scores as plain numbers, by group and opponent."""
    return {
        group: {name: dict(zip(Estimate._fields, map(_plain, found), strict=True)) for name, found in scores.items()}
        for group, scores in ((group, final_scores(of)) for group, of in groups_of(points).items())
    }


def _plain(value: Any) -> float | int | None:
    return None if np.isnan(value) else value if isinstance(value, int) else float(value)


def format_table(points: Sequence[Point]) -> str:
    """One line a group: its runs, what they spent on the way, and its final scores."""
    opponents = list(dict.fromkeys(point.opponent for point in points if point.is_final))
    rows = [["group", "runs", *AXES, *opponents]]
    for group, found in groups_of(points).items():
        runs = {point.run: point for point in found}  # the last of each
        means = np.mean([[getattr(point, axis) for axis in AXES] for point in runs.values()], axis=0)
        frames, updates, minutes, flops = means
        scores = final_scores(found)
        shown = [_show(scores[opponent]) if opponent in scores else "-" for opponent in opponents]
        spent = f"{frames:,.0f}", f"{updates:,.0f}", f"{minutes:.1f}", f"{flops:.1e}"
        rows.append([group, str(len(runs)), *spent, *shown])
    return "\n".join([HEADING, *tables.align(rows, "<>")])


def _show(found: Estimate) -> str:
    interval = "" if np.isnan(found.low) else f" {tables.percent_interval((found.low, found.high))}"
    return tables.percent(found.mean) + interval
