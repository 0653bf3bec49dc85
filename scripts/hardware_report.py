"""Measures this machine and writes a report with plots: python scripts/hardware_report.py

Matrix products, the MuZero network by batch size, precision, CPU against accelerator, transfers and memory: at most
ten minutes on two cores, about two with --quick. PyTorch is compared with if it is installed. How fast search and
learning are, scripts/benchmark.py says.
"""

import datetime
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.apps.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from muzero_jax import presets
from muzero_jax.apps.commands import flag_reader
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import devices, precision
from muzero_jax.own.files import check_writable
from muzero_jax.storage.config import Config
from scripts.measuring import machine, report
from scripts.measuring.machine import Machine
from scripts.measuring.report import Section

METHOD = (
    "Every time is the median of seven repeats (at least five where they take long) and, in brackets, the range of "
    "their middle half (interquartile range), after a warm-up that is not counted, each waited for until its result is "
    "there. What a table compares was measured in turn, repeat by repeat, in one process; ratios are of medians. `-` "
    "means not measured: a library that is not installed, or a size that takes too long here. NumPy and PyTorch, whose "
    "threads spin while they wait for each other, lose far more by other processes than JAX does: trust comparisons "
    "with them only where the load average is a quarter of a core or less."
)


@dataclass(frozen=True)
class Arguments:
    """Where to, and how thoroughly."""

    out: Path | None = None
    """folder of the report, or its file if it ends in .md; default: reports/<device>-<date>"""
    quick: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """fewer sizes: about two minutes"""


class Sizes(NamedTuple):
    """Sizes of every table."""

    matrices: tuple[int, ...]
    networks: dict[str, Config]  # by the name that tables use
    batches: tuple[int, ...]
    precision_matrix: int
    precision_batch: dict[str, int]  # by the network's kind
    transfers: tuple[int, ...]  # bytes


def choose(*, quick: bool, accelerator: bool) -> Sizes:
    """The sizes for a machine with or without an accelerator.

    What keeps two cores busy for a millisecond an accelerator does in the microseconds that starting a program takes,
    and then no dtype is faster than another: it gets larger sizes as well.
    """
    small, tower = presets.preset("hex", 5), replace(presets.tower("hex", num_bins=2), board_size=9)
    networks = {
        name: replace(small, network=replace(small.network, kind="mlp", width=width, compute_dtype="float32"))
        for name, width in {"standard": 128, "512-wide": 512}.items()
    } | {"tower": replace(tower, network=replace(tower.network, compute_dtype="float32"))}
    larger, every = 16 if accelerator else 1, 3 if quick else 1
    return Sizes(
        matrices=(64, 128, 256, 512, 1024, 2048, 4096, *[8192] * accelerator)[::every],
        networks={name: networks[name] for name in ("standard", "512-wide", "tower")[: 1 if quick else None]},
        batches=(1, 4, 16, 64, 256, 1024, 4096, *[16384] * accelerator)[::every],
        precision_matrix=8192 if accelerator else 1024,
        precision_batch={"mlp": 1024 * larger, "tower": 64 * larger},
        transfers=tuple(2**power for power in (10, 14, 18, 22, 26))[::every],
    )


def prepare(file: Path) -> None:
    """Makes the folder of `file`; ValueError if that cannot be written, or would replace a report."""
    if file.exists():
        raise ValueError(f"{file} exists already; choose another --out")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {file.parent} cannot be made ({error.strerror}); name another folder") from error
    check_writable(file, "--out")


def hardware_section(found: Machine, about: dict[str, Any]) -> Section:
    """The chapter on the machine, as it was before anything was measured."""
    memory = devices.available_memory_bytes()
    rows = about | {
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "PyTorch": f"{found.torch.__version__}, on {found.torch_device}" if found.torch else "not installed",
        "arithmetic of a run's networks": "{} ({})".format(*precision.resolve("auto")),
        "usable CPU cores": devices.usable_cores(),
        "memory available": devices.format_bytes(memory) if memory else "unknown",
    }
    cells = [(name.replace("_", " "), str(value)) for name, value in rows.items()]
    return Section("Hardware and versions", "", [report.table(("", ""), cells)])


def chapters(found: Machine, about: dict[str, Any], sizes: Sizes) -> Iterator[Section]:
    """All chapters, each as soon as it is measured."""
    from scripts.report import arrays, memory, networks

    yield hardware_section(found, about)
    products = arrays.product_times(found, sizes.matrices)
    yield arrays.product_section(products)
    by_name = {name: networks.network_times(found, config, sizes.batches) for name, config in sizes.networks.items()}
    yield networks.network_section(sizes.networks, by_name, len(found.devices))
    yield networks.precision_section(found, sizes.precision_matrix, sizes.networks, sizes.precision_batch)
    yield networks.crossover_section(found, products, by_name)
    yield arrays.transfers_section(found, sizes.transfers)
    yield memory.memory_section(found, sizes.networks["standard"])


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = flag_reader.read(Arguments, arguments, description=__doc__)
    devices.configure_devices()
    device = re.sub(r"[^a-z0-9]+", "-", devices.describe_device().lower()).strip("-")
    out = a.out or Path("reports") / f"{device}-{datetime.date.today().isoformat()}"
    file = out if out.suffix == ".md" else out / "report.md"
    prepare(file)
    start, found, sections, minutes = time.perf_counter(), machine.find_machine(), [], 0.0
    about = machine.describe([__file__, *arguments])
    for section in chapters(found, about, choose(quick=a.quick, accelerator=found.has_accelerator)):
        sections.append(section)
        minutes = (time.perf_counter() - start) / 60
        report.write(file, METHOD, sections, f"Not finished after {minutes:.1f} minutes.")
        print(f"[{minutes:.1f} minutes] {section.title}", flush=True)
    report.write(file, METHOD, sections, f"Measured in {minutes:.1f} minutes.")
    print(f"report: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "use --quick, or JAX_PLATFORMS=cpu"))
