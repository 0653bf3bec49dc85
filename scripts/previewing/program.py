"""Counts a compiled program's kernels and bytes in XLA's text, including all turns of loops.

Each operation that is not free counts as a kernel, also copies and library calls. `graphs` counts which of them the
host launches. Bytes are those that operations read and write, as if there were no caches.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

FREE = set("parameter tuple get-tuple-element constant bitcast after-all partition-id replica-id opt-barrier".split())
BRANCHES = "branch_computations", "true_computation", "false_computation"
_LAYOUT = re.compile(r"(?<=\])\{[\d,]*(:[^{}]*)?\}")
_COMMENT = re.compile(r"/\*.*?\*/")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (\((?:[^()]|\([^()]*\))*\)|\S+) ([\w\-]+)\(([^)]*)\)(.*)$")
_ARRAY = re.compile(r"([a-z]+)(\d*)[a-z\d]*\[([\d,]*)\]")


class Operation(NamedTuple):
    """One line of a computation."""

    name: str
    kind: str
    result: str  # its type
    operands: tuple[str, ...]
    attributes: str  # the text after the operands; of a constant, its value
    is_root: bool

    def named(self, attribute: str) -> list[str]:
        """The computations that an attribute names."""
        found = re.search(rf"\b{attribute}=(?:%?([\w.\-]+)|\{{([^}}]*)\}})", self.attributes)
        return [name.strip(" %") for name in (found[1] or found[2]).split(",")] if found else []


class Work(NamedTuple):
    """The work of a part of a program."""

    kernels: float = 0.0
    size: float = 0.0  # bytes read and written
    scatter_adds: float = 0.0  # kernels that add to places which may repeat: by atomics, in any order

    def times(self, turns: float) -> "Work":
        """The work of `turns` turns."""
        return Work(*(turns * number for number in self))


Computations = dict[str, dict[str, Operation]]


def work_of_iteration(text: str, iterations: int, unknown_turns: float) -> Work:
    """The work of one turn of the program's loop over iterations, or of the whole program if it has no such loop.

    Args:
      unknown_turns: the assumed turns of a loop whose length is unknown before it runs.
    """
    computations, entry = parse(text)
    loops = (operation for operation in _reached(entry, computations) if operation.kind == "while")
    bodies = next((loop.named("body") for loop in loops if turns(loop, computations) == iterations), [entry])
    return work(bodies, computations, unknown_turns)


def _reached(body: str, computations: Computations) -> Iterator[Operation]:
    """The operations of a computation, and of those that it calls."""
    for operation in computations[body].values():
        yield operation
        for called in operation.named("to_apply") if operation.kind == "call" else []:
            yield from _reached(called, computations)


def parse(text: str) -> tuple[Computations, str]:
    """Every computation's operations by name, and the name of the entry."""
    computations: Computations = {}
    current = {}
    entry = ""
    for line in _COMMENT.sub("", _LAYOUT.sub("", text)).splitlines():
        if found := _OPERATION.match(line):
            root, name, result, kind, operands, attributes = found.groups()
            named = tuple(re.findall(r"%([\w.\-]+)", operands))
            attributes = operands if kind == "constant" else attributes
            current[name] = Operation(name, kind, result, named, attributes, bool(root))
        elif found := _COMPUTATION.match(line):
            current = computations[found[2]] = {}
            entry = found[2] if found[1] else entry
    return computations, entry


def size_of(shape: str) -> int:
    """Bytes of a type, which may be a tuple."""
    bits = (
        math.prod(map(int, filter(None, dimensions.split(",")))) * (8 if kind == "pred" else int(width or 0))
        for kind, width, dimensions in _ARRAY.findall(shape)
    )
    return sum(-(-count // 8) for count in bits)


def work(bodies: list[str], computations: Computations, unknown_turns: float) -> Work:
    """The work of computations: a conditional counts its larger branch, a loop of unknown length also its condition."""
    found = [Work()]
    for operations in (computations[body] for body in bodies):
        for operation in operations.values():
            if operation.kind == "call":
                found.append(work(operation.named("to_apply"), computations, unknown_turns))
            elif operation.kind == "conditional":
                branches = [body for name in BRANCHES for body in operation.named(name)]
                found.append(max(work([body], computations, unknown_turns) for body in branches))
            elif operation.kind == "while":
                length = turns(operation, computations)
                body = operation.named("body")
                asked = operation.named("condition") if length is None else []
                turn = work(body + asked, computations, unknown_turns)
                found.append(turn.times(unknown_turns if length is None else length))
            elif operation.kind not in FREE and not operation.kind.endswith("-done"):
                adds = _adds_by_scatter(operation, computations)
                found.append(Work(1, _traffic(operation, operations, computations), adds))
    return Work(*map(sum, zip(*found, strict=True)))


def turns(operation: Operation, computations: Computations) -> int | None:
    """A loop's length if XLA states it, as for GPUs, or if its condition compares with a constant, as for TPUs."""
    if said := re.search(r'known_trip_count":\{"n":"(\d+)"', operation.attributes):
        return int(said[1])
    condition = computations[operation.named("condition")[0]]
    root = next(operation for operation in condition.values() if operation.is_root)
    ends = [condition[name].attributes for name in root.operands if condition[name].kind == "constant"]
    return int(ends[0]) if root.kind == "compare" and "direction=LT" in root.attributes and ends else None


def _adds_by_scatter(operation: Operation, computations: Computations) -> bool:
    """Whether an operation adds numbers to places of an array that are not known to be different."""
    fused = computations[operation.named("calls")[0]].values() if operation.kind == "fusion" else [operation]
    scatters = [part for part in fused if part.kind == "scatter" and "unique_indices=true" not in part.attributes]
    combined = [step.kind for part in scatters for step in computations[part.named("to_apply")[0]].values()]
    return "add" in combined


def _traffic(operation: Operation, operations: dict[str, Operation], computations: Computations) -> int:
    """Bytes that one operation reads and writes; of arrays that it indexes, only the part that it reads or replaces."""
    sizes = [size_of(operations[name].result) if name in operations else 0 for name in operation.operands]
    if operation.kind == "fusion":
        return _of_fusion(sizes, computations[operation.named("calls")[0]])
    if operation.kind == "custom-call":  # int8 results are a library's work space
        return sum(sizes) + size_of(re.sub(r"s8\[\d+\]", "", operation.result))
    if (changed := _changed(operation, operations)) is not None:
        return 2 * changed
    if operation.kind in ("dynamic-slice", "gather", "slice"):
        return 2 * size_of(operation.result)
    return sum(sizes) + size_of(operation.result)


def _of_fusion(sizes: list[int], fused: dict[str, Operation]) -> int:
    root = next(operation for operation in fused.values() if operation.is_root)
    written = [fused[name] for name in root.operands if name in fused] if root.kind == "tuple" else [root]
    total = sum(size_of(part.result) if (some := _changed(part, fused)) is None else some for part in written)
    for parameter in (operation for operation in fused.values() if operation.kind == "parameter"):
        users = [user for user in fused.values() if parameter.name in user.operands]
        taken = [_taken(user, parameter.name, fused) for user in users]
        whole = size_of(parameter.result)
        total += whole if None in taken else min(whole, sum(filter(None, taken)))
    return total


def _taken(user: Operation, name: str, fused: dict[str, Operation]) -> int | None:
    """Bytes of an array that an operation needs; None: all."""
    if user.operands[0] != name or name in user.operands[1:]:
        return None
    if user.kind in ("dynamic-slice", "gather", "slice"):
        return size_of(user.result)
    return 0 if user.kind == "dynamic-update-slice" else _changed(user, fused)


def _changed(operation: Operation, operations: dict[str, Operation]) -> int | None:
    """Bytes that an operation replaces in an array that it updates in place; None for other operations."""
    which = {"dynamic-update-slice": 1, "scatter": 2}.get(operation.kind)
    if which is None:
        return None
    update = operations.get(operation.operands[min(which, len(operation.operands) - 1)])
    return size_of(update.result) if update else 0
