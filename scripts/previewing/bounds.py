"""The least time that an iteration can take: by its FLOPs, by the bytes it moves, and by launching its kernels.

Each alone is a lower bound, so the largest is one: the iteration is compute-bound, memory-bound or launch-bound. The
third holds if the host launches every kernel by itself. With CUDA graphs it launches fewer, and what a kernel costs
within a graph is not known. Loops of unknown length are those of the trees' levels: they are taken to be as many as the
binary logarithm of a search's simulations.
"""

import math
from typing import NamedTuple

from scripts.previewing.program import Loop
from scripts.previewing.targets import Target


class Work(NamedTuple):
    """What some part of a program does."""

    kernels: float
    waits: float
    size: float  # bytes read and written
    flops: float = 0.0

    def times(self, games: float) -> "Work":
        """The same with so many times the games and windows: as many kernels, each of larger arrays."""
        return self._replace(size=games * self.size, flops=games * self.flops)


def levels(num_simulations: int) -> float:
    """Levels of a tree that a simulation walks, of the deepest of all games."""
    return max(1.0, math.log2(num_simulations))


def work(loop: Loop, unknown_turns: float) -> Work:
    """One turn of a loop with all turns of those within it."""
    kernels, waits, size = float(loop.kernels), float(loop.waits), float(loop.size)
    for inner in loop.inner:
        turns, of_one = unknown_turns if inner.turns is None else inner.turns, work(inner, unknown_turns)
        kernels, waits = kernels + turns * of_one.kernels, waits + turns * of_one.waits
        size += turns * of_one.size
    return Work(kernels, waits, size)


def seconds(done: Work, target: Target, dtype: str) -> dict[str, float]:
    """The lower bounds by name."""
    return {
        "FLOPs": done.flops / target.peak.get(dtype, target.peak["bfloat16"]),  # bfloat16_products multiplies those
        "bytes": done.size / target.bandwidth,
        "launches": done.kernels * target.launch + done.waits * target.wait,
    }


LIMITS = {"FLOPs": "compute-bound", "bytes": "memory-bound", "launches": "launch-bound"}


class Bound(NamedTuple):
    """What the lower bounds say of an iteration."""

    limit: str  # of LIMITS
    seconds: float
    frames_per_second: float  # at best
    busy: float  # share of the time that the device would compute or move bytes


def bound(done: Work, frames: int, target: Target, dtype: str) -> Bound:
    """The largest of the lower bounds of an iteration of so many frames."""
    found = seconds(done, target, dtype)
    name = max(found, key=lambda name: found[name])
    longest = found[name]
    return Bound(LIMITS[name], longest, frames / longest, max(found["FLOPs"], found["bytes"]) / longest)
