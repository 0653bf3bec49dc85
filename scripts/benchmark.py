"""Measures speed, as ratios of programs that are timed in turn: python scripts/benchmark.py --suite search

Suites: search (ours against mctx and a tree in Python), self-play, learner and iteration (ours against the baseline,
all devices against one, one program against a loop in Python), ablation (the gain of each step from a plain pipeline to
ours). Suite chunk compares programs of Hex on an accelerator, and gpu measures what to know first about a new
accelerator, in 14 minutes.
"""

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.own.files import check_writable, write_whole
from muzero_jax.run.machine import configure_devices
from scripts.benchmarks import day, report, timing
from scripts.benchmarks.report import Record

SUITES = ("search", "self-play", "learner", "iteration", "ablation")
EXIT_REGRESSION = 1
TOLERANCE = 0.1
"""A ratio that has fallen by more than this, beyond the spread of both reports, is a regression."""


@dataclass(frozen=True)
class Arguments:
    """What to measure, and where to write it."""

    suite: Literal["search", "self-play", "learner", "iteration", "ablation", "all", "chunk", "gpu"] = "all"
    """what to measure; all: every suite except chunk and gpu"""
    json: bool = False
    """print one JSON object instead of tables"""
    quick: bool = False
    """fewer cases and rounds; gpu: sizes for a CPU"""
    out: Path | None = None
    """also write the JSON to this file, after every case or part"""
    minutes: float | None = None
    """suite gpu: minutes for all its parts together; default: 14"""
    before: Path | None = None
    """suite gpu: an older checkout, which trains Hex 5x5 in turn with this one, in the time of suite chunk"""
    compare: Path | None = None
    """older report to compare with; ratios that are worse beyond the spread are printed, and the exit status is 1"""


def promised(report: Record) -> dict[tuple, Record]:
    """The ratios with an aim, which the project promises, by suite, case, devices and variants."""
    return {
        (record["suite"], record["case"], record.get("num_devices"), ratio["numerator"], ratio["denominator"]): ratio
        for record in report["results"]
        for ratio in record["ratios"]
        if ratio["aim"] is not None
    }


def read_promised(file: Path) -> dict[tuple, Record]:
    """The promised ratios of an older report; ValueError if there are none."""
    if found := promised(json.loads(file.read_text(encoding="utf-8"))):
        return found
    raise ValueError(f"{file} has no ratio with an aim; write one by --out")


def compare(new: dict[tuple, Record], old: dict[tuple, Record]) -> list[str]:
    """A sentence for each promised ratio that is worse than in an older report; ValueError if they share none."""
    if not (shared := [name for name in new if name in old]):
        raise ValueError("the reports share no ratio with an aim on the same number of devices; name another report")
    return [
        f"{suite}: {case}: {one} / {other}: from {old[name]['median']:,.3g} to {new[name]['median']:,.3g}"
        for name in shared
        for suite, case, _, one, other in [name]
        if 1 - new[name]["median"] / old[name]["median"] > TOLERANCE + new[name]["spread"] + old[name]["spread"]
    ]


def measure(names: tuple[str, ...], quick: bool, out: Path | None, tables: TextIO) -> Record:
    """The report; prints each case to `tables` and writes all so far to `out`, so that an abort loses one case."""
    configure_devices()
    from scripts.benchmarks import suites  # after that, because a game starts JAX

    results: list[Record] = []
    new = {"machine": report.describe(sys.argv), "quick": quick, "results": results}
    for case in (case for name in names for case in suites.SUITES[name](quick)):
        results.append(suites.measure(case, timing.QUICK if quick else timing.FULL))
        print(report.rates_table(results[-1:]), end="\n\n", file=tables, flush=True)
        if out:
            write_whole(out, json.dumps(new, indent=2) + "\n")
    return new


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = parser.read(Arguments, arguments, __doc__)
    old = read_promised(a.compare) if a.compare else None
    out = a.out.resolve() if a.out else None  # follow links, which the rename would replace
    if out:
        check_writable(out, "--out")
    tables = sys.stderr if a.json else sys.stdout
    before = a.before.resolve() if a.before else None
    if a.suite != "gpu" and (lost := [name for name in ("before", "minutes") if getattr(a, name) is not None]):
        raise ValueError(f"--{lost[0]} is for --suite gpu")
    names = SUITES if a.suite == "all" else (a.suite,)
    if old and not any(suite in names for suite, *_ in old):
        raise ValueError(f"{a.compare} has no ratio of {' or '.join(names)}; name another report, or another --suite")
    if a.suite == "gpu":
        if out is None or out.suffix != ".json" or old:
            raise ValueError("--suite gpu needs --out FILE.json (other files go to folder FILE), and no --compare")
        new = day.measure(
            out,
            day.MINUTES if a.minutes is None else a.minutes,
            quick=a.quick,
            say=partial(print, file=tables, flush=True),
            before=before,
        )
    else:
        new = measure(names, a.quick, out, tables)
    if a.json:
        print(json.dumps(new, indent=2))
    slower = compare(promised(new), old) if old else []
    for sentence in slower:
        print(f"regression: {sentence}", file=sys.stderr)
    return EXIT_REGRESSION if slower else 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick or another --suite"))
