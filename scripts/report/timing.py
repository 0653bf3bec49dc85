"""How everything in the report is timed: candidates in turn, warm, until the result is there, at least five times.

Measuring in turn (A, B, A, B, ...) spreads a noisy neighbour over all candidates, so that ratios survive what absolute
times do not. The threads of NumPy, PyTorch and XLA go on spinning for a while after a call and would take the cores
from the next candidate, so each sample waits until they rest (what makes a `Fresh` one's inputs runs after that); and
then, because resting threads wake up slowly, short calls are made for a while before they count. The spread is the
interquartile range, which one interrupted repeat does not widen.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median, quantiles
from typing import Any, NamedTuple, TypeVar

import jax

Row = TypeVar("Row")

SHORTEST_SECONDS = 0.05
"""A sample that would last less is made of several calls, after as long a time of calls that are not counted."""

PAUSE_SECONDS = 0.03
"""One pause before a sample, longer than the ticks in which a process's time is counted (up to 10 ms).

There is another as long as the process used a quarter of a core or more during the last: NumPy's OpenBLAS was seen to
spin for 105 ms after its last product (2.4.6 on two Intel cores), and a program of XLA beside it took twice its time.
"""

MAX_PAUSES = 10
"""Then the sample is taken all the same."""

REPEATS = 7
MIN_REPEATS = 5
"""Where a candidate takes more than `LONG_SECONDS`, and the fewest from which a spread can be told."""

LONG_SECONDS = 0.25
"""Of one call, which then needs no warm-up: threads wake up in a few hundredths."""


class Sample(NamedTuple):
    """Seconds of one call, or a rate: the median of the repeats, and the range of their middle half."""

    median: float
    low: float  # first quartile
    high: float  # third quartile


class Fresh(NamedTuple):
    """A candidate that needs a new input for every call, which is made outside the clock."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any]


class On(NamedTuple):
    """A candidate that is traced and run with `device`, a `jax.Device`, as the default one.

    Where the arguments lie decides where a program runs, but the default device how the library writes it: traced for
    an accelerator, a convolution on the CPU beside it would not be the one that a CPU gets.
    """

    device: Any
    run: Callable[[], Any]


Candidate = Callable[[], Any] | Fresh | On
Times = dict[str, dict[int, Sample]]
"""Seconds of one call by candidate and size."""


class Limits(NamedTuple):
    """How long things may take, so that a report ends in time on a slow or busy machine too."""

    call_seconds: float  # one call, as expected from the last size's
    table_seconds: float  # all rows of a table; those not begun by then are left out


def summarise(values: Sequence[float]) -> Sample:
    """Median and quartiles of the repeats."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Sample(middle, low, high)


def rate(work: float, seconds: Sample) -> Sample:
    """Work per second: the longest time gives the lowest rate."""
    return Sample(work / seconds.median, work / seconds.high, work / seconds.low)


def measure_in_turn(candidates: Mapping[str, Candidate], *, repeats: int = REPEATS) -> dict[str, Sample]:
    """Seconds of one call of each candidate; the first call of each (compilation, page faults) is not counted.

    Raises ValueError if there are fewer than five repeats, from which no spread can be told.
    """
    if repeats < MIN_REPEATS:
        raise ValueError(f"{repeats} repeats are too few to tell a spread; use at least {MIN_REPEATS}")
    for candidate in candidates.values():
        _time_one(candidate)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for done in range(repeats):
        if done == MIN_REPEATS and any(median(values) > LONG_SECONDS for values in seconds.values()):
            break
        for name, candidate in candidates.items():
            seconds[name].append(_seconds(candidate))
    return {name: summarise(values) for name, values in seconds.items()}


def in_time(rows: Iterable[Row], limits: Limits, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows of a table, until its time is over; the first always."""
    start = time.perf_counter()
    for row in rows:
        if time.perf_counter() - start > limits.table_seconds:
            say("enough time spent; the rest is left out")
            return
        yield row


def sweep(
    sizes: Sequence[int],
    candidates_at: Callable[[int], Mapping[str, Candidate]],
    *,
    work: Callable[[int], float],
    limits: Limits,
    say: Callable[[str], None],
) -> Times:
    """Times of all candidates at growing sizes.

    Args:
      work: of a size, in any unit: tells from the last size's time what the next will take.
      limits: what takes longer is left out from there on.
    """
    times: Times = {}
    for size in in_time(sizes, limits, say):
        say(f"size {size:,}")
        candidates = {
            name: candidate
            for name, candidate in candidates_at(size).items()
            if expected_seconds(times.get(name, {}), size, work) <= limits.call_seconds
        }
        for name, sample in measure_in_turn(candidates).items():
            times.setdefault(name, {})[size] = sample
    return times


def rates(times: Times, work: Callable[[int], float]) -> Times:
    """The same table as work per second."""
    return {name: {size: rate(work(size), sample) for size, sample in row.items()} for name, row in times.items()}


def expected_seconds(known: Mapping[int, Sample], size: int, work: Callable[[int], float]) -> float:
    """What a size will take by the largest that is known; 0 if none is."""
    if not known:
        return 0.0
    largest = max(known)
    return known[largest].low * work(size) / work(largest)


def _seconds(candidate: Candidate) -> float:
    """Of one call, each call's result waited for: of a long one the first, of others the mean once warm."""
    _wait_until_idle()
    first = _time_one(candidate)
    if first > LONG_SECONDS:
        return first
    if first < SHORTEST_SECONDS:
        _times_for(SHORTEST_SECONDS - first, candidate)
    return fmean(_times_for(SHORTEST_SECONDS, candidate))


def _wait_until_idle() -> None:
    for _ in range(MAX_PAUSES):
        used = time.process_time()
        time.sleep(PAUSE_SECONDS)
        if time.process_time() - used <= PAUSE_SECONDS / 4:
            return


def _times_for(seconds: float, candidate: Candidate) -> list[float]:
    """Of the calls that are begun in this time, making their inputs included; at least one."""
    end = time.perf_counter() + seconds
    times = [_time_one(candidate)]
    while time.perf_counter() < end:
        times.append(_time_one(candidate))
    return times


def _time_one(candidate: Candidate) -> float:
    if isinstance(candidate, On):
        with jax.default_device(candidate.device):  # outside the clock
            return _time_one(candidate.run)
    if isinstance(candidate, Fresh):
        run, arguments = candidate.run, (jax.block_until_ready(candidate.prepare()),)
    else:
        run, arguments = candidate, ()
    start = time.perf_counter()
    jax.block_until_ready(run(*arguments))
    return time.perf_counter() - start
