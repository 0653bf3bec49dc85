"""Things compared are measured in turn, in one process: A B A B ...

A shared machine drifts by tens of percent within a minute, so a figure of its own says little, and a ratio of two means
something only if both saw the same minute. Spreads are interquartile ranges, which one interrupted round does not
widen. Before each sample the threads of the one before come to rest: NumPy's OpenBLAS was seen to spin for 105 ms after
a product, which doubled the time of XLA's next program. Calls that are not counted then wake the sample's own threads.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, quantiles
from typing import Any, NamedTuple

import jax

PAUSE_SECONDS = 0.03
"""Longer than the ticks in which a process's time is counted (up to 10 ms)."""
MAX_PAUSES = 10
LONG_SECONDS = 0.25
"""Seconds of one call from which on it needs no warm-up (threads wake up in a few hundredths), and no larger size."""


class Sample(NamedTuple):
    """Seconds of one call, or a rate or a ratio: the median of the rounds, and the range of their middle half."""

    median: float
    low: float  # first quartile
    high: float  # third quartile

    @property
    def spread(self) -> float:
        """Half the interquartile range over the median: 0.1 is "give or take a tenth"."""
        return (self.high - self.low) / 2 / self.median

    def rate(self, work: float) -> "Sample":
        """Work per second, of seconds: the longest time gives the lowest rate."""
        return Sample(work / self.median, work / self.high, work / self.low)


class Variant(NamedTuple):
    """A program of ours or a yardstick, ready to run."""

    run: Callable[[], Any]  # one call; what it returns is waited for
    work: float  # units done in one call


def going_on(program: Callable, state: Any, *others: Any) -> Callable[[], Any]:
    """Calls of `program` (state, *others) -> (next state, output), each with the state of the one before."""

    def run():
        nonlocal state
        state, output = program(state, *others)
        return output

    return run


class Fresh(NamedTuple):
    """A candidate that needs a new input for every call, which is made outside the clock."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any]


Candidate = Callable[[], Any] | Fresh
Times = dict[str, dict[int, Sample]]
"""Seconds of one call by candidate and size."""


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    least: int  # rounds that do once `enough` seconds have passed
    enough: float
    seconds: float  # that one sample should last; a longer call is one sample


QUICK = Effort(rounds=3, least=3, enough=10.0, seconds=0.1)
FULL = Effort(rounds=5, least=3, enough=10.0, seconds=0.3)
AMONG_LIBRARIES = Effort(rounds=7, least=5, enough=5.0, seconds=0.05)


def in_turn(candidates: Mapping[str, Candidate], effort: Effort) -> dict[str, list[float]]:
    """Seconds of one call of each candidate, round by round; the first call of each (compilation) is not counted."""
    for candidate in candidates.values():
        _call(candidate)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    start = time.perf_counter()
    for done in range(effort.rounds):
        if done >= effort.least and time.perf_counter() - start > effort.enough:
            break
        for name, candidate in candidates.items():
            seconds[name].append(_sample(candidate, effort.seconds))
    return seconds


def _sample(candidate: Candidate, seconds: float) -> float:
    """The mean of the calls that begin within so many seconds, at least one, after as many that do not count."""
    _wait_until_idle()
    first, *_ = _calls(candidate, seconds)
    return first if first > LONG_SECONDS else fmean(_calls(candidate, seconds))


def _wait_until_idle() -> None:
    for _ in range(MAX_PAUSES):
        used = time.process_time()
        time.sleep(PAUSE_SECONDS)
        if time.process_time() - used <= PAUSE_SECONDS / 4:
            return


def _calls(candidate: Candidate, seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    times = [_call(candidate)]
    while time.perf_counter() < end:
        times.append(_call(candidate))
    return times


def _call(candidate: Candidate) -> float:
    if isinstance(candidate, Fresh):
        run, arguments = candidate.run, (jax.block_until_ready(candidate.prepare()),)
    else:
        run, arguments = candidate, ()
    start = time.perf_counter()
    jax.block_until_ready(run(*arguments))
    return time.perf_counter() - start


def summarise(values: Sequence[float]) -> Sample:
    """Median and quartiles of the rounds."""
    low, middle, high = quantiles(values if len(values) > 1 else [*values, *values], n=4, method="inclusive")
    return Sample(middle, low, high)


def samples(candidates: Mapping[str, Candidate]) -> dict[str, Sample]:
    """Seconds of one call of each candidate, each of which may be of another library."""
    return {name: summarise(values) for name, values in in_turn(candidates, AMONG_LIBRARIES).items()}


def rates(variants: Mapping[str, Variant], effort: Effort) -> dict[str, list[float]]:
    """Units a second of each variant, round by round."""
    seconds = in_turn({name: variant.run for name, variant in variants.items()}, effort)
    return {name: [variants[name].work / value for value in values] for name, values in seconds.items()}


def ratio(first: Sequence[float], second: Sequence[float]) -> Sample:
    """The first over the second, round by round: what slowed a whole round down is in both."""
    return summarise([a / b for a, b in zip(first, second, strict=True)])


def sweep(sizes: Iterable[int], candidates_at: Callable[[int], dict[str, Candidate]]) -> Times:
    """Times of all candidates at growing sizes; a candidate whose call took long is not tried at a larger one."""
    times: Times = {}
    for size in sizes:
        slow = {name for name, row in times.items() if list(row.values())[-1].low > LONG_SECONDS}
        candidates = {name: call for name, call in candidates_at(size).items() if name not in slow}
        for name, sample in samples(candidates).items():
            times.setdefault(name, {})[size] = sample
    return times
