"""Counts what a GPU's host launches, single kernels and copies or CUDA graphs of many, from XLA's dump of thunks.

XLA's last step for a GPU turns operations into thunks, and sequences of thunks into command buffers, which are CUDA
graphs. The host drives a loop outside of graphs: it launches the content of each turn, and if XLA does not know the
number of turns, it waits for the device after each.
"""

import re
from pathlib import Path
from typing import NamedTuple

from scripts.previewing import program

GRAPH = "kCommandBuffer"
LOOP = "kWhile"
BRANCH = "kConditional"
UNSEEN = {"kAsyncDone"}
"""Thunks that launch nothing."""
_THUNK = re.compile(r"^( *)(\d+): (k\w+)")
_SECTION = re.compile(r"^( *)([\w ]+):\s*$")


class Thunk(NamedTuple):
    """One step of the host, and its inner steps by section: a loop's condition and body, a conditional's branches."""

    number: int
    kind: str
    parts: dict[str, list["Thunk"]]


class Starts(NamedTuple):
    """The host's work."""

    starts: float  # launches of kernels, copies and graphs
    graphs: float  # those of graphs
    waits: float
    kernels: float  # and copies on the device, in graphs or not

    def times(self, turns: float) -> "Starts":
        """The work of `turns` turns."""
        return Starts(*(turns * number for number in self))


def read(folder: Path) -> tuple[Thunk, dict[int, int | None]]:
    """A program's thunks from XLA's dump in a folder, and the turns of its loops by thunk number (None: unknown)."""

    def largest(pattern: str) -> str:
        return max(folder.glob(pattern), key=lambda file: file.stat().st_size).read_text()

    sequence = "*thunk_sequence_after_thunk_passes.txt"  # exists only if these passes changed something
    root = parse(largest(sequence if list(folder.glob(sequence)) else "*thunk_sequence.txt"))
    computations, _ = program.parse(largest("*gpu_after_optimizations.txt"))
    operations = {name: each for found in computations.values() for name, each in found.items()}
    turns: dict[int, int | None] = {}
    for name, number in re.findall(r'profile_annotation: "([^"]*)"\s+thunk_id: (\d+)', largest("*thunk_metadata.txt")):
        if name in operations and operations[name].kind == "while":
            turns[int(number)] = program.turns(operations[name], computations)
    return root, turns


def parse(text: str) -> Thunk:
    """The tree in XLA's text, which indents by four spaces a level, except a loop's condition."""
    root = Thunk(-1, "root", {"": []})
    open_: list[tuple[int, Thunk, str]] = [(-4, root, "")]  # indentation, thunk, its current section
    for line in text.splitlines():
        if found := _THUNK.match(line):
            indent = len(found[1])
            while open_[-1][0] >= indent:
                open_.pop()
            thunk = Thunk(int(found[2]), found[3], {})
            open_[-1][1].parts.setdefault(open_[-1][2], []).append(thunk)
            open_.append((indent, thunk, ""))
        elif found := _SECTION.match(line):
            while found[2] != "condition" and open_[-1][0] >= len(found[1]):
                open_.pop()
            open_[-1] = (*open_[-1][:2], found[2])
    return root


def count(thunk: Thunk, turns: dict[int, int | None], unknown_turns: float, *, in_graph: bool = False) -> Starts:
    """The host's work for a thunk and its inner thunks, including all turns of loops."""

    def of(thunks: list[Thunk], inside: bool = in_graph) -> Starts:
        found = [count(each, turns, unknown_turns, in_graph=inside) for each in thunks]
        return Starts(*map(sum, zip(Starts(0, 0, 0, 0), *found, strict=True)))

    if thunk.kind == GRAPH:
        inside = of(thunk.parts.get("", []), True)
        return Starts(1, 1, 0, inside.kernels)
    if thunk.kind == LOOP:
        known = turns.get(thunk.number)
        times, asked = (unknown_turns, 1) if known is None else (known, 0)
        body = of(thunk.parts.get("body", []))
        condition = of(thunk.parts.get("condition", [])).times(asked)
        one = Starts(*map(sum, zip(body, condition, strict=True))).times(times)
        return one._replace(waits=one.waits + times * asked * (not in_graph))
    if thunk.kind == BRANCH:
        most = max((of(part) for part in thunk.parts.values()), key=lambda found: found.kernels)
        return most._replace(waits=most.waits + (not in_graph))
    if any(thunk.parts.values()) or thunk.kind == "root":
        return of([each for part in thunk.parts.values() for each in part])
    is_seen = thunk.kind not in UNSEEN
    return Starts(is_seen and not in_graph, 0, 0, is_seen)


def left_outside(root: Thunk) -> list[Thunk]:
    """The loops and conditionals outside of graphs."""
    if root.kind == GRAPH:
        return []
    own = [root] if root.kind in (LOOP, BRANCH) else []
    return own + [found for part in root.parts.values() for thunk in part for found in left_outside(thunk)]
