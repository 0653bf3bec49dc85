"""The device that programs are made for: its kind, which decides how to compute, and features of the CPU."""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

METAL = "mps"
"""The platform of Apple's GPUs by the plugin jax-mps."""
SMALL_GPU = 20
"""GiB available to a run, below which a GPU is small: a T4 has 11, an L4 17, an A100 30 or 59, an H100 59."""
_absent: ContextVar[Any] = ContextVar("absent", default=None)


def target_device() -> Any:
    """The `jax.Device` for which programs are compiled: `jax.default_device` if it is set, else the best."""
    if (absent := _absent.get()) is not None:
        return absent
    device = jax.config.jax_default_device  # type: ignore  # in the key of every cached trace
    if device is None:
        return jax.devices()[0]
    return jax.devices(device)[0] if isinstance(device, str) else device


@contextmanager
def made_for(device: Any) -> Iterator[None]:
    """In a `with` block, programs are traced for a device that this machine need not have.

    Args:
      device: has the attributes `platform` ("gpu" or "tpu") and `compute_capability` of a `jax.Device`.
    """
    before = _absent.set(device)
    try:
        yield
    finally:
        _absent.reset(before)


def has_amx() -> bool:
    """Whether the CPU has units for products of bfloat16 matrices (AMX), and this jaxlib uses them (from 0.9 on).

    A sandbox can show the flag and forbid the units. Products are then slow, but correct.
    """
    return tuple(map(int, version("jaxlib").split(".")[:2])) >= (0, 9) and "amx_bf16" in cpu_field("flags").split()


def memory_stats(device: Any) -> dict[str, int]:
    """A `jax.Device`'s memory statistics; empty on a CPU and for plugins without them."""
    try:
        return device.memory_stats() or {}
    except RuntimeError:  # JAX's exception for "unimplemented", and Python's
        return {}


def device_kind() -> str:
    """The kind of device for which programs are compiled: "CPU", "TPU", "small GPU" or "large GPU"."""
    device = target_device()
    if device.platform in ("cpu", "tpu"):
        return device.platform.upper()
    return "small GPU" if has_little_memory() else "large GPU"


def has_little_memory() -> bool:
    """Whether the accelerator has less memory than `SMALL_GPU`: as it reports, or all that an Apple GPU shares."""
    limit = memory_stats(target_device()).get("bytes_limit", 0)
    if not limit and target_device().platform == METAL:
        limit = physical_memory_bytes() or 0
    return 0 < limit < SMALL_GPU * 2**30


def physical_memory_bytes() -> int | None:
    """The host's memory, used or not, as macOS and Linux report it; None: unknown."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@functools.cache  # called whenever a product is traced
def cpu_field(name: str) -> str:
    """A field of /proc/cpuinfo, such as "flags"; empty if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in fields if key.strip() == name), "")
