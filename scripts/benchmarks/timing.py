"""Measures variants in turn, in one process: A B A B ...

A shared machine's speed drifts by tens of percent within a minute, so a single figure says little, and a ratio is
meaningful only if both variants ran in the same minute. Spreads are interquartile ranges, which one interrupted round
does not widen. Before each sample, a pause lets the threads of the one before come to rest, and uncounted calls wake
the sample's own.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, quantiles
from typing import Any, NamedTuple

import jax

PAUSE_SECONDS = 0.12
"""NumPy's OpenBLAS was seen to spin for 105 ms after a product, which doubled the time of XLA's next program."""
LONG_SECONDS = 0.25
"""Seconds above which a call needs no warm-up, because threads wake up in a few hundredths."""


class Sample(NamedTuple):
    """A rate or a ratio by rounds."""

    median: float
    spread: float  # half the interquartile range over the median: 0.1 is +- 10%


class Variant(NamedTuple):
    """A program of ours or a yardstick, ready to run."""

    run: Callable[..., Any]  # one call; the clock stops when its result is ready
    work: float = 1.0  # units done in one call
    prepare: Callable[[], Any] | None = None  # makes an input for every call, outside the clock


def going_on(program: Callable, state: Any, *others: Any) -> Callable[[], Any]:
    """A function that calls `program`, (state, *others) -> (next state, output), each time with the next state."""

    def run():
        nonlocal state
        state, output = program(state, *others)
        return output

    return run


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float  # of one sample, at least one call


QUICK = Effort(3, 0.1)
FULL = Effort(5, 0.3)


def in_turn(variants: Mapping[str, Variant], effort: Effort) -> dict[str, list[float]]:
    """Seconds of one call of each variant, round by round; the first call of each (compilation) is not counted."""
    for variant in variants.values():
        _call(variant)
    rounds = [
        {name: _sample(variant, effort.seconds) for name, variant in variants.items()} for _ in range(effort.rounds)
    ]
    return {name: [seconds[name] for seconds in rounds] for name in variants}


def _sample(variant: Variant, seconds: float) -> float:
    """The mean time of the calls that begin within `seconds`, at least one, after uncounted calls for as long."""
    time.sleep(PAUSE_SECONDS)
    first, *_ = _calls(variant, seconds)
    return first if first > LONG_SECONDS else fmean(_calls(variant, seconds))


def _calls(variant: Variant, seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    times = [_call(variant)]
    while time.perf_counter() < end:
        times.append(_call(variant))
    return times


def _call(variant: Variant) -> float:
    inputs = (jax.block_until_ready(variant.prepare()),) if variant.prepare else ()
    start = time.perf_counter()
    jax.block_until_ready(variant.run(*inputs))
    return time.perf_counter() - start


def summarise(values: Sequence[float]) -> Sample:
    """Median and spread over at least two rounds."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Sample(middle, (high - low) / 2 / middle)


def ratio(first: Sequence[float], second: Sequence[float]) -> Sample:
    """The first over the second, round by round, because what slows down a round slows both."""
    return summarise([a / b for a, b in zip(first, second, strict=True)])
