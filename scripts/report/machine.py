"""The machine that the report is about: its devices, its software, and nothing that names its owner or host."""

import datetime
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import jax

from muzero_jax.arithmetic import devices, precision
from scripts.benchmarks.report import commit
from scripts.report.interference import Interference
from scripts.report.records import Section, Table

PACKAGES = ("jax", "jaxlib", "flax", "optax", "mctx", "pgx", "numpy", "scipy")


Device = Any
"""A `jax.Device`, which pyright takes for a variable."""


class Machine(NamedTuple):
    """Devices by role. On a machine without an accelerator `accelerator` is None and `device` is `host`."""

    device: Device  # what a run uses first
    host: Device  # the first CPU device
    accelerator: Device | None
    devices: Sequence[Device]  # all that a run would use
    torch: Any  # the PyTorch module, or None


def find_machine() -> Machine:
    """Looks; raises ValueError in one sentence if JAX was told to leave the CPU out, which comparisons need."""
    device = jax.devices()[0]
    try:
        host = jax.devices("cpu")[0]
    except RuntimeError as error:
        raise ValueError("JAX_PLATFORMS leaves out the CPU, which the report compares with; unset it") from error
    return Machine(device, host, None if device.platform == "cpu" else device, jax.devices(), find_torch())


def find_torch() -> Any:
    """The PyTorch module, or None where it is not installed or cannot be loaded."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except (ImportError, OSError):
        return None
    return torch


def folder_name(today: datetime.date) -> str:
    """<device>-<date>, in letters, digits and dashes."""
    words = re.sub(r"[^a-z0-9]+", "-", devices.describe_device().lower()).strip("-")
    return f"{words}-{today.isoformat()}"


def hardware_table(machine: Machine, command: str, now: datetime.datetime) -> Table:
    """Devices, memory, versions, commit, date and command, as they are before anything is measured."""
    memory = devices.available_memory_bytes()
    rows = [
        ("device", devices.describe_device()),
        ("backend", machine.device.platform),
        ("arithmetic of a run's networks", "{} ({})".format(*precision.resolve("auto"))),
        ("usable CPU cores", str(devices.usable_cores())),
        ("memory available", devices.format_bytes(memory) if memory else "unknown"),
        ("system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"),
        ("versions", ", ".join(f"{name} {_version(name)}" for name in PACKAGES)),
        ("PyTorch", f"{machine.torch.__version__}, on {torch_device(machine)}" if machine.torch else "not installed"),
        ("commit", commit() or "unknown"),
        ("date", now.strftime("%Y-%m-%d %H:%M")),
        ("command", f"`{command}`"),
    ]
    return Table(("", ""), rows)


def hardware_section(found: Table, others: Interference) -> Section:
    """Chapter from `hardware_table`, and how much of the machine others have taken so far."""
    return Section("Hardware and versions", "", [found, others.table()], headlines=others.warnings())


def torch_device(machine: Machine) -> str:
    """Where PyTorch computes: on the GPU if it sees one and JAX uses one too, else on the CPU."""
    return "cuda" if machine.accelerator and machine.torch and machine.torch.cuda.is_available() else "cpu"


def gpu_busy_percent() -> float | None:
    """What nvidia-smi says of the use of JAX's first GPU in its last sampling interval; None where there is none."""
    # An index or a UUID. nvidia-smi, which does not read the variable, knows either; indices differ where GPUs do.
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if not gpu or shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"--id={gpu}"]
    try:
        return float(subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout)
    except (subprocess.SubprocessError, ValueError, OSError):
        return None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
