"""Measures this machine and writes a report with plots: python scripts/hardware_report.py

Matrix products and the MuZero network by size, precision, memory, CPU against accelerator by batch size, transfers, and
search against mctx and a tree in Python: some ten minutes on two cores, three with --quick. scripts/benchmark.py
measures whole programs.
"""

import datetime
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.own.files import check_writable
from muzero_jax.run.machine import configure_devices, describe_device
from scripts.benchmarks import report

METHOD = (
    "Every rate and every ratio is the median of five rounds after a warm-up; in brackets is half the interquartile "
    "range, divided by the median. The rates of one column were measured in turn in one process, and ratios are "
    "taken within a round. Other processes slow NumPy far more than JAX, because NumPy's threads spin while they "
    "wait for each other. Trust comparisons with NumPy only if the load average is at most a quarter of a core."
)


@dataclass(frozen=True)
class Arguments:
    """Where to write the report, and how much to measure."""

    out: Path | None = None
    """folder of the report, or its file if it ends in .md; default: reports/<device>-<date>"""
    quick: bool = False
    """fewer sizes: about three minutes"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = parser.read(Arguments, arguments, __doc__)
    configure_devices()
    from scripts.benchmarks import chapters  # after that, because a game starts JAX

    device = re.sub(r"[^a-z0-9]+", "-", describe_device().lower()).strip("-")
    out = a.out or Path("reports") / f"{device}-{datetime.date.today().isoformat()}"
    file = out if out.suffix == ".md" else out / "report.md"
    if file.exists():
        raise ValueError(f"{file} exists already; choose another --out")
    file.parent.mkdir(parents=True, exist_ok=True)
    check_writable(file, "--out")
    start = time.perf_counter()
    sections = []
    minutes = 0.0
    for section in chapters.measure(report.describe([__file__, *arguments]), quick=a.quick):
        sections.append(section)
        minutes = (time.perf_counter() - start) / 60
        report.write(file, METHOD, sections, f"Not finished after {minutes:.1f} minutes.")
        print(f"[{minutes:.1f} minutes] {section.title}", flush=True)
    report.write(file, METHOD, sections, f"Measured in {minutes:.1f} minutes.")
    print(f"report: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick, or JAX_PLATFORMS=cpu"))
