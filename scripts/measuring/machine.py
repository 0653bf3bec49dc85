"""The machine that figures are of: its devices, its software, and nothing that names its owner or host."""

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from muzero_jax.ops import devices

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("jax", "jaxlib", "flax", "optax", "mctx", "pgx", "numpy", "scipy")
Device = Any
"""A `jax.Device`, which pyright takes for a variable."""


def describe(arguments: Sequence[str]) -> dict[str, Any]:
    """Hardware and versions, without which no figure must be read; `arguments` are the command's, script first."""
    script, *others = arguments
    return {
        "date": datetime.now().isoformat(" ", "minutes"),
        "hardware": devices.describe_device(),
        "load_average": round(os.getloadavg()[0], 1)
        if hasattr(os, "getloadavg")
        else None,  # before anything was measured
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "commit": commit(),
        "command": shlex.join(["python", f"scripts/{Path(script).name}", *map(_without_owner, others)]),
    }


def _without_owner(argument: str) -> str:
    """The argument without the folders of who called."""
    flag, equals, value = argument.rpartition("=")
    leads_outside = value.startswith(("/", "~")) or ".." in Path(value).parts
    return f"{flag}{equals}{Path(value).name}" if leads_outside else argument


def commit() -> str | None:
    """The commit whose code is measured, with "-dirty" if the clone was changed since; None outside of our clone."""
    asked = "git rev-parse --show-prefix && git describe --always --dirty --exclude='*'"
    done = subprocess.run(asked, shell=True, cwd=ROOT, capture_output=True, text=True)
    above, _, found = done.stdout.partition("\n")
    return found.strip() if done.returncode == 0 and not above else None  # above: the folder that somebody has us in


class Machine(NamedTuple):
    """Devices by role, and PyTorch."""

    labels: dict[str, Device]  # JAX's to compare, by the name that tables use; a run uses the first
    devices: Sequence[Device]  # all that a run would use
    torch: Any  # the module, or None

    @property
    def label(self) -> str:
        """What tables call JAX on the device that runs use."""
        return next(iter(self.labels))

    @property
    def device(self) -> Device:
        """The device that runs use."""
        return self.labels[self.label]

    @property
    def has_accelerator(self) -> bool:
        """Whether there is a device to compare the CPU with."""
        return len(self.labels) > 1

    @property
    def torch_device(self) -> str:
        """Where PyTorch computes: on the GPU if it sees one and JAX uses an accelerator too."""
        return "cuda" if self.has_accelerator and self.torch.cuda.is_available() else "cpu"


def find_machine() -> Machine:
    """Looks; raises ValueError in one sentence if JAX_PLATFORMS leaves out the CPU, which comparisons need."""
    device = jax.devices()[0]
    try:
        host = jax.devices("cpu")[0]
    except RuntimeError as error:
        raise ValueError("JAX_PLATFORMS leaves out the CPU, which the report compares with; unset it") from error
    both = {f"JAX {device.platform.upper()}": device, "JAX CPU": host}
    return Machine({"JAX": host} if device.platform == "cpu" else both, jax.devices(), _find_torch())


def _find_torch() -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except (ImportError, OSError):  # not installed, or it cannot be loaded
        return None
    return torch
