"""Things measured against each other are measured in turn, in one process: A B A B ...

A shared machine drifts by tens of percent within a minute, so a figure of its own says little, and a ratio of two means
something only if both saw the same minute. Ratios are therefore taken round by round; medians and spreads are over
rounds.
"""

import time
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import Any, NamedTuple

import jax


class Variant(NamedTuple):
    """One of the things compared."""

    run: Callable[[], Any]  # one call; what it returns is waited for
    work: float  # units done in one call


class Ratio(NamedTuple):
    """A question about two variants: how many times faster is the first than the second?"""

    numerator: str
    denominator: str
    aim: float | None = None  # what the project promises
    judged: bool = True  # by `--compare`: whether ours is to blame if it falls


class Case(NamedTuple):
    """What is measured in turn, and the questions asked of it."""

    suite: str
    name: str
    unit: str
    make: Callable[[], dict[str, Variant]]  # builds and compiles; called when the case's turn has come
    ratios: tuple[Ratio, ...] = ()
    ours: frozenset[str] = frozenset()  # the variants whose rates `--compare` judges
    num_devices: int | None = None  # of the variants on all devices, where there are any
    note: str = ""  # what a reader should know of it


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float  # that one sample of one variant should last; a longer call is one sample
    enough: float = 10.0  # seconds after which three rounds do

    @classmethod
    def quick(cls) -> "Effort":
        """Enough to see that everything works and roughly how fast."""
        return cls(rounds=3, seconds=0.1)

    @classmethod
    def full(cls) -> "Effort":
        """For figures to be kept."""
        return cls(rounds=5, seconds=0.3)


def in_turn(variants: dict[str, Variant], effort: Effort) -> dict[str, list[float]]:
    """Units a second of each variant in each round; every variant is called once or twice first, to warm up."""
    calls = {name: _calls_per_sample(variant, effort.seconds) for name, variant in variants.items()}
    rates: dict[str, list[float]] = {name: [] for name in variants}
    start = time.perf_counter()
    for done in range(effort.rounds):
        if done >= 3 and time.perf_counter() - start > effort.enough:
            break
        for name, variant in variants.items():
            rates[name].append(calls[name] * variant.work / _seconds(variant, calls[name]))
    return rates


def _calls_per_sample(variant: Variant, seconds: float) -> int:
    first = _seconds(variant, 1)
    once = first if first > seconds else _seconds(variant, 1)  # the first call of a short program is not like the rest
    return max(1, round(seconds / once))


def _seconds(variant: Variant, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(variant.run())
    return time.perf_counter() - start


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """Median, and as `spread` half the interquartile range over the median: 0.1 is "give or take a tenth"."""
    if len(samples) < 2:
        return {"median": samples[0], "spread": 0.0}
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return {"median": middle, "spread": (high - low) / 2 / middle}


def asked_about(ratios: Sequence[Ratio]) -> set[str]:
    """The variants that the ratios are of."""
    return {variant for ratio in ratios for variant in (ratio.numerator, ratio.denominator)}


def outline(case: Case) -> dict[str, Any]:
    """The case's record without its figures: what it will tell, and what of it `--compare` judges."""
    return {
        "suite": case.suite,
        "case": case.name,
        "note": case.note,
        "num_devices": case.num_devices,
        "unit": case.unit,
        "higher_is_better": True,
        "rates": {name: {"judged": name in case.ours} for name in asked_about(case.ratios)},
        "ratios": [question._asdict() for question in case.ratios],
    }


def measure(case: Case, effort: Effort) -> dict[str, Any]:
    """The case's record: rates by variant, and each ratio as the median of the rounds' ratios."""
    record, rates = outline(case), in_turn(case.make(), effort)
    for ratio in record["ratios"]:
        by_round = [a / b for a, b in zip(rates[ratio["numerator"]], rates[ratio["denominator"]], strict=True)]
        ratio.update(summary(by_round))
    figures = {name: record["rates"][name] | summary(samples) | {"samples": samples} for name, samples in rates.items()}
    return record | {"rates": figures}
