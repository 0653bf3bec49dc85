"""A case of the benchmark: what is measured in turn, the questions asked of it, and its record."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from scripts.measuring import timing
from scripts.measuring.timing import Effort, Sample, Variant

Record = dict[str, Any]


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


def asked_about(ratios: Iterable[Ratio]) -> set[str]:
    """The variants that the ratios are of."""
    return {variant for ratio in ratios for variant in (ratio.numerator, ratio.denominator)}


def outline(case: Case) -> Record:
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


def figure(sample: Sample) -> dict[str, float]:
    """As records keep it."""
    return {"median": sample.median, "spread": sample.spread}


def measure(case: Case, effort: Effort) -> Record:
    """The case's record: rates by variant, and each ratio as the median of the rounds' ratios."""
    record, rates = outline(case), timing.rates(case.make(), effort)
    for ratio in record["ratios"]:
        ratio |= figure(timing.ratio(rates[ratio["numerator"]], rates[ratio["denominator"]]))
    for name, values in rates.items():
        record["rates"][name] |= figure(timing.summarise(values)) | {"samples": values}
    return record
