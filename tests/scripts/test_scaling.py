"""The model of many devices, against numbers worked out by hand."""

import pytest

from scripts.previewing import scaling
from scripts.previewing.scaling import Case, Links

LINKS = Links("", node=4, inner=1e9, outer=1e8, inner_latency=1e-3, outer_latency=2e-3)


@pytest.mark.parametrize(
    ("count", "seconds"),
    [
        (1, 0.0),
        (2, 1e-3 + 1e6 / 1e9),  # each sends half twice
        (4, 1e-3 + 1.5e6 / 1e9),
        (8, 1e-3 + 1.5e6 / 1e9 + 2e-3 + 1e6 / 1e8),  # two nodes
        (16, 1e-3 + 1.5e6 / 1e9 + 4e-3 + 1.5e6 / 1e8),
    ],
)
def test_an_all_reduce_goes_over_the_links_of_a_node_and_then_over_the_network(count, seconds):
    assert scaling.exchange(10**6, count, LINKS) == pytest.approx(seconds)


def test_efficiency_is_the_share_of_the_time_that_is_computed():
    case = Case(seconds=0.2, updates=10, size=10**6)
    assert scaling.efficiency(case, 1, LINKS) == 1.0
    assert scaling.efficiency(case, 2, LINKS) == pytest.approx(0.2 / (0.2 + 10 * 2e-3))


def test_more_devices_are_always_faster_in_all_and_never_more_efficient():
    for (_, on), case in scaling.cases().items():
        shares = [scaling.efficiency(case, count, scaling.LINKS[on]) for count in scaling.COUNTS]
        rates = [count * share for count, share in zip(scaling.COUNTS, shares, strict=True)]
        assert shares == sorted(shares, reverse=True) and rates == sorted(rates)
