"""What more devices gain: a model of an iteration on 1 to 1,024 of them.

Every device plays as many games and learns from as many windows as a preset has (weak scaling). It computes for the
time of the preview's lower bound, and in every update waits for an all-reduce of the gradients. That goes over the
links of a node, and then over the network, where each node sends 2 (N - 1) / N of the bytes (a ring of N nodes).
Nothing overlaps here. docs/many-machines.md has the tables.
"""

import math
from typing import NamedTuple

from scripts.documentation.tables import table
from scripts.previewing import page

COUNTS = (1, 2, 8, 64, 256, 1024)
PRESETS = "Hex 5x5", "Hex 9x9", "Connect Four"


class Links(NamedTuple):
    """How the devices of a kind of machine are joined. Rates are the makers'; latencies are orders of magnitude."""

    title: str
    node: int  # devices that the inner links join
    inner: float  # bytes/s that a device sends over them
    outer: float  # bytes/s that a node sends over the network
    inner_latency: float  # seconds of an all-reduce of nothing within a node
    outer_latency: float  # seconds more for each doubling of the nodes


LINKS = {
    "T4": Links("4 x T4, PCIe 3.0, 50 Gb/s (AWS g4dn.12xlarge)", 4, 12e9, 6.25e9, 40e-6, 50e-6),
    "H100": Links("8 x H100, NVLink, 8 x 400 Gb/s (DGX H100)", 8, 450e9, 400e9, 20e-6, 15e-6),
    "v5e": Links("256 x v5e, 1,600 Gb/s a chip; 32 hosts of 100 Gb/s", 256, 100e9, 400e9, 20e-6, 100e-6),
}


class Case(NamedTuple):
    """One preset on one kind of device."""

    seconds: float  # of an iteration on one device
    updates: int
    size: int  # bytes of the gradients


def exchange(size: int, count: int, links: Links) -> float:
    """Seconds of an all-reduce of `size` bytes over `count` devices."""
    if count == 1:
        return 0.0
    within, nodes = min(count, links.node), -(-count // links.node)
    inner = 2 * (within - 1) / within * size / links.inner + links.inner_latency
    return inner + 2 * (nodes - 1) / nodes * size / links.outer + links.outer_latency * math.log2(nodes)


def efficiency(case: Case, count: int, links: Links) -> float:
    """Frames a second of `count` devices, as a share of `count` times those of one."""
    return case.seconds / (case.seconds + case.updates * exchange(case.size, count, links))


def cases() -> dict[tuple[str, str], Case]:
    """The presets that were previewed, by game and device."""
    records = page.read()
    return {(name, on): case(records[f"{name}, {on}"]) for name in PRESETS for on in LINKS}


def case(record: page.Record) -> Case:
    """The preview of a preset on one device, none of which has a target network."""
    iteration = record["iteration"]
    updates = next(loop["turns"] for loop in record["loops"] if loop["name"] == "update")
    return Case(max(iteration["seconds"].values()), updates, record["memory"]["parameters"])


def tables(which: str) -> str:
    """One of the page's tables."""
    heads, rows = {"links": _links, "efficiency": _efficiency}[which]()
    return table(heads, rows)


def _efficiency() -> page.Table:
    heads = ("preset", "devices", "gradients", "an iteration", *(f"{count:,}" for count in COUNTS))
    return heads, [
        (
            name,
            on,
            f"{case.size / 1e6:.2f} MB, {case.updates} times",
            f"{1e3 * case.seconds:.0f} ms",
            *(f"{efficiency(case, count, LINKS[on]):.0%}" for count in COUNTS),
        )
        for (name, on), case in cases().items()
    ]


def _links() -> page.Table:
    heads = ("devices", "a node", "GB/s inside", "GB/s outside", "latency inside", "a doubling of nodes")
    return heads, [
        (
            on,
            links.title,
            f"{links.inner / 1e9:g}",
            f"{links.outer / 1e9:g}",
            f"{1e6 * links.inner_latency:g} us",
            f"{1e6 * links.outer_latency:g} us",
        )
        for on, links in LINKS.items()
    ]
