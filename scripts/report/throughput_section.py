"""Simulations per second of search and updates per second of learning, told; `throughput` measures them."""

from collections.abc import Sequence

from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import NOTHING, seconds, spread
from scripts.report.records import Section, Table
from scripts.report.throughput import ALL, NETWORK_ALONE, ONE, Measured, describe
from scripts.report.timing import Sample, rate

ON_ALL = ("all devices", "of which used")


def throughput_section(searches: Sequence[Measured], learners: Sequence[Measured]) -> Section:
    """Chapter from the measurements."""
    text = (
        "Search of fresh games in self-play's own configuration, and gradient steps as an iteration makes them "
        "(drawing windows from a filled ring, symmetries, targets, gradient, optimiser). On all devices the same games "
        "or windows are split over as many as divide them. The network alone is one initial and as many recurrent "
        "inferences as the search makes, in a loop on one device: its share of the search's time says how little the "
        "tree costs."
    )
    return Section(
        "Search and training-step throughput",
        text,
        [_search_table(searches), _learner_table(learners)],
        headlines=_headlines(searches, learners),
    )


def _search_table(searches: Sequence[Measured]) -> Table:
    header = ("search", "games", "simulations", "time", "simulations/s, one device", *ON_ALL, "network's share")
    return Table(
        header,
        [
            (
                describe(s.config),
                str(s.size),
                str(s.config.search.num_simulations),
                seconds(s.times[ONE]),
                *_rates(s),
                f"{s.times[NETWORK_ALONE].median / s.times[ONE].median:.0%}",
            )
            for s in searches
        ],
    )


def _learner_table(learners: Sequence[Measured]) -> Table:
    header = ("gradient steps", "windows", "unroll steps", "time of one", "updates/s, one device", *ON_ALL)
    return Table(
        header,
        [
            (
                describe(m.config),
                str(m.size),
                str(m.config.targets.unroll_steps),
                seconds(Sample(*(value / m.units for value in m.times[ONE]))),
                *_rates(m),
            )
            for m in learners
        ],
    )


def _rates(measured: Measured) -> list[str]:
    def cell(name: str) -> str:
        return spread(rate(measured.units, measured.times[name])) if name in measured.times else NOTHING

    return [cell(ONE), cell(ALL), str(measured.num_devices) if ALL in measured.times else NOTHING]


def _headlines(searches: Sequence[Measured], learners: Sequence[Measured]) -> list[str]:
    works = {f"search ({describe(s.config)}, {s.size} games)": s.times for s in searches}
    works |= {f"gradient steps ({describe(m.config)})": m.times for m in learners}
    split = {name: {work: times[name] for work, times in works.items() if ALL in times} for name in (ONE, ALL)}
    return [describe_comparison(ALL, ONE, "for", compare(split[ALL], split[ONE]))] if split[ALL] else []
