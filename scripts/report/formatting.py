"""Numbers as a person reads them, each with its spread."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from muzero_jax.arithmetic import devices
from scripts.report.records import Table
from scripts.report.timing import Sample

NOTHING = "-"


def three_digits(value: float) -> str:
    """1234.5 -> "1,234", 12.34 -> "12.3", 0.01234 -> "0.0123"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(sample: Sample | None, scale: float = 1.0) -> str:
    """Median (first quartile to third), each times `scale`; "-" for None."""
    if sample is None:
        return NOTHING
    middle, low, high = (three_digits(value * scale) for value in sample)
    return f"{middle} ({low} to {high})"


def seconds(sample: Sample | None) -> str:
    """In the unit that suits the median."""
    if sample is None:
        return NOTHING
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if sample.median * scale < 1000:
            return f"{spread(sample, scale)} {unit}"
    return f"{spread(sample)} s"


def devices_for(sizes: Iterable[int], available: int) -> str:
    """How many devices share each size, because they divide it: "2 of 2", or "2 of 3 (at 1: 1 of 3)"."""
    used = {size: devices.largest_divisor(available, size) for size in sorted(set(sizes))}
    most = max(used.values())
    fewer = ", ".join(f"at {size:,}: {count} of {available}" for size, count in used.items() if count < most)
    return f"{most} of {available}" + (f" ({fewer})" if fewer else "")


def by_size(
    head: str,
    table: Mapping[str, Mapping[int, Sample]],
    cell: Callable[[Sample | None], str],
    size_name: Callable[[int], str] = "{:,}".format,
) -> Table:
    """A row for each size, a column for each name."""
    sizes: Sequence[int] = sorted({size for row in table.values() for size in row})
    rows = [[size_name(size), *(cell(row.get(size)) for row in table.values())] for size in sizes]
    return Table([head, *table], rows)
