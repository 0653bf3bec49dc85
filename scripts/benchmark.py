"""How fast it is, as ratios of things measured in turn: python scripts/benchmark.py --suite search

Suites: search (ours against mctx and a tree in Python), self-play, learner and iteration (ours against the baseline,
one device against all, one program against Python's loop), ablation (what each step away from a plain pipeline gives).
Suite chunk compares an accelerator's programs of Hex with each other, and gpu is all that a first day with one should
measure, in 14 minutes.
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
from muzero_jax.ops import devices
from muzero_jax.own.files import check_writable, write_whole
from scripts.benchmarks import day, report, timing
from scripts.benchmarks.report import Record

SUITES = ("search", "self-play", "learner", "iteration", "ablation")
EXIT_REGRESSION = 1
TOLERANCE = 0.1
"""A ratio that has fallen by more than this, beyond the spread of both reports, is a regression."""


@dataclass(frozen=True)
class Arguments:
    """What to measure, and where to."""

    suite: Literal["search", "self-play", "learner", "iteration", "ablation", "all", "chunk", "gpu"] = "all"
    """`all` is every suite but `chunk` and `gpu`"""
    json: bool = False
    """print one JSON object instead of tables"""
    quick: bool = False
    """fewer cases and rounds; gpu: sizes for a CPU"""
    out: Path | None = None
    """also write the JSON to this file, after every case or part"""
    minutes: float = day.MINUTES
    """of all parts of suite gpu together"""
    compare: Path | None = None
    """an older report; ratios that are worse beyond the spread are named, with status 1"""


def promised(report: Record) -> dict[tuple, Record]:
    """The ratios that the project promises something of, by suite, case, devices and variants."""
    return {
        (record["suite"], record["case"], record.get("num_devices"), ratio["numerator"], ratio["denominator"]): ratio
        for record in report["results"]
        for ratio in record["ratios"]
        if ratio["aim"] is not None
    }


def read_promised(file: Path) -> dict[tuple, Record]:
    """Those of an older report; ValueError if there are none."""
    if found := promised(json.loads(file.read_text(encoding="utf-8"))):
        return found
    raise ValueError(f"{file} has no ratio with an aim; write one by --out")


def compare(new: dict[tuple, Record], old: dict[tuple, Record]) -> list[str]:
    """A sentence for each promised ratio that is worse than in an older report; ValueError if they share none."""
    if not (shared := [name for name in new if name in old]):
        raise ValueError("the two reports share no ratio with an aim, on as many devices; name another report")
    return [
        f"{suite}: {case}: {one} / {other}: from {old[name]['median']:,.3g} to {new[name]['median']:,.3g}"
        for name in shared
        for suite, case, _, one, other in [name]
        if 1 - new[name]["median"] / old[name]["median"] > TOLERANCE + new[name]["spread"] + old[name]["spread"]
    ]


def measure(names: tuple[str, ...], quick: bool, out: Path | None, tables: TextIO) -> Record:
    """The report; shows each case in `tables` and keeps all so far in `out`, so that what stops it costs one case."""
    devices.configure_devices()
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
    out = a.out.resolve() if a.out else None  # links followed: the rename would replace one
    if out:
        check_writable(out, "--out")
    tables = sys.stderr if a.json else sys.stdout
    if a.suite == "gpu":
        if out is None or out.suffix != ".json" or old:
            raise ValueError("--suite gpu needs --out FILE.json and compares nothing; other files lie in a folder FILE")
        new = day.measure(out, a.minutes, quick=a.quick, say=partial(print, file=tables, flush=True))
    else:
        new = measure(SUITES if a.suite == "all" else (a.suite,), a.quick, out, tables)
    if a.json:
        print(json.dumps(new, indent=2))
    slower = compare(promised(new), old) if old else []
    for sentence in slower:
        print(f"regression: {sentence}", file=sys.stderr)
    return EXIT_REGRESSION if slower else 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick or another --suite"))
