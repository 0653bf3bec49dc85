"""What a compiled program would do, read from XLA's text of it: the loops, and of each a turn's kernels and bytes.

Each operation of the text that is not free counts as a kernel, copies and library calls too. What the host starts of
them is in `graphs`. Bytes are what operations read and write, without what caches save.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

FREE = set(
    "parameter tuple get-tuple-element constant bitcast after-all partition-id replica-id opt-barrier while call "
    "conditional".split()
)
NAMES = {
    "rollout": "move",
    "search": "simulation",
    "passes": "pass",
    "descend": "level down",
    "backup": "level up",
    "closed_call": "loop",
}
"""What loops are called, by the last part of the scope that they lie in."""
_LAYOUT, _COMMENT = re.compile(r"(?<=\])\{[\d,]*(:[^{}]*)?\}"), re.compile(r"/\*.*?\*/")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (\((?:[^()]|\([^()]*\))*\)|\S+) ([\w\-]+)\(([^)]*)\)(.*)$")
_ARRAY = re.compile(r"([a-z]+)(\d*)[a-z\d]*\[([\d,]*)\]")


class Operation(NamedTuple):
    """One line of a computation."""

    name: str
    kind: str
    result: str  # its type
    operands: tuple[str, ...]
    attributes: str  # what stands behind the operands; of a constant its value
    is_root: bool

    def named(self, attribute: str) -> list[str]:
        """The computations that an attribute names."""
        found = re.search(rf"\b{attribute}=(?:%?([\w.\-]+)|\{{([^}}]*)\}})", self.attributes)
        return [name.strip(" %") for name in (found[1] or found[2]).split(",")] if found else []


class Loop(NamedTuple):
    """A loop's turn, or all that lies in no loop."""

    name: str
    turns: int | None  # None: not known before it runs
    kernels: int  # of a turn, without those of inner loops
    size: int  # bytes that a turn reads and writes
    inner: tuple["Loop", ...]

    def walk(self) -> Iterator["Loop"]:
        """The loop and all within it."""
        yield self
        for loop in self.inner:
            yield from loop.walk()


Computations = dict[str, dict[str, Operation]]


def read(text: str) -> Loop:
    """The whole program as a loop of one turn, called "chunk"."""
    computations, entry = parse(text)
    return _loop("chunk", 1, [entry], computations)


def parse(text: str) -> tuple[Computations, str]:
    """Every computation's operations by name, and the name of the entry."""
    computations: Computations = {}
    current, entry = {}, ""
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
    """Bytes of a type, a tuple's being those of its parts."""
    bits = (
        math.prod(map(int, filter(None, dimensions.split(",")))) * (8 if kind == "pred" else int(width or 0))
        for kind, width, dimensions in _ARRAY.findall(shape)
    )
    return sum(-(-count // 8) for count in bits)


def _loop(name: str, turns: int | None, bodies: list[str], computations: Computations) -> Loop:
    kernels = size = 0
    inner = []
    for operations in (computations[body] for body in bodies):
        for operation in operations.values():
            for part in _parts(operation, computations):
                kernels, size = kernels + part.kernels, size + part.size
                inner += part.inner
            if operation.kind == "while":
                inner.append(_while(operation, computations))
            elif operation.kind not in FREE and not operation.kind.endswith("-done"):
                kernels, size = kernels + 1, size + _traffic(operation, operations, computations)
    return Loop(name, turns, kernels, size, tuple(inner))


def _parts(operation: Operation, computations: Computations) -> list[Loop]:
    """What runs as part of the same turn: a called computation, and the branch of a conditional that does most."""
    if operation.kind == "call":
        return [_loop("", 1, operation.named("to_apply"), computations)]
    if operation.kind != "conditional":
        return []
    names = ("branch_computations", "true_computation", "false_computation")
    branches = [_loop("", 1, [body], computations) for name in names for body in operation.named(name)]
    return [max(branches, key=lambda branch: sum(loop.kernels for loop in branch.walk()))]


def _while(operation: Operation, computations: Computations) -> Loop:
    """A loop; where its length is not known, a turn asks its condition too."""
    body, condition = operation.named("body"), operation.named("condition")
    if (length := turns(operation, computations)) is not None:
        return _loop(_name(operation), length, body, computations)
    return _loop(_name(operation), None, body + condition, computations)


def turns(operation: Operation, computations: Computations) -> int | None:
    """A loop's length if XLA says it, as for GPUs, or if its condition compares with a constant, as for TPUs."""
    if said := re.search(r'known_trip_count":\{"n":"(\d+)"', operation.attributes):
        return int(said[1])
    condition = computations[operation.named("condition")[0]]
    root = next(operation for operation in condition.values() if operation.is_root)
    ends = [condition[name].attributes for name in root.operands if condition[name].kind == "constant"]
    return int(ends[0]) if root.kind == "compare" and "direction=LT" in root.attributes and ends else None


def _name(operation: Operation) -> str:
    """The scope that a loop was written in, without what JAX puts around it."""
    scope = re.search(r'op_name="([^"]*)"', operation.attributes)
    last = ((scope[1] if scope else "").removesuffix("/while").split("/") or [""])[-1]
    if re.fullmatch(r"branch_\d+_fun", last):
        return "update"
    word = re.findall(r"\w+", last) or ["loop"]
    return NAMES.get(word[-1]) or word[-1].strip("_")


def _traffic(operation: Operation, operations: dict[str, Operation], computations: Computations) -> int:
    """Bytes that one operation reads and writes; of what it indexes into, only what it takes or replaces."""
    sizes = [size_of(operations[name].result) if name in operations else 0 for name in operation.operands]
    if operation.kind == "fusion":
        return _of_fusion(sizes, computations[operation.named("calls")[0]])
    if operation.kind == "custom-call":  # bytes without an operand's name behind them are a library's room to work in
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
    """Bytes that an operation replaces in an array that is updated in place; None if it is of another kind."""
    which = {"dynamic-update-slice": 1, "scatter": 2}.get(operation.kind)
    if which is None:
        return None
    update = operations.get(operation.operands[min(which, len(operation.operands) - 1)])
    return size_of(update.result) if update else 0
