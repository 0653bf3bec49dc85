"""Measures this machine and writes a report with plots: python scripts/hardware_report.py

Matrix products, vectors, the MuZero network by batch size, precision, CPU against accelerator, search, gradient steps,
a short run, memory, transfers, and a particle pipeline: at most ten minutes on two cores, about two with --quick.
PyTorch is compared with if it is installed.
"""

import datetime
import itertools
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from muzero_jax.arithmetic import devices, precision
from muzero_jax.commands.command_line import report_errors
from muzero_jax.storage.files import check_writable, write_whole
from scripts.measuring import machine, markdown
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Section, Table

BUSY = 0.25
"""Load a core, above which comparisons with libraries whose threads spin while they wait are not to be trusted."""
METHOD = (
    "Every time is the median of seven repeats (at least five where they take long) and, in brackets, the range of "
    "their middle half (interquartile range), after a warm-up that is not counted, each waited for until its result is "
    "there. What a table compares was measured in turn, repeat by repeat, in one process; ratios are of medians. A "
    "difference is called clear only where the ranges do not touch. `-` means not measured: a library that is not "
    "installed, or a size that takes too long here."
)


@dataclass(frozen=True)
class Arguments:
    """Where to, and how thoroughly."""

    out: Path | None = None
    """folder of the report, or its file if it ends in .md; default: reports/<device>-<date>"""
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """fewer and smaller sizes: about two minutes"""
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """replace a report that is there already"""


def prepare(file: Path, overwrite: bool) -> None:
    """Makes the folder of `file`; ValueError if that cannot be written, or would replace a report unasked."""
    existing = [path for path in [file, *file.parent.glob(f"{file.stem}-*.png")] if path.exists()]
    if existing and not overwrite:
        raise ValueError(f"{existing[0]} exists already; choose another --out, or --overwrite replaces it")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {file.parent} cannot be made ({error.strerror}); name another folder") from error
    check_writable(file, "--out")


def stopped_name(file: Path) -> Path:
    """The path of a stopped report, in the folder of `file`: stopped-<name>, with a number if there is one already."""
    names = itertools.chain(["stopped"], (f"stopped-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := file.with_name(f"{name}-{file.name}")).exists())


def write(sections: Sequence[Section], file: Path, end: str) -> None:
    """Writes `file`, whose last line is `end`, and each plot as <stem>-<name>.png in the same folder."""
    from scripts.measuring import plots

    write_whole(file, markdown.document("Hardware report", METHOD, sections, file.stem, end))
    for plot in (plot for section in sections for plot in section.plots):
        plots.draw(plot, file.with_name(f"{file.stem}-{plot.name}.png"))
    print(f"report: {file}")


def hardware_section(found: Machine, about: dict[str, Any]) -> Section:
    """The chapter on the machine, as it was before anything was measured."""
    memory, load, cores = devices.available_memory_bytes(), about["load_average"], devices.usable_cores()
    shown = "unknown" if load is None else f"{load:.1f}"
    rows = {
        "device": about["hardware"],
        "backend": found.device.platform,
        "arithmetic of a run's networks": "{} ({})".format(*precision.resolve("auto")),
        "usable CPU cores": cores,
        "load average": shown,
        "memory available": devices.format_bytes(memory) if memory else "unknown",
        "system": f"{sys.platform}, Python {about['python']}",
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "PyTorch": f"{found.torch.__version__}, on {found.torch_device}" if found.torch else "not installed",
        "commit": about["commit"] or "unknown",
        "date": about["date"],
        "command": f"`{about['command']}`",
    }
    warning = (
        f"Other processes were at work when this began (load average {shown}). NumPy and PyTorch, whose threads spin "
        "while they wait for each other, can lose far more by that than JAX does: trust comparisons with them only "
        "from a quiet machine."
    )
    table = Table(("", ""), [(name, str(value)) for name, value in rows.items()])
    return Section("Hardware and versions", "", [table], headlines=[warning] if (load or 0) > BUSY * cores else [])


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = tyro.cli(Arguments, args=arguments, description=__doc__)
    devices.configure_devices()
    from scripts.report import chapters, sizes

    device = re.sub(r"[^a-z0-9]+", "-", devices.describe_device().lower()).strip("-")
    out = a.out or Path("reports") / f"{device}-{datetime.date.today().isoformat()}"
    file = out if out.suffix == ".md" else out / "report.md"
    prepare(file, a.overwrite)
    start, found = time.perf_counter(), machine.find_machine()
    sections = [hardware_section(found, machine.describe([__file__, *arguments]))]
    plan = sizes.choose(quick=a.quick, accelerator=found.has_accelerator)
    try:
        sections.extend(chapters.measure(found, plan, partial(print, flush=True)))
    except BaseException:  # Ctrl-C, or a chapter that failed: it costs no chapter before it, and no older report
        if len(sections) > 1:
            minutes = (time.perf_counter() - start) / 60
            write(sections, stopped_name(file), f"Stopped before its end, after {minutes:.1f} minutes.")
        raise
    write(sections, file, f"Measured in {(time.perf_counter() - start) / 60:.1f} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick, or JAX_PLATFORMS=cpu"))
