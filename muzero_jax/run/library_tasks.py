"""Tasks that XLA's CPU library leaves on the heap, which XLA's own account of a program's memory leaves out.

Every larger matrix product or sum (YNNPACK) leaves a task in a queue, for a helper thread to share in. Where each
thread of XLA's pool runs a device's program, no thread comes to help: the caller does all the work, and the tasks,
which nobody needs any more, wait in the queue until the program ends. An iteration of a convolution tower leaves
hundreds of MiB of them.

They are counted in the compiled program's text, loop by loop. Constants are of jaxlib 0.10, found by counting
allocations (docs/performance.md); a program without these operations leaves nothing.
"""

import math
import re
from typing import Any

from jax.sharding import Mesh

from muzero_jax.arithmetic import devices

TASK_BYTES = 2512
"""One task, with its place in the queue, up to 32 threads."""

_SHARED_PRODUCT, _SHARED_SUM = 2**22, 2**15
"""More multiplications than this, or more numbers to add up, are offered to helpers."""

_BEGIN = re.compile(r"(ENTRY )?%?([\w.-]+) .*\{$")
_INSTRUCTION = re.compile(r" +(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\(([^)]*)\)")
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
_SUMMED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED = re.compile(r"(?:calls|body|to_apply|true_computation|false_computation)=(%?[\w.-]+)|branch_\w+=\{([^}]*)\}")


def waiting_bytes(program: Any, mesh: Mesh) -> int:
    """Bytes per device of the tasks that wait when a compiled program ends; 0 if the devices leave a thread to help.

    XLA's pool has a thread for each core, and no fewer than devices.
    """
    if mesh.devices.flat[0].platform != "cpu" or not 1 < mesh.size >= devices.schedulable_cores():
        return 0
    return count(program.as_text() or "") * TASK_BYTES


def count(hlo: str) -> int:
    """About how many tasks one run of a program leaves on each device, by its text (`jax.stages.Compiled.as_text`).

    Of branches the one that leaves most counts. Loops without a known end count once, and what is not understood not
    at all.
    """
    computations = _computations(hlo)
    tasks: dict[str, int] = {}

    def count_in(name: str) -> int:
        if name not in tasks:
            tasks[name] = sum(map(count_instruction, computations.get(name, [])))
        return tasks[name]

    def count_instruction(line: str) -> int:
        instruction = _INSTRUCTION.match(line)
        operation = instruction[3] if instruction else None
        if operation == "fusion":
            return "__ynn_fusion" in line and any(_is_large(computations.get(name, [])) for name in _called(line))
        if operation not in ("while", "call", "conditional"):
            return 0
        trips = _TRIPS.search(line)
        return (int(trips[1]) if trips else 1) * max(map(count_in, _called(line)), default=0)

    return count_in("ENTRY")


def _computations(hlo: str) -> dict[str, list[str]]:
    """The lines of each computation by its name, which is ENTRY for the program itself."""
    computations: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in hlo.splitlines():
        if begin := _BEGIN.match(line):
            lines = computations.setdefault("ENTRY" if begin[1] else begin[2], [])
        elif line.startswith(" "):
            lines.append(line)
    return computations


def _called(line: str) -> list[str]:
    """The computations that an instruction calls; of a loop its body."""
    listed = (one or several for one, several in _CALLED.findall(line))
    return [name.strip().lstrip("%") for names in listed for name in names.split(",")]


def _is_large(fused: list[str]) -> bool:
    """Whether an operation is large enough to be shared, by the shapes in it."""
    shapes: dict[str, list[int]] = {}
    for line in fused:
        if not (instruction := _INSTRUCTION.match(line)):
            continue
        name, text, operation, inputs = instruction.groups()
        dimensions = _SHAPE.match(text)
        shapes[name] = _integers(dimensions[1]) if dimensions else [0]
        if operation == "dot" and (summed := _SUMMED.search(line)):
            factor = shapes.get(inputs.partition(",")[0].strip().lstrip("%"), [])
            terms = math.prod(factor[axis] for axis in _integers(summed[1]) if axis < len(factor))
            return terms * math.prod(shapes[name]) > _SHARED_PRODUCT
    return max(map(math.prod, shapes.values()), default=0) > _SHARED_SUM


def _integers(text: str) -> list[int]:
    return [int(n) for n in text.split(",") if n]
