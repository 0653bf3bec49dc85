"""Several processes that train one agent, with JAX's distributed runtime.

Each process holds its devices' games, their replay buffer and a copy of the weights. All run the same loop
(`run.loop`). Only process 0 reads the clock, decides, writes the run's files and prints. It sends its decisions to the
others as a few numbers before each chunk (`from_first`). If a process fails, JAX's heartbeat ends the others; a
scheduler can start all of them again.
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
"""After this long without a sign of a process, JAX ends the others."""
JOIN_SECONDS = 300
"""The longest that processes wait for each other at the start."""
SHARED_SECONDS = 60.0
"""The longest that a network disk may take to show what process 0 has written."""


def join(coordinator: str | None, num_processes: int | None, process_id: int | None) -> None:
    """Joins the other processes; call it once, before anything else asks JAX for its devices.

    If all arguments are None, JAX finds them through Slurm, Open MPI, Kubernetes or a TPU pod. Raises ValueError if
    there is none of these, or if not all processes started in time.
    """
    remedy = (
        "give all processes --coordinator HOST:PORT and --num-processes, and each its --process-id; or none of these "
        "if Slurm, Open MPI, Kubernetes or a TPU pod started them"
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
    """Leaves the other processes, once all call it; each may then end, or continue with its own devices.

    Process 0 then plays the final matches alone, because JAX lets ended processes wait for it for at most 5 minutes.
    """
    if count() > 1:
        jax.distributed.shutdown()


def check_devices() -> None:
    """Raises ValueError, in every process, unless all have the same number of devices."""
    counts = Counter(device.process_index for device in jax.devices())
    if len(set(counts.values())) > 1:
        fewest, most = min(counts.values()), max(counts.values())
        raise ValueError(f"the processes have {fewest} to {most} devices; give each the same number, by --devices")


def count() -> int:
    """The number of processes."""
    return jax.process_count()


def is_first() -> bool:
    """Whether this is process 0, which decides, writes and prints; True for a single process."""
    return jax.process_index() == 0


def from_first(numbers: np.ndarray) -> np.ndarray:
    """Process 0's `numbers`, in every process; all must call it, with arrays of the same shape."""
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
    """Waits until this process sees a file that process 0 has written; ValueError if their disk is not shared."""
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
    """Replicated arrays as this process's first device holds them; with one process, as they are."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree) if count() > 1 else tree


def is_loss(error: BaseException) -> bool:
    """Whether a program failed because another process is gone, for which JAX has no exception class."""
    is_of_a_program = isinstance(error, RuntimeError | ValueError)  # JAX raises both
    return is_of_a_program and any(sign in str(error) for sign in ("Gloo", "NCCL", "UNAVAILABLE"))
