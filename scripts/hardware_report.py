"""Measures this machine and writes a report with plots: python scripts/hardware_report.py

Matrix products, vectors, the MuZero network by batch size, precision, CPU against accelerator, search, gradient steps,
a short run, memory, transfers, and a particle pipeline: at most ten minutes on two cores, about two with --quick.
PyTorch is compared with if it is installed.
"""

import datetime
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.command_line import report_errors
from muzero_jax.arithmetic import devices


@dataclass(frozen=True)
class Arguments:
    """Where to, and how thoroughly."""

    out: Path | None = None
    """folder of the report, or its file if it ends in .md; default: reports/<device>-<date>"""
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """fewer and smaller sizes: about two minutes"""
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """replace a report that is there already"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = tyro.cli(Arguments, args=arguments, description=__doc__)
    devices.configure_devices()
    from scripts.benchmarks.report import command
    from scripts.report import chapters, machine, markdown, plan
    from scripts.report.interference import Interference

    out = a.out or Path("reports") / machine.folder_name(datetime.date.today())
    file = out if out.suffix == ".md" else out / "report.md"
    markdown.prepare(file, a.overwrite)
    start, found = time.perf_counter(), machine.find_machine()
    told = machine.hardware_table(found, command([__file__, *arguments]), datetime.datetime.now())
    sizes = plan.choose(quick_look=a.quick, accelerator=found.accelerator is not None)
    others, sections = Interference(), []

    def write(target: Path, end: str) -> None:
        first = machine.hardware_section(told, others)
        markdown.write([first, *sections], target, f"{end} {(time.perf_counter() - start) / 60:.1f} minutes.")
        print(f"report: {target}")

    try:
        for section in chapters.measure(found, sizes, others, partial(print, flush=True)):
            sections.append(section)
    except BaseException:  # Ctrl-C, or a chapter that failed: it costs no chapter before it, and no older report
        if sections:
            write(markdown.free_name(file), "Stopped before its end, after")
        raise
    write(file, "Measured in")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick, or JAX_PLATFORMS=cpu"))
