"""The machine: which devices a run uses, and how much memory they have.

XLA runs the bodies of loops on one CPU thread. So without an accelerator, every usable core becomes a device, and the
games are split over them as over several GPUs: two cores double the speed. This must be configured before JAX starts a
backend, so importing this module starts none. With an accelerator, the setting has no effect.
"""

import os
import platform
import sys
import textwrap
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import jax

from muzero_jax.ops.devices import cpu_field, memory_stats, physical_memory_bytes


def usable_cores() -> int:
    """Cores this process may use: its affinity, and no more than its cgroup's CPU quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_cpu_quota(Path("/sys/fs/cgroup"))
    return max(1, cores if quota is None else min(cores, int(quota)))


def configure_devices(device_count: int | None = None, kind: str = "auto") -> int:
    """Configures the devices of this process and returns how many the run has; call it before anything else uses JAX.

    Without accelerators the CPU becomes `device_count` devices (default: one per usable core); with them,
    `device_count` of them are used (default: all). Raises ValueError as `count_devices` does.

    Args:
      kind: "auto" (the best that JAX finds), "cpu", "gpu" or "tpu". If there is none, or if it does not start, a line
        on stderr says what is used instead.
    """
    with suppress(RuntimeError):  # JAX has started already
        jax.config.update("jax_num_cpu_devices", device_count or usable_cores())
        if kind == "cpu":
            jax.config.update("jax_platforms", "cpu")
    _start_backend(kind)
    return count_devices(device_count)


def count_devices(device_count: int | None = None) -> int:
    """How many devices the run has, of those that JAX has started with: `device_count`, by default all.

    Raises ValueError if there are fewer, or if one of several processes would leave some of its own unused.
    """
    available = len(jax.local_devices())
    if device_count is not None and device_count > available:
        raise ValueError(f"--devices {device_count} is too many: there are {available}; ask for at most {available}")
    if jax.process_count() == 1:
        return device_count or available
    if device_count is not None and device_count < available:
        raise ValueError(f"--devices {device_count}: each of several processes uses all its {available}; leave it out")
    return len(jax.devices())


def _start_backend(kind: str) -> None:
    """Starts JAX's best backend; prints a line on stderr if it is not of the `kind`, or if a better one failed."""
    try:
        found = jax.default_backend()
    except (RuntimeError, AssertionError) as error:  # an empty AssertionError if no NVIDIA device is visible
        # JAX keeps what it started before the failure, with as many CPU devices as were configured above.
        jax.config.update("jax_platforms", "cpu")
        text = str(error) or f"there is no device of JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}"
        reason = textwrap.shorten(text, 200, placeholder=" ...")
        print(f"JAX could not start an accelerator, so the CPU is used: {reason}", file=sys.stderr)
        return
    found_kind = found if found in ("cpu", "tpu") else "gpu"  # plugins have other names
    if kind in ("auto", "gpu") and found == "cpu" and has_unused_metal():
        line = "this Mac's GPU is not used; with Python 3.12 or newer the extra `metal` may use it (docs/install.md)"
        print(line, file=sys.stderr)
    if kind not in ("auto", found_kind):
        print(f"JAX finds no {kind.upper()} on this machine; the {found.upper()} is used instead", file=sys.stderr)


def has_unused_metal() -> bool:
    """Whether this is a Mac with a GPU for which JAX's plugin is not installed."""
    try:
        is_installed = find_spec("jax_plugins.mps") is not None
    except ModuleNotFoundError:  # no plugin at all
        is_installed = False
    return (platform.system(), platform.machine()) == ("Darwin", "arm64") and not is_installed


def describe_device(num_devices: int | None = None) -> str:
    """The devices in words: "2 CPU devices (AMD EPYC, 2 cores)" or "NVIDIA H200 (cuda)"."""
    device = jax.devices()[0]
    cores = usable_cores()
    count = num_devices or len(jax.devices())
    if device.platform == "cpu":
        return f"{count} CPU device{'s' if count > 1 else ''} ({_cpu_name()}, {cores} core{'s' if cores > 1 else ''})"
    version_text = str(getattr(device.client, "platform_version", ""))  # of a plugin "PJRT C API\ncuda 12090"
    toolkit = next((name for name in ("cuda", "rocm") if name in version_text), device.platform)
    return f"{f'{count} x ' if count > 1 else ''}{device.device_kind} ({toolkit})"


def processor() -> str:
    """This machine's processor and its features, on which compiled programs depend."""
    return f"{_cpu_name()}-{cpu_field('flags')}"


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether XLA failed because a device's memory is full, for which it has no exception class."""
    return "RESOURCE_EXHAUSTED" in str(error)


def format_bytes(size: int) -> str:
    """1536 -> "1.5 KiB"."""
    if size < 1024:
        return f"{size} B"
    exponent = min(4, (size.bit_length() - 1) // 10)
    return f"{size / 1024**exponent:.1f} {('KiB', 'MiB', 'GiB', 'TiB')[exponent - 1]}"


def available_memory_bytes(num_devices: int = 1) -> int | None:
    """Bytes that each device may use: the accelerator's limit, or a share of free host memory. None: unknown."""
    if limit := memory_stats(jax.devices()[0]).get("bytes_limit"):
        return int(limit)
    free = [_mem_available(), _cgroup_memory_free(Path("/sys/fs/cgroup"))]
    return min((size // num_devices for size in free if size is not None), default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _cgroup_cpu_quota(root: Path) -> float | None:
    """The CPU time that the cgroup (v2) allows, in cores; None: no limit, or not readable."""
    quota, _, period = _read(root / "cpu.max").strip().partition(" ")
    return int(quota) / int(period) if quota.isdecimal() else None


def _cgroup_memory_free(root: Path) -> int | None:
    """Bytes left below the limit of the cgroup (v2), the cache of files included; None: no limit, or not readable."""
    limit, usage = (_read(root / name).strip() for name in ("memory.max", "memory.current"))
    if not (limit.isdecimal() and usage.isdecimal()):
        return None
    of_kind = dict(line.split() for line in _read(root / "memory.stat").splitlines())
    return min(int(limit), max(0, int(limit) - int(usage) + int(of_kind.get("inactive_file", 0))))


def _mem_available() -> int | None:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return physical_memory_bytes()  # macOS does not report free memory


def _cpu_name() -> str:
    return cpu_field("model name") or platform.processor() or platform.machine()
