"""The machine that figures are of: its devices, its software, and nothing that names its owner or host."""

import os
import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from muzero_jax.ops import devices

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("jax", "jaxlib", "flax", "optax", "mctx", "pgx", "numpy", "scipy")


def describe(arguments: Sequence[str]) -> dict[str, Any]:
    """Hardware and versions, without which no figure must be read; `arguments` are the command's, script first."""
    script, *others = arguments
    return {
        "date": datetime.now().isoformat(" ", "minutes"),
        "hardware": devices.describe_device(),
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
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
