"""Numbers as a person reads them, and sentences that say no more than the numbers."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from scripts.measuring.timing import Sample

NOTHING = "-"
Rows = Mapping[str, Mapping[Any, Sample]]
"""Times by candidate and size, or by candidate and work."""


def three_digits(value: float) -> str:
    """1234.5 -> "1,234", 12.34 -> "12.3", 0.01234 -> "0.0123"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(sample: Sample | None) -> str:
    """Median (first quartile to third); "-" for None."""
    return NOTHING if sample is None else "{} ({} to {})".format(*map(three_digits, sample))


def seconds(sample: Sample | None) -> str:
    """Seconds in words, in the unit that suits the median."""
    if sample is None:
        return NOTHING
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if sample.median * scale < 1000:
            return f"{spread(sample.times(scale))} {unit}"
    return f"{spread(sample)} s"


def comparison(times: Rows, first: str, second: str, where: str) -> str:
    """As this: "A against B: faster at batch 1, 64 (1.2x to 3x); ..."; clear is what has ranges that do not touch."""
    factors: dict[str, dict[Any, float]] = {"faster": {}, "slower": {}, "not clearly different": {}}
    a, b = times.get(first, {}), times.get(second, {})
    for key in (key for key in a if key in b):
        ratio = b[key].median / a[key].median
        if a[key].high < b[key].low:
            factors["faster"][key] = ratio
        elif b[key].high < a[key].low:
            factors["slower"][key] = 1 / ratio
        else:
            factors["not clearly different"][key] = math.nan
    total = sum(map(len, factors.values()))
    parts = [f"{word} {_where(where, found, total)}{_range(found)}" for word, found in factors.items() if found]
    return f"{first} against {second}: {'; '.join(parts) or 'not measured together'}."


def against_all(times: Rows, where: str) -> list[str]:
    """The first of the table against each of the others."""
    first, *others = times
    return [comparison(times, first, other, where) for other in others]


def sizes_of(times: Rows) -> list[Any]:
    """All sizes of a table, growing; works with names in the order in which they come."""
    found = dict.fromkeys(size for row in times.values() for size in row)
    return sorted(found, key=lambda size: 0 if isinstance(size, str) else size)


def winners(times: Rows, where: str) -> str:
    """As this: "fastest by median: A at batch 1, 4; B at batch 16."."""
    sizes = sizes_of(times)
    fastest: dict[str, list[Any]] = {}
    for size in sizes:
        _, name = min((row[size].median, name) for name, row in times.items() if size in row)
        fastest.setdefault(name, []).append(size)
    parts = [f"{name} {_where(where, found, len(sizes))}" for name, found in fastest.items()]
    return f"fastest by median: {'; '.join(parts)}."


def crossover(first: Mapping[int, Sample], second: Mapping[int, Sample]) -> str:
    """From which size on the second is ahead at all larger ones, by medians; equal times count as not ahead.

    Between two sizes the logarithm of the ratio is taken to be linear in the size's logarithm.
    """
    sizes = sorted(first.keys() & second.keys())
    lag = {size: math.log(second[size].median / first[size].median) for size in sizes}
    behind = [size for size in sizes if lag[size] >= 0]
    if not behind:
        return f"ahead from the smallest, {sizes[0]:,}"
    last = behind[-1]
    if last == sizes[-1]:
        return f"never, up to {last:,}"
    following = sizes[sizes.index(last) + 1]
    at = last * (following / last) ** (lag[last] / (lag[last] - lag[following]))
    return f"between {last:,} and {following:,}, near {three_digits(float(f'{at:.2g}'))}"


def _range(factors: Mapping[Any, float]) -> str:
    low, high = (three_digits(value) for value in (min(factors.values()), max(factors.values())))
    return "" if low == "nan" else f" ({low}x)" if low == high else f" ({low}x to {high}x)"


def _where(what: str, keys: Collection[Any], out_of: int) -> str:
    """The keys one by one, unless they are all (and more than one)."""
    if 1 < len(keys) == out_of:
        return f"everywhere, {out_of} of {out_of} measured"
    return f"{what} {', '.join(f'{key:,}' if isinstance(key, int) else str(key) for key in keys)}"
