"""How much of the machine other processes took while something was measured.

Ratios survive a noisy neighbour that slows everything down alike, but not this: threads that wait for each other by
spinning (NumPy's and PyTorch's products) lose a hundredfold when one core of two is taken, XLA's perhaps twofold. So
the report says what was taken, and its conclusion warns where that was much.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.report.records import Table

MUCH = 0.1
STAT = Path("/proc/stat")


def taken_share(busy: float, own: float, wall: float, cores: int) -> float:
    """CPU seconds of others (all that was busy less one's own) over the wall-clock time of all cores; at least 0."""
    return max(0.0, (busy - own) / (wall * cores))


class Interference:
    """The share that others took, by stage; empty on systems without /proc/stat."""

    def __init__(self, stat: Path = STAT):
        self._stat = stat
        self._seconds: dict[str, tuple[float, float, float]] = {}  # busy, own, wall

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Watches while a `with` block runs."""
        start = self._clocks()
        yield
        end = self._clocks()
        if start is not None and end is not None:
            busy, own, wall = (after - before for before, after in zip(start, end, strict=True))
            self._seconds[name] = busy, own, wall

    def shares(self) -> dict[str, float]:
        """By stage."""
        cores = os.cpu_count() or 1
        return {name: taken_share(*seconds, cores) for name, seconds in self._seconds.items()}

    def total(self) -> float | None:
        """Of all stages together; None where it is not known."""
        if not self._seconds:
            return None
        busy, own, wall = (sum(column) for column in zip(*self._seconds.values(), strict=True))
        return taken_share(busy, own, wall, os.cpu_count() or 1)

    def table(self) -> Table:
        """For the chapter on the machine."""
        rows = [(name, f"{share:.0%}") for name, share in self.shares().items()]
        return Table(("CPU time taken by other processes during", "share of all cores"), rows or [("unknown", "-")])

    def warnings(self) -> list[str]:
        """A sentence if others took much, else nothing."""
        total = self.total()
        if total is None or total < MUCH:
            return []
        return [
            f"Other processes took {total:.0%} of the machine's CPU time meanwhile. NumPy and PyTorch, whose threads "
            "spin while they wait for each other, can lose far more by that than JAX does: trust comparisons with them "
            "only from a quiet machine."
        ]

    def _clocks(self) -> tuple[float, float, float] | None:
        """Busy seconds of all cores since the system started, of this process and its children, and the time."""
        try:
            fields = [int(field) for field in self._stat.read_text().splitlines()[0].split()[1:9]]
        except (OSError, ValueError, IndexError):
            return None
        busy = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # less idle and waiting for disks
        return busy, sum(os.times()[:4]), time.perf_counter()
