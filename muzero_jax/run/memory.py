"""The memory that a run needs on each device, planned before any of it is taken: its state, and XLA's own account of
the compiled program. On a CPU the process itself, and what compiling the matches leaves behind, come on top.
"""

import math
import resource
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from muzero_jax.ops.devices import format_bytes, memory_stats
from muzero_jax.types import TrainState

SAVING = "checkpoint being saved"
_FLAGS = {
    "replay": "--replay.replay-length or --self-play.num-envs",
    "games": "--self-play.num-envs",
    "parameters": "--network.width or --network.num-blocks",
    "optimiser": "--network.width or --network.num-blocks",
    "program": "--optimiser.batch-size, --self-play.num-envs or --search.num-simulations",
}


class Plan(NamedTuple):
    """Bytes that one device holds at its fullest, by purpose."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self.parts.values())

    def table(self) -> str:
        """A line a part, the largest first."""
        rows = sorted(self.parts.items(), key=lambda row: -row[1])
        return "\n".join(f"{name:<{len(SAVING)}}  {format_bytes(size):>9}" for name, size in rows)

    def check(self, available: int | None) -> None:
        """Raises ValueError, which names the flags that lower the largest part, if a device has too few bytes."""
        if available is not None and self.total > available:
            largest = max(_FLAGS, key=lambda name: self.parts.get(name, 0))
            raise ValueError(
                f"this run needs {format_bytes(self.total)} of memory per device but {format_bytes(available)} are "
                f"available; lower {_FLAGS[largest]}"
            )


def make_plan(state: TrainState, program: Any, *, copied_by_saves: bool) -> Plan:
    """The plan of a run from its abstract state and its compiled program.

    `copied_by_saves`: a checkpoint being saved holds the state once more, as on a CPU; an accelerator's goes to the
    host.
    """
    learner = state.learner
    pieces = {
        "replay": state.replay,
        "games": state.actor,
        "parameters": (learner.params, learner.target_params),
        "optimiser": learner.optimiser_state,
    }
    parts = {name: bytes_per_device(piece) for name, piece in pieces.items()}
    if copied_by_saves:
        parts[SAVING] = sum(parts.values())
    if (account := program.memory_analysis()) is not None:  # some backends give none
        results = account.output_size_in_bytes - account.alias_size_in_bytes
        parts["program"] = results + account.temp_size_in_bytes + account.generated_code_size_in_bytes
    return Plan(parts)


def bytes_per_device(tree: Any) -> int:
    """Bytes that one device holds of a pytree's arrays, abstract or not."""

    def size(leaf: Any) -> int:
        sharding = getattr(leaf, "sharding", None)
        shape = sharding.shard_shape(leaf.shape) if sharding is not None else leaf.shape
        return math.prod(shape) * leaf.dtype.itemsize

    return sum(map(size, jax.tree.leaves(tree)))


def peak(devices: Sequence[Any]) -> int | None:
    """The most bytes that one of the devices has held; CPU devices share the process's peak, compiling included."""
    if devices[0].platform == "cpu":
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // len(devices)
    return max((memory_stats(device).get("peak_bytes_in_use", 0) for device in devices), default=0) or None
