"""What a GPU's host starts: kernels and copies one by one, or CUDA graphs of many, from the thunks that XLA dumps.

XLA's last step for a GPU turns its operations into thunks, and runs of them into command buffers, which are CUDA
graphs. A loop that stays outside of a graph is driven by the host: it starts what a turn holds, and where XLA does not
know the number of turns, it waits for the device after each.
"""

import re
from pathlib import Path
from typing import NamedTuple

from scripts.previewing import program

GRAPH, LOOP, BRANCH = "kCommandBuffer", "kWhile", "kConditional"
UNSEEN = {"kAsyncDone"}
"""Thunks that start nothing."""
_THUNK = re.compile(r"^( *)(\d+): (k\w+)")
_SECTION = re.compile(r"^( *)([\w ]+):\s*$")


class Thunk(NamedTuple):
    """One step of the host, with those inside it by section: a loop's condition and body, a conditional's branches."""

    number: int
    kind: str
    parts: dict[str, list["Thunk"]]


class Starts(NamedTuple):
    """What the host does."""

    starts: float  # of kernels, copies and graphs
    graphs: float  # of these the graphs
    waits: float
    kernels: float  # and copies that the device runs, within graphs or not

    def times(self, turns: float) -> "Starts":
        """The same so many times."""
        return Starts(*(turns * number for number in self))


def read(folder: Path) -> tuple[Thunk, dict[int, int | None]]:
    """The thunks that XLA dumped into a folder for a program, and the turns of its loops by number (None: unknown)."""

    def largest(pattern: str) -> str:
        return max(folder.glob(pattern), key=lambda file: file.stat().st_size).read_text()

    sequence = "*thunk_sequence_after_thunk_passes.txt"  # there only if these passes changed something
    root = parse(largest(sequence if list(folder.glob(sequence)) else "*thunk_sequence.txt"))
    computations, _ = program.parse(largest("*gpu_after_optimizations.txt"))
    operations = {name: each for found in computations.values() for name, each in found.items()}
    turns: dict[int, int | None] = {}
    for name, number in re.findall(r'profile_annotation: "([^"]*)"\s+thunk_id: (\d+)', largest("*thunk_metadata.txt")):
        if name in operations and operations[name].kind == "while":
            turns[int(number)] = program.turns(operations[name], computations)
    return root, turns


def parse(text: str) -> Thunk:
    """The tree of XLA's text: four spaces a level; a loop's condition is printed without its indentation."""
    root = Thunk(-1, "root", {"": []})
    open_: list[tuple[int, Thunk, str]] = [(-4, root, "")]  # indentation, thunk, the section that is being read
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
    """What the host does for a thunk, and for all within it; loops with all their turns."""

    def of(thunks: list[Thunk], inside: bool = in_graph) -> Starts:
        found = [count(each, turns, unknown_turns, in_graph=inside) for each in thunks]
        return Starts(*map(sum, zip(Starts(0, 0, 0, 0), *found, strict=True)))

    if thunk.kind == GRAPH:
        inside = of(thunk.parts.get("", []), True)
        return Starts(1, 1, 0, inside.kernels)
    if thunk.kind == LOOP:
        known = turns.get(thunk.number)
        times, asked = (unknown_turns, 1) if known is None else (known, 0)
        body, condition = of(thunk.parts.get("body", [])), of(thunk.parts.get("condition", [])).times(asked)
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
    """The loops and conditionals that are in no graph."""
    if root.kind == GRAPH:
        return []
    own = [root] if root.kind in (LOOP, BRANCH) else []
    return own + [found for part in root.parts.values() for thunk in part for found in left_outside(thunk)]
