"""Several processes that train one agent, on JAX's own distributed runtime: who they are, and how the first leads.

Each process holds its devices' games, their replay and a copy of the weights. All run the one compiled program; process
0 alone decides what runs next, writes the run's files and answers the user. Before it starts anything that needs all of
them it tells the others, which `listen` meanwhile.
"""

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

HEARTBEAT_SECONDS = 30
"""A process that is silent for as long counts as dead, and JAX ends the others."""
JOIN_SECONDS = 300
"""The longest that the first process waits for the others, and they for it."""
SIGN, SHARED_SECONDS = ".shared-", 60.0
"""A file by which the others know the folder of process 0, and how long a network disk may take to show it."""


class Cluster(NamedTuple):
    """How the processes find each other. What is None is asked of Slurm, Open MPI, Kubernetes or a TPU pod."""

    coordinator: str | None = None  # process 0, as host:port
    num_processes: int | None = None
    process_id: int | None = None


def join(cluster: Cluster) -> None:
    """Joins the other processes; called once, before anything else asks JAX for its devices.

    Raises ValueError in one sentence if it is unknown who they are, or if not all of them came in time.
    """
    if cluster.num_processes is not None and cluster.num_processes < 1:
        raise ValueError(f"--num-processes is {cluster.num_processes}, but must be at least 1")
    if any(value is None for value in cluster) and any(value is not None for value in cluster):
        raise ValueError("--coordinator, --num-processes and --process-id go together; give all three, or none")
    if cluster.coordinator is not None and not cluster.coordinator.rpartition(":")[2].isdecimal():
        raise ValueError(f"--coordinator is {cluster.coordinator}, but must be HOST:PORT of process 0")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            cluster.coordinator,
            cluster.num_processes,
            cluster.process_id,
            initialization_timeout=JOIN_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except ValueError as error:
        if cluster.coordinator is None:
            raise ValueError(
                "--distributed finds no Slurm, Open MPI, Kubernetes or TPU pod here; give --coordinator HOST:PORT, "
                "--num-processes and --process-id to each process"
            ) from error
        raise ValueError(f"--distributed: {error}") from error
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0]
        raise ValueError(
            f"the processes did not meet ({first_line}); start all within {JOIN_SECONDS} seconds, each with the same "
            "--coordinator and --num-processes, and its own --process-id"
        ) from error


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


def tell(number: int, argument: int = 0) -> None:
    """Process 0 tells the others two whole numbers; without others, nothing happens."""
    if count() > 1:
        multihost_utils.broadcast_one_to_all(np.array([number, argument], np.int32))


def listen() -> tuple[int, int]:
    """The two numbers that process 0 tells next; waits for them."""
    number, argument = multihost_utils.broadcast_one_to_all(np.zeros(2, np.int32))
    return int(number), int(argument)


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


@contextmanager
def all_or_none() -> Iterator[None]:
    """Steps that each process takes for itself: where one fails all do, so that none waits for it."""
    if count() == 1:
        yield
        return
    try:
        yield
    except Exception:
        multihost_utils.process_allgather(np.bool_(False))
        raise
    are_fine = multihost_utils.process_allgather(np.bool_(True))
    if not are_fine.all():
        raise ValueError(f"process {int(np.argmin(are_fine))} cannot train; it says why")


def check_shared(folder: Path) -> None:
    """Raises ValueError in every process unless all see the same `folder`, which process 0 has made."""
    if count() == 1:
        return
    if is_first():
        number = secrets.randbelow(2**31)
        sign = folder / f"{SIGN}{number}"
        with suppress(OSError):  # then nobody sees it, and the others say so
            sign.touch()
        tell(number)
        with all_or_none():
            pass
        sign.unlink(missing_ok=True)
        return
    number, _ = listen()
    end = time.monotonic() + SHARED_SECONDS
    while not (is_seen := (folder / f"{SIGN}{number}").exists()) and time.monotonic() < end:
        time.sleep(0.5)
    with all_or_none():
        if not is_seen:
            raise ValueError(f"{folder} is not the folder of process 0; let --run-dir lie where all processes see it")


def is_loss(error: BaseException) -> bool:
    """Whether a program failed because another process is gone; there is no class of its own for that."""
    is_of_a_program = isinstance(error, RuntimeError | ValueError)  # JAX raises both
    return is_of_a_program and any(sign in str(error) for sign in ("Gloo", "NCCL", "UNAVAILABLE"))


def local(tree: Any) -> Any:
    """Arrays that lie whole on every device, as this process's first device has them; with one process as they are."""
    return jax.tree.map(lambda x: x.addressable_data(0), tree) if count() > 1 else tree
