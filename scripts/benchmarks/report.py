"""What the benchmark says: the machine, the table, and what has become slower than in an older report."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from muzero_jax.arithmetic import devices

Record = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("muzero_jax", "experiments", "scripts")
TOLERANCE = 0.1
"""A figure that has fallen by more than this, beyond the spread of both reports, is a regression."""


def machine() -> Record:
    """Hardware and versions: what a figure must not be read without."""
    packages = ("jax", "jaxlib", "flax", "mctx", "pgx")
    return {
        "date": date.today().isoformat(),
        "hardware": devices.describe_device(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,  # before anything was measured
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
        "commit": commit(),
        "command": command(sys.argv),
    }


def command(arguments: Sequence[str]) -> str:
    """What was called, script first, without the folders of who called it."""
    script, *others = arguments
    return shlex.join(["python", f"scripts/{Path(script).name}", *map(_without_owner, others)])


def _without_owner(argument: str) -> str:
    flag, equals, value = argument.rpartition("=")
    leads_outside = value.startswith(("/", "~")) or ".." in Path(value).parts
    return f"{flag}{equals}{Path(value).name}" if leads_outside else argument


def commit() -> str | None:
    """The commit whose code is measured, with "-dirty" if the code was changed since; None outside of our clone."""

    def git(*asked: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True)

    try:
        head, above = git("rev-parse", "--short", "HEAD"), git("rev-parse", "--show-prefix").stdout.strip()
        changed = git("diff", "--quiet", "HEAD", "--", *CODE).returncode
    except OSError:  # no git
        return None
    if head.returncode or above:  # no clone, or a folder of somebody else's
        return None
    return head.stdout.strip() + ("-dirty" if changed else "")


def table(records: list[Record]) -> str:
    """The records as Markdown: rates by variant, then the ratios."""
    return "\n\n".join(_case_table(record) for record in records)


def _case_table(record: Record) -> str:
    note = f" ({record['note']})" if record.get("note") else ""
    lines = [f"**{record['suite']}**: {record['case']}{note}", "", f"| | {record['unit']} | spread |", "|---|---|---|"]
    lines += [
        f"| {name} | {rate['median']:,.{_digits(rate['median'])}f} | {rate['spread']:.0%} |"
        for name, rate in record["rates"].items()
    ]
    for ratio in record["ratios"]:
        aim = f" (aim {ratio['aim']:g})" if ratio["aim"] is not None else ""
        lines.append(f"| {ratio_name(ratio)} | **{ratio['median']:.2f}x**{aim} | {ratio['spread']:.0%} |")
    return "\n".join(lines)


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


def ratio_name(ratio: Record) -> str:
    """The ratio in words."""
    return f"{ratio['numerator']} / {ratio['denominator']}"


def figures(report: Record, *, same_machine: bool) -> Iterator[tuple[str, Record, bool]]:
    """(name, figure, whether higher is better) of all that two reports have in common.

    Ratios travel between machines, rates and memory do not. What runs on all devices is named by their number, so
    that it is compared only with what ran on as many.
    """
    for record in report["results"]:
        found = [(ratio_name(ratio), ratio) for ratio in record["ratios"]]
        if same_machine:
            found += record["rates"].items()
        for name, figure in found:
            number = record.get("num_devices")
            told = name.replace("all devices", f"{number} devices") if number else name
            yield f"{record['suite']}: {record['case']}: {told}", figure, record["higher_is_better"]


def is_whole(report: Any) -> bool:
    """Whether what was read as JSON has all that `compare` asks of an older report."""
    try:
        found = [(figure["median"], figure["spread"]) for _, figure, _ in figures(report, same_machine=True)]
        suites = [record["suite"] for record in report["results"]]
        texts = [report["machine"]["hardware"], *suites]
        return all(isinstance(x, str) for x in texts) and all(median > 0 and spread >= 0 for median, spread in found)
    except (KeyError, TypeError, AttributeError):
        return False


def shared(new: Record, old: Record) -> list[tuple[str, Record, Record, bool]]:
    """(name, new figure, older one, whether higher is better) of all that two reports share and that is judged.

    Which are judged, the new report says, or the outline of one to come; an older one need not.
    """
    same_machine = new["machine"]["hardware"] == old["machine"]["hardware"]
    before = {name: figure for name, figure, _ in figures(old, same_machine=same_machine)}
    found = figures(new, same_machine=same_machine)
    return [(name, now, before[name], faster) for name, now, faster in found if name in before and now["judged"]]


def compare(new: Record, old: Record) -> tuple[int, list[str]]:
    """How many judged figures two reports share, and a sentence for each that worsened beyond TOLERANCE and spreads."""
    compared, found = shared(new, old), []
    for name, figure, before, higher_is_better in compared:
        was, now = before["median"], figure["median"]
        allowed = TOLERANCE + figure["spread"] + before["spread"]
        worsened = 1 - (now / was if higher_is_better else was / now)
        if worsened > allowed:
            found.append(f"{name}: from {was:,.3g} to {now:,.3g}, {worsened:.0%} worse ({allowed:.0%} allowed)")
    return len(compared), found
