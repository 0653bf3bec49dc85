"""Compares groups of runs by any metric: a table of scores with intervals, and tests of differences.

Runs that differ only in their seed form a group. Its score is the interquartile mean of its runs, with percentile
intervals of the bootstrap over runs (Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice", section
4); with one game their stratified bootstrap has one stratum. A permutation test says whether two groups differ, and how
small a p-value so few seeds can reach.
"""

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from muzero_jax.apps.evaluation import tables
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, flat
from muzero_jax.config.fields import flag_of, names
from muzero_jax.run import metrics
from muzero_jax.storage import run_directory

Axis = Literal["frames", "updates", "minutes", "flops"]
AXES: tuple[Axis, ...] = get_args(Axis)
COLUMNS: dict[Axis, str] = {
    "frames": "total/frames",
    "updates": "total/updates",
    "minutes": metrics.MINUTES,
    "flops": metrics.FLOPS,
}
RESAMPLES = 2000
MOST_SPLITS, SAMPLED_SPLITS, SPLITS_AT_ONCE = 3_000_000, 100_000, 100_000
"""Splits that an exact permutation test goes through at most (12 runs against 12 have 2.7 million, some ten seconds),
those that are sampled beyond, and those in memory at once."""
WINNING_MOVES = "winning-moves"
"""The winning-move accuracy of the final weights; runs do not log it, so exact play measures it afterwards."""


class Point(NamedTuple):
    """One score of one run by one metric."""

    group: str
    run: str  # the run's folder
    seed: int
    frames: int
    updates: int
    minutes: float
    flops: float  # of the network's products, in self-play and learning
    metric: str  # a key of metrics.jsonl; scores lack their "eval/": "mcts:100"
    score: float
    is_final: bool  # at the run's end, from its longer matches
    games: int  # of the match; or the number of positions


HEADING = (
    "Final scores: interquartile means over runs, 95% intervals of the bootstrap; "
    "up to three runs: mean, lowest, highest"
)
"""The first line of the table of scores."""


class Estimate(NamedTuple):
    """An interquartile mean over runs with the ends of its 95% interval, which are NaN for one run.

    With two or three runs the interval goes from the lowest to the highest score, and is no 95% interval.
    """

    mean: Any
    low: Any
    high: Any
    count: int


def estimate(scores: Sequence[Any]) -> Estimate:
    """The interquartile mean over the first axis (one entry per run); with fewer than four runs, their mean."""
    from scipy import stats  # here, because it takes half a second to import

    values = np.asarray(scores, np.float64)
    mean = stats.trim_mean(values, 0.25, axis=0)
    if len(values) < 2:
        return Estimate(mean, np.nan * mean, np.nan * mean, len(values))
    chosen = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    resampled = stats.trim_mean(values[chosen], 0.25, axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return Estimate(mean, low, high, len(values))


def read_runs(
    run_dirs: Sequence[Path], wanted: Sequence[str] = (), judged: Mapping[Path, tuple[float, int]] | None = None
) -> list[Point]:
    """The scores of all runs by the wanted metrics; by default those that `read_run` chooses.

    `judged` has each run's winning-move accuracy and number of positions, if that is wanted. Raises ValueError for a
    folder that holds no run, and for runs of two games.
    """
    games = {config_file.inspect(run_dir).env_name: run_dir for run_dir in run_dirs}
    if len(games) > 1:
        one, other = list(games)[:2]
        raise ValueError(f"{games[one]} played {one} and {games[other]} {other}; compare runs of one game")
    points: list[Point] = []
    for run_dir, group in group_names(run_dirs).items():
        points += read_run(run_dir, group, wanted)
        if judged:
            score, count = judged[run_dir]
            last = metrics.last_record(run_dir, up_to_iteration=2**31)
            seed = config_file.inspect(run_dir).seed
            points.append(Point(group, str(run_dir), seed, *spent(last), WINNING_MOVES, score, True, count))
    return points


def read_run(run_dir: Path, group: str, wanted: Sequence[str] = ()) -> list[Point]:
    """The scores of one run from `metrics.jsonl`: by default those of its matches, or its mean return.

    If the run has ended, its last score is final. For a metric of training, which is noisy, the final score is the mean
    of the last tenth of its records.
    """
    config = config_file.inspect(run_dir)
    found = dict[str, list[Point]]()
    matches = run_directory.read_summary(run_dir).get("strength", {})
    for record in metrics.read_records(run_dir):
        for metric in wanted or metrics.scores(record) or [metrics.RETURN]:
            if (score := record.get(metrics.key_of(metric))) is not None:
                games = matches.get(metrics.opponent_of(metric), {}).get("games", config.evaluation.games)
                point = Point(group, str(run_dir), config.seed, *spent(record), metric, score, False, games)
                found.setdefault(metric, []).append(point)
    for metric, points in found.items() if run_directory.has_ended(run_dir) else ():
        last = 1 if metrics.is_measured(metric) else max(1, len(points) // 10)
        final = np.mean([point.score for point in points[-last:]])
        points[-1] = points[-1]._replace(score=float(final), is_final=True)
    return sorted((point for points in found.values() for point in points), key=lambda point: point.frames)


def spent(record: Mapping[str, Any]) -> tuple[int, int, float, float]:
    """What a run had spent at a record: frames, updates, minutes and FLOPs."""
    frames, updates, minutes, flops = (record.get(column) or 0 for column in COLUMNS.values())
    return int(frames), int(updates), float(minutes), float(flops)


def group_names(run_dirs: Sequence[Path]) -> dict[Path, str]:
    """A name for each run's group: the common start of its folders' names, plus its own flags if needed."""
    flags = {run_dir: _flags(run_dir) for run_dir in run_dirs}
    shared = set.intersection(*(set(of.items()) for of in flags.values())) if flags else set()
    own = {
        run_dir: " ".join(f"{name} {value}" for name, value in sorted(of.items() - shared))
        for run_dir, of in flags.items()
    }
    stems = {key: [_stem(run_dir) for run_dir in run_dirs if own[run_dir] == key] for key in own.values()}
    common = {key: os.path.commonprefix(names).rstrip("-_") or names[0] for key, names in stems.items()}
    is_clear = {key: list(common.values()).count(name) == 1 for key, name in common.items()}
    return {run_dir: common[key] if is_clear[key] else f"{common[key]} {key}" for run_dir, key in own.items()}


def _stem(run_dir: Path) -> str:
    """A run's folder without its seed: "hex-5" of runs/hex-5-seed0, "rules" of study/rules/seed0."""
    name = re.sub(r"[-_]?seed\d+$", "", run_dir.resolve().name)
    return name or run_dir.resolve().parent.name


def _flags(run_dir: Path) -> dict[str, str]:
    """The run's config as texts by flag, without fields such as the seed that differ within a group."""
    config = config_file.inspect(run_dir)
    flags = {flag_of(name): str(value) for name, value in flat(config).items() if name not in names(Config, "own")}
    kept = run_dir / run_directory.ALGORITHM
    if config.algorithm.is_record:  # the code is not stored
        flags["--algorithm"] = _stem(run_dir)
    elif kept.is_file():
        flags["--algorithm"] = hashlib.sha256(kept.read_bytes()).hexdigest()[:8]
    return flags


def groups_of(points: Iterable[Point]) -> dict[str, list[Point]]:
    """The points by group, in order of first appearance."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.group, []).append(point)
    return groups


def final_scores(points: Iterable[Point]) -> dict[str, list[float]]:
    """The final scores by metric, one for each run."""
    found: dict[str, list[float]] = {}
    for point in points:
        if point.is_final:
            found.setdefault(point.metric, []).append(point.score)
    return found


def difference(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """(p, least p): the permutation test of two groups' final scores, and the smallest p that it can give.

    p says how often splits of all these scores into two such groups have means as far apart (two-sided): of all splits
    up to `MOST_SPLITS`, so that p is exact, else of `SAMPLED_SPLITS` random ones with a fixed seed.
    """
    from scipy import stats

    def apart(one: np.ndarray, other: np.ndarray, axis: int) -> Any:
        return abs(one.mean(axis=axis) - other.mean(axis=axis))

    exact = is_exact(len(one), len(other))
    found = stats.permutation_test(
        (one, other),
        apart,
        n_resamples=np.inf if exact else SAMPLED_SPLITS,
        batch=SPLITS_AT_ONCE,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    alike = 2 if len(one) == len(other) else 1  # splits into equal groups come in pairs that are as far apart
    least = min(1.0, alike / math.comb(len(one) + len(other), len(one))) if exact else 1 / (SAMPLED_SPLITS + 1)
    return max(least, float(found.pvalue)), least


def is_exact(one: int, other: int) -> bool:
    """Whether the test of so many runs against so many others goes through all splits."""
    return math.comb(one + other, one) <= MOST_SPLITS


def result(points: Sequence[Point]) -> dict[str, Any]:
    """The final scores as plain numbers, by group and metric."""
    groups = {group: final_scores(of) for group, of in groups_of(points).items()}
    return {
        group: {
            metric: {name: None if np.isnan(x) else float(x) for name, x in estimate(scores)._asdict().items()}
            for metric, scores in of.items()
        }
        for group, of in groups.items()
    }


def format_table(points: Sequence[Point]) -> str:
    """One line for each group: its number of runs, the mean amounts that they spent, and its final scores."""
    wanted = list(dict.fromkeys(point.metric for point in points if point.is_final))
    rows = [["group", "runs", *AXES, *wanted]]
    for group, found in groups_of(points).items():
        runs = {point.run: point for point in found}  # the last point of each run
        scores = final_scores(found)
        means = np.mean([[getattr(point, axis) for axis in AXES] for point in runs.values()], axis=0)
        spent = (format(mean, kind) for mean, kind in zip(means, (",.0f", ",.0f", ".1f", ".1e"), strict=True))
        rows.append([group, str(len(runs)), *spent, *(_show(scores.get(metric), metric) for metric in wanted)])
    return "\n".join([HEADING, *tables.align(rows, "<>")])


def format_differences(points: Sequence[Point]) -> str:
    """A line for each metric and group, which compares it with the first group; "" if there is nothing to compare."""
    rows: list[list[str]] = []
    all_exact = True
    (first, own), *others = ((group, final_scores(of)) for group, of in groups_of(points).items())
    for group, found in others:
        for metric in (name for name in own if min(len(own[name]), len(found.get(name, ()))) > 1):
            p, least = difference(own[metric], found[metric])
            all_exact = all_exact and is_exact(len(own[metric]), len(found[metric]))
            runs = f"{len(found[metric])} against {len(own[metric])} runs cannot show less than {least:.2g}"
            rows.append([f"{group} against {first}", metric, f"p = {p:.2g}", runs])
    how = "the exact permutation test" if all_exact else f"the permutation test, {SAMPLED_SPLITS:,} random splits"
    return "\n".join([f"Do they differ? By {how}:", *tables.align(rows, "<")]) if rows else ""


def report(points: Sequence[Point]) -> str:
    """The table of scores, and below it the tests of differences."""
    return "\n\n".join(filter(None, (format_table(points), format_differences(points))))


def _show(scores: Sequence[float] | None, metric: str) -> str:
    if scores is None:
        return "-"
    found = estimate(scores)
    unit, factor, digits = ("%", 100, ".1f") if metrics.is_share(metric) else ("", 1, ".4g")
    mean, low, high = (format(factor * value, digits) for value in found[:3])
    return f"{mean}{unit}" if len(scores) == 1 else f"{mean}{unit} [{low}, {high}]"
