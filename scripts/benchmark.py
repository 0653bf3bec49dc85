"""How fast it is, as ratios of things measured in turn: python scripts/benchmark.py --suite search

Suites: search (ours against mctx), self-play, learner and iteration (ours against the baseline, one
device against all, one program against Python's loop), ablation (what each step away from a plain
pipeline gives).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.apps.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import devices
from muzero_jax.own.files import check_writable, write_whole
from scripts.benchmarks import cases
from scripts.benchmarks.cases import Case, Record
from scripts.measuring import machine, timing

EXIT_REGRESSION = 1
SUITES = ("search", "self-play", "learner", "iteration", "ablation")


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=(*SUITES, "all"), default="all")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--quick", action="store_true", help="fewer cases and rounds: half a minute a suite")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file, after every case")
    parser.add_argument(
        "--compare", type=Path, help="an older report; what is 10%% slower beyond the spread is named, with status 1"
    )
    return parser.parse_args(arguments)


def read_report(file: Path) -> Record:
    """An older report; ValueError if the file is none, which is found out before anything is measured."""
    try:
        old = json.loads(file.read_text(encoding="utf-8"))
        found = [(figure["median"], figure["spread"]) for _, figure in cases.figures(old, same_machine=True)]
        is_whole = old["machine"]["hardware"] and all(median > 0 and spread >= 0 for median, spread in found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{file} is missing, damaged, or no report of this script; write one with --out")
    return old


def cases_of(suites: tuple[str, ...], quick: bool) -> list[Case]:
    """The cases of the suites, of which nothing is compiled yet."""
    from scripts.benchmarks.suites import SUITES as made

    return [case for suite in suites for case in made[suite](quick)]


def check_common(suites: tuple[str, ...], quick: bool, old: Record, file: Path) -> None:
    """Raises ValueError, before anything is measured, if nothing of the suites can be compared with an older report."""
    outlines = [cases.outline(case) for case in cases_of(suites, quick)]
    if not cases.shared({"machine": {"hardware": devices.describe_device()}, "results": outlines}, old):
        raise ValueError(
            f"nothing of these suites can be compared with {file}: it has none of their cases (--quick has some of its "
            "own), or is of other hardware, between which only ratios are compared, and those on all devices only "
            "where they are as many; name another report"
        )


def measure(suites: tuple[str, ...], quick: bool, out: Path | None, tables: TextIO) -> Record:
    """The report; shows each case in `tables` and keeps all so far in `out`, so that what stops it costs one case."""
    results: list[Record] = []
    new = {"machine": machine.describe(sys.argv), "quick": quick, "results": results}
    for case in cases_of(suites, quick):
        results.append(cases.measure(case, timing.QUICK if quick else timing.FULL))
        print(cases.table(results[-1]), file=tables, flush=True)
        if out:
            write_whole(out, json.dumps(new, indent=2) + "\n")
    return new


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    options = read_arguments(arguments)
    old = read_report(options.compare) if options.compare else None
    suites = SUITES if options.suite == "all" else (options.suite,)
    out = options.out.resolve() if options.out else None  # links followed: the rename would replace one
    if out:
        check_writable(out, "--out")
    devices.configure_devices()
    if old:
        check_common(suites, options.quick, old, options.compare)
    new = measure(suites, options.quick, out, sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(new, indent=2))
    if not old:
        return 0
    compared, slower = cases.compare(new, old)
    for sentence in slower:
        print(f"regression: {sentence}", file=sys.stderr)
    print(f"compared with {options.compare}: {compared} figures, {len(slower)} of them worse", file=sys.stderr)
    return EXIT_REGRESSION if slower else 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick or another --suite"))
