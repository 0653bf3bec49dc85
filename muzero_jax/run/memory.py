"""The memory that a run's state and program need on each device, planned before it is allocated.

On a CPU, the process itself needs more, and so does compiling the matches.
"""

import math
import resource
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from muzero_jax.ops.devices import memory_stats
from muzero_jax.run.machine import format_bytes
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
    """The most bytes that one device needs, by purpose."""

    parts: dict[str, int]

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self.parts.values())

    def table(self) -> str:
        """One line for each part, the largest first."""
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

    `copied_by_saves`: whether saving copies the state on the device, as on a CPU; an accelerator's copy is on the host.
    """
    learner = state.learner
    pieces = {
        "replay": state.replay,
        "games": state.actor,
        "parameters": (learner.params, learner.target_params, learner.average_params),
        "optimiser": learner.optimiser_state,
    }
    parts = {name: bytes_per_device(piece) for name, piece in pieces.items()}
    if copied_by_saves:
        parts[SAVING] = sum(parts.values())
    if (account := program.memory_analysis()) is not None:  # some backends have none
        results = account.output_size_in_bytes - account.alias_size_in_bytes
        parts["program"] = results + account.temp_size_in_bytes + account.generated_code_size_in_bytes
    return Plan(parts)


def bytes_per_device(tree: Any) -> int:
    """The bytes of a pytree's arrays, abstract or not, on one device."""

    def size(leaf: Any) -> int:
        sharding = getattr(leaf, "sharding", None)
        shape = sharding.shard_shape(leaf.shape) if sharding is not None else leaf.shape
        return math.prod(shape) * leaf.dtype.itemsize

    return sum(map(size, jax.tree.leaves(tree)))


def peak(devices: Sequence[Any]) -> int | None:
    """The peak bytes of any device; CPU devices share the process's peak, which includes compiling. None: unknown."""
    if devices[0].platform == "cpu":
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // len(devices)
    return max((memory_stats(device).get("peak_bytes_in_use", 0) for device in devices), default=0) or None
