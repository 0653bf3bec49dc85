"""Several processes that train one agent, on JAX's own distributed runtime.

Each process holds its devices' games, their replay buffer and a copy of the weights. All run the same loop
(`run.loop`); process 0 alone reads the clock, decides, writes the run's files and speaks to the user. What it decides
reaches the others as a few numbers before each chunk (`from_first`). A process that fails ends, and JAX's heartbeat
then ends the others; a scheduler starts all of them again.
"""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

HEARTBEAT_SECONDS = 30
"""A process that is silent for as long counts as dead, and JAX ends the others."""
JOIN_SECONDS = 300
"""The longest that the first process waits for the others, and they for it."""
SHARED_SECONDS = 60.0
"""The longest that a network disk may take to show what process 0 has written."""


def join(coordinator: str | None, num_processes: int | None, process_id: int | None) -> None:
    """Joins the other processes; called once, before anything else asks JAX for its devices.

    What is None is asked of Slurm, Open MPI, Kubernetes or a TPU pod. Raises ValueError in one sentence if none of them
    knows, or if not all processes came in time.
    """
    remedy = (
        "give all processes --coordinator HOST:PORT and --num-processes, and each its --process-id; or none of these "
        "where Slurm, Open MPI, Kubernetes or a TPU pod started them"
    )
    is_address = coordinator is None or coordinator.rpartition(":")[2].isdecimal()
    if not is_address or len({value is None for value in (coordinator, num_processes, process_id)}) > 1:
        raise ValueError(f"--distributed: {remedy}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=JOIN_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except (ValueError, RuntimeError) as error:  # there is no cluster, or not all came in time
        reason = str(error).partition("\n")[0]
        waited = f"the processes did not meet in up to {JOIN_SECONDS} seconds ({reason})"
        raise ValueError(f"--distributed: {waited}; {remedy}") from error


def part() -> None:
    """Leaves the other processes, once all call it; each may then end, or work on with its own devices.

    So process 0 plays the final matches alone: JAX lets processes wait for each other's end for 5 minutes at most.
    """
    if count() > 1:
        jax.distributed.shutdown()


def check_devices() -> None:
    """Raises ValueError, in every process, unless all have as many devices."""
    counts = Counter(device.process_index for device in jax.devices())
    if len(set(counts.values())) > 1:
        fewest, most = min(counts.values()), max(counts.values())
        raise ValueError(f"the processes have {fewest} to {most} devices; give each the same number, by --devices")


def count() -> int:
    """The number of processes."""
    return jax.process_count()


def is_first() -> bool:
    """Whether this is process 0, which decides, writes and speaks; True where there is only one."""
    return jax.process_index() == 0


def from_first(numbers: np.ndarray) -> np.ndarray:
    """The numbers that process 0 gives, in each process; called by all, with arrays of one shape."""
    return np.asarray(multihost_utils.broadcast_one_to_all(numbers)) if count() > 1 else numbers


def check_alike(name: str, text: str) -> None:
    """Raises ValueError in every process unless all have the same `text`."""
    if count() == 1:
        return
    digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    everyone = multihost_utils.process_allgather(digest)
    if others := [i for i, other in enumerate(everyone) if not np.array_equal(other, everyone[0])]:
        raise ValueError(f"process {others[0]} has another {name} than process 0; start all with the same command")


def check_shared(file: Path) -> None:
    """Waits until this process sees a file that process 0 has written; ValueError if its folder is another one."""
    if count() == 1:
        return
    multihost_utils.sync_global_devices("written")
    end = time.monotonic() + SHARED_SECONDS
    while not file.exists():
        if time.monotonic() > end:
            raise ValueError(
                f"there is no {file}, which process 0 wrote; give all processes a --run-dir on a shared disk"
            )
        time.sleep(0.5)


def local(tree: Any) -> Any:
    """Arrays that lie whole on every device, as this process's first device has them; with one process as they are."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree) if count() > 1 else tree


def is_loss(error: BaseException) -> bool:
    """Whether a program failed because another process is gone; there is no class of its own for that."""
    is_of_a_program = isinstance(error, RuntimeError | ValueError)  # JAX raises both
    return is_of_a_program and any(sign in str(error) for sign in ("Gloo", "NCCL", "UNAVAILABLE"))
