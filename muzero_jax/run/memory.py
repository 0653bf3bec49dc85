"""The memory that a run needs on each device: planned before any of it is taken, and measured while it runs.

The plan adds up the run's state, XLA's own account of the compiled program and, on a CPU, what the process holds before
it begins. What libraries take later is in no account, nor what compiling the matches leaves behind: runs hold up to
about 1.5 times their plan, the smallest 1.7 times (docs/performance.md).
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from muzero_jax.ops.devices import format_bytes, memory_stats
from muzero_jax.types import TrainState

SAVING, PROCESS = "checkpoint being saved", "process so far"
_FLAGS = {
    "replay": "--replay.replay-length or --self-play.num-envs",
    "games": "--self-play.num-envs",
    "parameters": "--network.width or --network.num-blocks",
    "optimiser": "--network.width or --network.num-blocks",
    "program": "--optimiser.batch-size, --self-play.num-envs or --search.num-simulations",
}
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Plan(NamedTuple):
    """Bytes that one device holds at its fullest, by purpose."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self.parts.values())

    def line(self, available: int | None) -> str:
        """The plan in one line."""
        limit = "" if available is None else f" of {format_bytes(available)}"
        return f"{format_bytes(self.total)}{limit} per device"

    def table(self, available: int | None) -> str:
        """The plan for the terminal, largest part first; `available`: bytes that a device may fill, None if unknown."""
        rows = sorted(self.parts.items(), key=lambda row: -row[1]) + [("total per device", self.total)]
        rows += [("available", available)] if available is not None else []
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {format_bytes(size):>9}" for name, size in rows)

    def fits(self, available: int | None) -> bool:
        """Whether the plan needs no more than what a device may fill, as far as that is known."""
        return available is None or self.total <= available

    def check(self, available: int | None) -> None:
        """Raises ValueError, which names the flags that make the largest part smaller, unless the plan fits."""
        if available is not None and not self.fits(available):
            weights = self.parts.get("parameters", 0) + self.parts.get("optimiser", 0)
            largest = max(_FLAGS, key=lambda name: self.parts.get(name, 0)) if weights <= available else "parameters"
            needed, free = format_bytes(self.total), format_bytes(available)
            raise ValueError(
                f"this run needs {needed} of memory per device but {free} are available; lower {_FLAGS[largest]}"
            )


def make_plan(state: TrainState, program: Any, *, copied_by_saves: bool, held: int = 0) -> Plan:
    """The plan of a run from its abstract state and its compiled program.

    Args:
      copied_by_saves: whether a checkpoint being saved holds the state once more, as on a CPU. On an accelerator, Orbax
        first copies the state to the host.
      held: a device's share of what the process holds already (`held_by_process`).
    """
    learner = state.learner
    weights = learner.params, learner.target_params
    pieces = state.replay, state.actor, weights, learner.optimiser_state
    names = "replay", "games", "parameters", "optimiser"
    parts = {name: bytes_per_device(piece) for name, piece in zip(names, pieces, strict=True)}
    if copied_by_saves:
        parts[SAVING] = sum(parts.values())
    account = program.memory_analysis()
    if account is not None:  # some backends give no account
        results = account.output_size_in_bytes - account.alias_size_in_bytes
        parts["program"] = results + account.temp_size_in_bytes + account.generated_code_size_in_bytes
    if held:
        parts[PROCESS] = held
    return Plan(parts)


def held_by_process(devices: Sequence[Any]) -> int:
    """A device's share of the memory that this process holds now; 0 for accelerators, and outside Linux."""
    return _process_bytes("VmRSS") // len(devices) if devices[0].platform == "cpu" and _STATUS.exists() else 0


def bytes_per_device(tree: Any) -> int:
    """Bytes that one device holds of a pytree's arrays, abstract or not."""

    def size(leaf: Any) -> int:
        sharding = getattr(leaf, "sharding", None)
        shape = sharding.shard_shape(leaf.shape) if sharding is not None else leaf.shape
        return math.prod(shape) * leaf.dtype.itemsize

    return sum(map(size, jax.tree.leaves(tree)))


class Meter:
    """Measures the most memory that a device has held since the meter was made or restarted, until it is stopped.

    An accelerator counts for itself. On a CPU, Linux counts what the process holds, and its devices share that.
    """

    def __init__(self, devices: Sequence[Any]):
        self._devices = devices
        self._stopped = False
        self._peak: int | None = None
        self.restart()

    def restart(self) -> None:
        """Forgets the peak so far, where that can be: compiling takes more than the run."""
        self._by_process = self._devices[0].platform == "cpu" and _forget_peak()

    def stop(self) -> None:
        """Keeps the peak so far: what comes now was not planned."""
        self._peak, self._stopped = self.peak, True

    @property
    def peak(self) -> int | None:
        """Bytes of the device that held most; None if unknown."""
        if self._stopped:
            return self._peak
        if self._by_process:
            return _process_bytes("VmHWM") // len(self._devices)
        counts = [memory_stats(device).get("peak_bytes_in_use") for device in self._devices]
        return max((count for count in counts if count is not None), default=None)


def _forget_peak() -> bool:
    """Has Linux forget the process's peak, which compiling made; False where that cannot be."""
    try:
        _CLEAR.write_text("5")  # "reset the peak resident set size"
    except OSError:
        return False
    return True


def _process_bytes(name: str) -> int:
    """Memory of this process: VmRSS is what it holds now, VmHWM its peak."""
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in lines if words[0] == f"{name}:")
