"""From which batch size on another device, or another way, is worth its price.

With an accelerator: CPU against accelerator, with data on the device and with copies from and to the host. Without
one there is no such size, so the questions are where compiled JAX overtakes NumPy (whose calls cost less to start) and
where splitting a batch over all host devices overtakes one.
"""

from collections.abc import Mapping, Sequence

from scripts.report.crossover import crossover, describe_crossover
from scripts.report.formatting import NOTHING, three_digits
from scripts.report.machine import Machine
from scripts.report.network_section import ALL_DEVICES, COPIES
from scripts.report.records import Section, Table
from scripts.report.timing import Times

NO_ACCELERATOR = (
    "This machine has no accelerator, so there is no crossover between CPU and accelerator. Instead: where compiled "
    "JAX overtakes NumPy and PyTorch on the same cores, and where a batch split over all host devices overtakes one."
)


def pairs(machine: Machine, times: Times) -> list[tuple[str, str]]:
    """(cheap to start, fast when large): what a crossover is asked of, as far as it was measured."""
    wanted = [("NumPy", "JAX"), ("PyTorch", "JAX"), ("JAX", ALL_DEVICES)]
    if machine.accelerator is not None:
        accelerator = f"JAX {machine.accelerator.platform.upper()}"
        wanted = [("JAX CPU", accelerator), ("JAX CPU", COPIES), ("NumPy", COPIES), (accelerator, ALL_DEVICES)]
    return [(first, second) for first, second in wanted if set(times.get(first, {})) & set(times.get(second, {}))]


def crossover_section(machine: Machine, matrices: Times, networks: Mapping[str, Times]) -> Section:
    """Chapter from the tables of earlier chapters; measures nothing itself."""
    tables = {"matrix product (n)": matrices} | {f"{name} network (batch)": times for name, times in networks.items()}
    rows: list[tuple[str, ...]] = []
    for what, times in tables.items():
        for first, second in pairs(machine, times):
            a, b = ({size: sample.median for size, sample in times[name].items()} for name in (first, second))
            found = crossover(a, b)
            bracket = [_pair(a, b, size) for size in (found.last_behind, found.first_ahead)]
            rows.append((what, first, second, describe_crossover(found), *bracket))
    text = (
        "The size from which the second stays ahead of the first at all larger sizes measured, from the medians of the "
        "chapters before. The number between two sizes is interpolated on logarithmic axes; where the two times lie "
        "close together it moves by a factor of two from run to run."
    )
    if machine.accelerator is None:
        text = f"{NO_ACCELERATOR} {text}"
    header = ("work", "first", "second", "crossover", "times at the last size behind", "at the first ahead")
    return Section("Crossover", text, [Table(header, rows)], headlines=_headlines(rows))


def _headlines(rows: Sequence[Sequence[str]]) -> list[str]:
    """One sentence for each pair; the crossovers are those of the table."""
    found: dict[tuple[str, str], list[str]] = {}
    for what, first, second, cell, *_ in rows:
        found.setdefault((first, second), []).append(f"{what} {cell}")
    return [f"{second} overtakes {first}: {'; '.join(works)}." for (first, second), works in found.items()]


def _pair(first: Mapping[int, float], second: Mapping[int, float], size: int | None) -> str:
    """Both medians at a size, in milliseconds."""
    if size is None:
        return NOTHING
    return f"{size:,}: {three_digits(first[size] * 1e3)} and {three_digits(second[size] * 1e3)} ms"
