"""Trains a published result again: python scripts/reproduce.py family --groups learned rules --seeds 1

A result is a folder in docs/results with a `study.json`: the flags of every group of runs, their seeds, and the
hardware and versions. Next to it are every score (`scores.csv`), and the table and curves made from the scores.
New runs agree with a result if their mean final score is in the 95% prediction interval of the result's runs.
`--verify` makes the table again from the scores and trains nothing. `--record` adds the scores of the chosen runs to
the result and replaces older scores of the same runs, so that a large result can be recorded part by part.
"""

import csv
import itertools
import json
import shlex
import sys
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands import child, parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.apps.study.comparison import Point
from muzero_jax.config.fields import Fact, PositiveInt
from muzero_jax.run import metrics
from muzero_jax.storage import run_directory
from scripts.benchmarks import report

RESULTS = report.ROOT / "docs" / "results"
STUDY = "study.json"
SCORES = "scores.csv"
TABLE = "table.txt"
CURVES = "curves.png"
MOST_POINTS = 50
BASELINE = "ppo-"
"""The prefix of a baseline's group, before the name of the group with which it is compared."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What to do with a result."""

    name: Annotated[str, Fact(positional=True)]
    """folder in docs/results"""
    groups: tuple[str, ...] = ()
    """train only these groups of runs; default: all"""
    seeds: PositiveInt | None = None
    """train only the first N seeds; default: all"""
    runs: Path | None = None
    """folder of the runs, GROUP/seedN; default: runs/NAME. Runs that have ended are not repeated"""
    verify: bool = False
    """only compare the table with the scores, without training"""
    record: bool = False
    """add the runs' scores to the result, instead of comparing them with it"""


class Study(NamedTuple):
    """The content of a result's `study.json`."""

    flags: str  # of every run
    groups: dict[str, str]  # further flags of each group
    seeds: list[int]
    made: dict[str, Any]  # hardware, date, commit and versions


def main(arguments: list[str]) -> int:
    """Runs the command; 0 if the runs or the table agree with the result, else 1."""
    command = parser.read(Arguments, arguments, __doc__)
    folder = RESULTS / command.name
    study = read_study(folder)
    if not command.record and not (folder / SCORES).exists():
        raise ValueError(f"{command.name} was not recorded yet; train its runs with --record")
    if command.verify:
        return verify(folder)
    if unknown := [name for name in command.groups if name not in study.groups]:
        raise ValueError(f"{command.name} has no group {unknown[0]}; choose one of {', '.join(study.groups)}")
    groups = command.groups or list(study.groups)
    if not command.record and (new := set(groups) - set(comparison.groups_of(read_scores(folder / SCORES)))):
        raise ValueError(
            f"{command.name} has no scores of {', '.join(sorted(new))} yet; train these runs with --record"
        )
    chosen = itertools.product(groups, study.seeds[: command.seeds])
    where = command.runs or report.ROOT / "runs" / command.name
    runs = {(group, seed): where / group / f"seed{seed}" for group, seed in chosen}
    missing = [key for key, run_dir in runs.items() if not run_directory.has_ended(run_dir)]
    for number, (group, seed) in enumerate(missing, 1):
        print(f"{group}, seed {seed}: run {number} of {len(missing)}", flush=True)
        train(shlex.split(f"{study.flags} {study.groups[group]}"), seed, runs[group, seed])
    points = [
        point._replace(run=f"{group}/seed{seed}")
        for (group, seed), run_dir in runs.items()
        for point in thin(comparison.read_run(run_dir, group))
    ]
    return record(folder, study, points) if command.record else compare(points, read_scores(folder / SCORES))


def read_study(folder: Path) -> Study:
    """The study of a result; if there is none, ValueError lists the results."""
    try:
        return Study(**{"made": {}} | json.loads((folder / STUDY).read_text(encoding="utf-8")))
    except OSError as error:
        known = ", ".join(sorted(path.parent.name for path in RESULTS.glob(f"*/{STUDY}")))
        raise ValueError(f"there is no result {folder.name}; choose one of {known or '(there are none)'}") from error


def train(flags: list[str], seed: int, run_dir: Path) -> None:
    """Trains or continues one run; ValueError if it fails."""
    own = ["--resume"] if run_directory.holds_run(run_dir) else ["--seed", str(seed)]
    if child.wait([*flags, *own, "--run-dir", str(run_dir)]):
        raise ValueError(f"the run in {run_dir} has not ended; run the same command again to continue it")


def read_scores(path: Path) -> list[Point]:
    """The scores of a result."""
    kinds = typing.get_type_hints(Point) | {"is_final": lambda text: text == "True"}
    with path.open(newline="", encoding="utf-8") as file:
        return [Point(**{name: kinds[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


def thin(points: list[Point]) -> list[Point]:
    """A run's points, at most `MOST_POINTS` per metric before its end: means of neighbours, each at the last's place.

    A metric of training, such as the return of a single-player game, has a point every few seconds.
    """
    kept = [point for point in points if point.is_final]
    on_the_way: dict[str, list[Point]] = {}
    for point in points:
        if not point.is_final:
            on_the_way.setdefault(point.metric, []).append(point)
    for found in on_the_way.values():
        for some in np.array_split(np.arange(len(found)), min(len(found), MOST_POINTS)):
            mean = float(np.mean([found[index].score for index in some]))
            kept.append(found[some[-1]]._replace(score=mean))
    return sorted(kept, key=lambda point: point.frames)


def record(folder: Path, study: Study, points: list[Point]) -> int:
    """Writes a result: scores, table, curves if there are any, and `study.json`."""
    new = {point.run for point in points}
    old = read_scores(folder / SCORES) if (folder / SCORES).exists() else []
    order = {group: place for place, group in enumerate(study.groups)}  # others, such as baselines, are last
    points = [point for point in old if point.run not in new] + points
    points.sort(key=lambda point: (order.get(point.group, len(order)), point.run))
    with (folder / SCORES).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([Point._fields, *points])
    (folder / TABLE).write_text(comparison.format_table(points) + "\n", encoding="utf-8")
    if learning_curves.has_curves(points):
        draw(study, points, folder / CURVES)
    about = report.describe(sys.argv)
    made = study.made | {key: about[key] for key in ("date", "commit", "python", "versions")}
    (folder / STUDY).write_text(json.dumps(study._replace(made=made)._asdict(), indent=2) + "\n", encoding="utf-8")
    print(f"{comparison.format_table(points)}\nwritten to {folder}")
    return 0


def draw(study: Study, points: list[Point], path: Path) -> None:
    """Draws the learning curves; a study of single-player games gets a row for each game, with its baseline."""
    if all(point.metric != metrics.RETURN for point in points):
        return learning_curves.plot(points, path)
    games = {group: flags.split()[1] for group, flags in study.groups.items() if flags.startswith("--env ")}
    rows: dict[str, list[Point]] = {}
    for point in points:
        if game := games.get(point.group.removeprefix(BASELINE)):
            rows.setdefault(game, []).append(point)
    learning_curves.plot_rows([(game, metrics.RETURN, of) for game, of in rows.items()], path, ("frames", "minutes"))


def verify(folder: Path) -> int:
    """Prints the table made from the scores; 0 if it is the recorded one, else 1."""
    table = comparison.format_table(read_scores(folder / SCORES)) + "\n"
    is_same = table == (folder / TABLE).read_text(encoding="utf-8")
    print(table + ("as recorded" if is_same else f"{TABLE} is not what {SCORES} gives"))
    return 0 if is_same else 1


def compare(new: list[Point], old: list[Point]) -> int:
    """Prints whether each mean final score is in its `expected` interval; 0 if all are, else 1."""
    known = comparison.groups_of(old)
    all_inside = True
    for group, points in comparison.groups_of(new).items():
        for metric, scores in comparison.final_scores(points).items():
            mean = np.mean(scores)
            low, high = expected(known[group], metric, len(scores))
            is_inside = low <= mean <= high
            all_inside &= is_inside
            where = "inside" if is_inside else "OUTSIDE"
            kind = ".1%" if metrics.is_share(metric) else ".4g"
            print(f"{group}, {metric}: {mean:{kind}} lies {where} [{low:{kind}}, {high:{kind}}]")
    return 0 if all_inside else 1


def expected(points: Sequence[Point], metric: str, num_runs: int) -> tuple[float, float]:
    """The 95% prediction interval of the mean final score of `num_runs` new runs, from the scores of a group's runs.

    It assumes normal scores. Even runs with equal scores played finite matches, so the variance of a share is at least
    that of their games (with one win and one loss added, so that it is positive for perfect scores). For returns, a
    single run gives no variance, so every score is expected.
    """
    finals = [point for point in points if point.is_final and point.metric == metric]
    scores = np.array([point.score for point in finals])
    games = float(np.mean([point.games for point in finals]))
    variance = scores.var(ddof=1) if len(scores) > 1 else 0.0
    low, high = -np.inf, np.inf
    if metrics.is_share(metric):
        low = 0.0
        high = 1.0
        smoothed = (scores.mean() * games + 1) / (games + 2)
        variance = max(variance, smoothed * (1 - smoothed) / games)
    elif len(scores) == 1:
        return low, high
    quantile = stats.t.ppf(0.975, len(scores) - 1) if len(scores) > 1 else stats.norm.ppf(0.975)
    half = float(quantile * np.sqrt(variance * (1 / len(scores) + 1 / num_runs)))
    return max(low, float(scores.mean()) - half), min(high, float(scores.mean()) + half)


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
