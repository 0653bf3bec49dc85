"""Where one way of computing overtakes another: pure functions of two measured tables (size -> time).

Two questions, answered apart. `crossover` interpolates the size from which the second way stays ahead, from medians
alone. `compare` says at which sizes the difference is clear, which it is only where the interquartile ranges of the
repeats do not touch; the report's sentences are made of it, so none can contradict its table.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from scripts.report.formatting import three_digits
from scripts.report.timing import Sample


class Crossover(NamedTuple):
    """The size from which the second way stays ahead at all larger sizes measured; `at` None: it never does."""

    at: float | None  # interpolated between the two sizes below, on logarithmic axes
    last_behind: int | None  # the largest size measured at which the second is not ahead; None: it always is
    first_ahead: int | None  # the next size measured


def crossover(first: Mapping[int, float], second: Mapping[int, float]) -> Crossover:
    """Of two tables size -> seconds, over the sizes that both have; equal times count as not ahead.

    Between the last size where the second is behind and the next, log(second / first) is taken to be linear in
    log(size). Raises ValueError if the tables have no size in common.
    """
    sizes = sorted(set(first) & set(second))
    if not sizes:
        raise ValueError("the two tables have no size in common")
    behind = [size for size in sizes if second[size] >= first[size]]
    if not behind:
        return Crossover(float(sizes[0]), None, sizes[0])
    last = behind[-1]
    if last == sizes[-1]:
        return Crossover(None, last, None)
    following = sizes[sizes.index(last) + 1]
    lag, lead = (math.log(second[size] / first[size]) for size in (last, following))
    share = lag / (lag - lead)
    return Crossover(math.exp(math.log(last) + share * math.log(following / last)), last, following)


def describe_crossover(found: Crossover) -> str:
    """The crossover for a table's cell."""
    if found.at is None:
        return f"never, up to {found.last_behind:,}"
    if found.last_behind is None:
        return f"ahead from the smallest, {found.first_ahead:,}"
    return f"between {found.last_behind:,} and {found.first_ahead:,}, near {three_digits(float(f'{found.at:.2g}'))}"


class Comparison(NamedTuple):
    """Sizes, or works by name, by who is clearly faster, with how many times faster (ratio of medians)."""

    faster: dict[Any, float]  # the first, by this factor
    slower: dict[Any, float]  # the second, by this factor
    unclear: dict[Any, float]  # the interquartile ranges of the repeats overlap


def compare(first: Mapping[Any, Sample], second: Mapping[Any, Sample]) -> Comparison:
    """The first way against the second, at the sizes (or works) that both have."""
    result = Comparison({}, {}, {})
    for key in first:
        if key not in second:
            continue
        a, b = first[key], second[key]
        if a.high < b.low:
            result.faster[key] = b.median / a.median
        elif b.high < a.low:
            result.slower[key] = a.median / b.median
        else:
            result.unclear[key] = b.median / a.median
    return result


def describe_comparison(first: str, second: str, what: str, comparison: Comparison) -> str:
    """A sentence that says no more than the numbers: "A against B: faster at batch 1, 64 (1.2x to 3.0x); ..."."""
    everything = len(comparison.faster) + len(comparison.slower) + len(comparison.unclear)
    parts = []
    for word, factors in (("faster", comparison.faster), ("slower", comparison.slower)):
        if factors:
            parts.append(f"{word} {_where(what, factors, everything)} ({_range(factors)})")
    if comparison.unclear:
        parts.append(f"not clearly different {_where(what, comparison.unclear, everything)}")
    return f"{first} against {second}: {'; '.join(parts) or 'not measured together'}."


def winners(times: Mapping[str, Mapping[int, Sample]]) -> dict[int, str]:
    """By size, the way with the least median."""
    sizes = sorted({size for row in times.values() for size in row})
    return {size: min((row[size].median, name) for name, row in times.items() if size in row)[1] for size in sizes}


def describe_winners(times: Mapping[str, Mapping[int, Sample]], what: str) -> str:
    """A phrase like this: fastest by median: A at batch 1, 4; B at batch 16."""
    by_size = winners(times)
    names = dict.fromkeys(by_size.values())
    sizes = {name: [size for size in by_size if by_size[size] == name] for name in names}
    parts = [f"{name} {_where(what, sizes[name], len(by_size))}" for name in names]
    return f"fastest by median: {'; '.join(parts)}."


def _range(factors: Mapping[Any, float]) -> str:
    low, high = (three_digits(value) for value in (min(factors.values()), max(factors.values())))
    return f"{low}x" if low == high else f"{low}x to {high}x"


def _where(what: str, keys: Collection[Any], out_of: int) -> str:
    """The keys one by one, unless they are all (and more than one)."""
    if 1 < len(keys) == out_of:
        return f"everywhere, {out_of} of {out_of} measured"
    return f"{what} {', '.join(f'{key:,}' if isinstance(key, int) else str(key) for key in keys)}"
