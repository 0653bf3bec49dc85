"""The most memory that a run really held, to set beside its plan.

An accelerator counts for itself, from the start of the process. For a CPU, Linux keeps the peak of a process and lets
it be set back: what the process has grown by since before the state was made is read off while chunks run. Compiled
programs, the chunk's and those of matches, 50 to 400 MiB of the process, are there before and stay out of it.

Without care up to half of that is free heap that the C library keeps: what the first chunks, matches and every save of
a checkpoint leave behind, in pieces that later chunks do not fit into. So it is given back from time to time, and
commands that train keep large blocks out of it.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jax.sharding import Mesh

from muzero_jax.arithmetic.devices import memory_stats

_M_MMAP_THRESHOLD = -3  # in glibc's malloc.h
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class MemoryMeter:
    """Watches chunks and gives free heap back between them; make it after compiling and before the state."""

    def __init__(self, mesh: Mesh):
        self._devices = list(mesh.devices.flat)
        self._before: int | None = None
        self._give_back_at = 0.0
        self._peak: int | None = None
        self._is_cpu = self._devices[0].platform == "cpu"
        if self._is_cpu:
            gc.collect()  # what was only traced; given back later, it would hide what the run grows by
            give_back()
            self._before = set_back()

    @contextmanager
    def chunk(self) -> Iterator[None]:
        """Of a `with` block, which must wait for its results."""
        if self._before is not None:
            set_back()
        yield
        if self._before is not None:
            grown = (process_bytes("VmHWM") - self._before) // len(self._devices)
            self._peak = max(grown, self._peak or 0)
        if self._is_cpu:
            self._give_back()

    def _give_back(self) -> None:
        """Between chunks; it takes some 30 ms, and at most 1% of the time."""
        start = time.monotonic()
        if start >= self._give_back_at:
            give_back()
            now = time.monotonic()
            self._give_back_at = now + 100 * (now - start)

    @property
    def peak(self) -> int | None:
        """Bytes of the device that held most, so far; None where nobody counts."""
        counted = [memory_stats(device).get("peak_bytes_in_use") for device in self._devices]
        return max((size for size in [self._peak, *counted] if size is not None), default=None)


def set_back() -> int | None:
    """Sets the process's peak back to what it holds now, and returns that; None where the system can't."""
    try:
        _CLEAR.write_text("5")  # Linux: "reset the peak resident set size"
        return process_bytes("VmRSS")
    except OSError:
        return None


def process_bytes(name: str) -> int:
    """Memory of this process as Linux tells it: VmRSS now, VmHWM at the peak."""
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in lines if words[0] == f"{name}:")


def give_back() -> None:
    """Returns free heap, of which compiling leaves hundreds of MiB, to the system, where the C library can.

    Without it a run would grow into that heap unseen.
    """
    _call_glibc("malloc_trim", 0)


def keep_large_blocks_apart() -> None:
    """Has glibc not grow its heap for a block of a MiB or more: it is mapped, and gone when freed. For a whole process.

    Left alone, glibc raises that limit with what is freed, up to 32 MiB. Then a chunk's temporaries leave holes among
    what matches and saves keep, and a run grows with every evaluation. Chunks take as long (docs/performance.md).
    A user's own setting of that limit stands.
    """
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ and "mmap_threshold" not in os.environ.get("GLIBC_TUNABLES", ""):
        _call_glibc("mallopt", _M_MMAP_THRESHOLD, 2**20)


def _call_glibc(function: str, *arguments: int) -> None:
    """Calls a function that other C libraries may lack; then nothing happens."""
    if sys.platform == "linux":
        found = getattr(ctypes.CDLL(None), function, None)
        if found is not None:
            found(*arguments)
