"""A case of the benchmark: what is measured in turn, what its record says, and what is worse than in an older one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from scripts.measuring import report, timing
from scripts.measuring.timing import Effort, Sample, Variant

Record = dict[str, Any]
TOLERANCE = 0.1
"""A figure that has fallen by more than this, beyond the spread of both reports, is a regression."""


class Ratio(NamedTuple):
    """A question about two variants: how many times faster is the first than the second?"""

    numerator: str
    denominator: str
    aim: float | None = None  # what the project promises
    judged: bool = True  # by `--compare`: whether ours is to blame if it falls


class Case(NamedTuple):
    """Variants that are measured in turn, and the ratios that are taken of them."""

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
    """The case's record without its figures: their names, and which of them `--compare` judges."""
    return {
        "suite": case.suite,
        "case": case.name,
        "note": case.note,
        "num_devices": case.num_devices,
        "unit": case.unit,
        "rates": {name: {"judged": name in case.ours} for name in asked_about(case.ratios)},
        "ratios": [question._asdict() for question in case.ratios],
    }


def figure(sample: Sample) -> dict[str, float]:
    """A sample as records keep it: median and spread."""
    return {"median": sample.median, "spread": sample.spread}


def measure(case: Case, effort: Effort) -> Record:
    """The case's record: rates by variant, and each ratio as the median of the rounds' ratios."""
    record, rates = outline(case), timing.rates(case.make(), effort)
    for ratio in record["ratios"]:
        ratio |= figure(timing.ratio(rates[ratio["numerator"]], rates[ratio["denominator"]]))
    judged = record["rates"]
    figures = {name: judged[name] | figure(timing.summarise(x)) | {"samples": x} for name, x in rates.items()}
    return record | {"rates": figures}


# --- showing and comparing --------------------------------------------------------------------------------------------


def table(record: Record) -> str:
    """The record as Markdown: rates by variant, then the ratios."""
    note = f" ({record['note']})" if record.get("note") else ""
    rows = [(n, report.three_digits(rate["median"]), f"{rate['spread']:.0%}") for n, rate in record["rates"].items()]
    for ratio in record["ratios"]:
        aim = f" (aim {ratio['aim']:g})" if ratio["aim"] is not None else ""
        rows.append((ratio_name(ratio), f"**{ratio['median']:.2f}x**{aim}", f"{ratio['spread']:.0%}"))
    shown = report.table(("", record["unit"], "spread"), rows)
    return f"**{record['suite']}**: {record['case']}{note}\n\n{shown}\n"


def ratio_name(ratio: Record) -> str:
    """The ratio in words."""
    return f"{ratio['numerator']} / {ratio['denominator']}"


def figures(report: Record, *, same_machine: bool) -> Iterator[tuple[str, Record]]:
    """(name, figure) of all that two reports have in common; ratios travel between machines, rates do not.

    What runs on all devices is named by their number, so that it is compared only with what ran on as many.
    """
    for record in report["results"]:
        found = [(ratio_name(ratio), ratio) for ratio in record["ratios"]]
        if same_machine:
            found += record["rates"].items()
        for name, figure in found:
            number = record.get("num_devices")
            told = name.replace("all devices", f"{number} devices") if number else name
            yield f"{record['suite']}: {record['case']}: {told}", figure


def shared(new: Record, old: Record) -> list[tuple[str, Record, Record]]:
    """(name, new figure, older one) of all that two reports share and that is judged.

    Which are judged, the new report says, or the outline of one to come; an older one need not.
    """
    same_machine = new["machine"]["hardware"] == old["machine"]["hardware"]
    before = dict(figures(old, same_machine=same_machine))
    found = figures(new, same_machine=same_machine)
    return [(name, now, before[name]) for name, now in found if name in before and now["judged"]]


def compare(new: Record, old: Record) -> tuple[int, list[str]]:
    """How many judged figures two reports share, and a sentence for each that worsened beyond TOLERANCE and spreads."""
    compared, found = shared(new, old), []
    for name, now, before in compared:
        allowed = TOLERANCE + now["spread"] + before["spread"]
        worsened = 1 - now["median"] / before["median"]
        if worsened > allowed:
            fell = f"from {before['median']:,.3g} to {now['median']:,.3g}"
            found.append(f"{name}: {fell}, {worsened:.0%} worse ({allowed:.0%} allowed)")
    return len(compared), found
