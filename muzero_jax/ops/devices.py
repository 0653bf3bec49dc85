"""The machine: which devices a run uses, how they form a mesh, and how much memory they have.

XLA runs the bodies of loops on one CPU thread. So without an accelerator, every usable core becomes a device, and the
games are split over them as over several GPUs: two cores double the speed. This must be configured before JAX starts a
backend, so importing this module starts none. With an accelerator, the setting has no effect.
"""

import functools
import os
import platform
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, Mesh, Sharding

AXIS = "data"
METAL = "mps"
"""The platform of Apple's GPUs by the plugin jax-mps."""
MOST_GATHERED = 16
SMALL_GPU = 20
"""GiB available to a run, below which a GPU is small: a T4 has 11, an L4 17, an A100 30 or 59, an H100 59."""
_absent: ContextVar[Any] = ContextVar("absent", default=None)


def usable_cores() -> int:
    """Cores this process may use: its affinity, and no more than its cgroup's CPU quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_cpu_quota(Path("/sys/fs/cgroup"))
    return max(1, cores if quota is None else min(cores, int(quota)))


def configure_devices(device_count: int | None = None, kind: str = "auto") -> int:
    """Configures the devices of this process and returns how many the run has; call it before anything else uses JAX.

    Without accelerators the CPU becomes `device_count` devices (default: one per usable core); with them,
    `device_count` of them are used (default: all). Raises `ValueError` if there are fewer than `device_count`.

    Args:
      kind: "auto" (the best that JAX finds), "cpu", "gpu" or "tpu". If there is none, or if it does not start, a line
        on stderr says what is used instead.
    """
    already_started = False
    try:
        jax.config.update("jax_num_cpu_devices", device_count or usable_cores())
        if kind == "cpu":
            jax.config.update("jax_platforms", "cpu")
    except RuntimeError:
        already_started = True
    _start_backend(kind)
    available = len(jax.local_devices())
    if device_count is not None and device_count > available:
        reason = "JAX was already in use with" if already_started else "this machine has"
        raise ValueError(f"--devices {device_count} is too many: {reason} {available}; ask for at most {available}")
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


def has_unused_metal() -> bool:
    """Whether this is a Mac with a GPU for which JAX's plugin is not installed."""
    try:
        is_installed = find_spec("jax_plugins.mps") is not None
    except ModuleNotFoundError:  # no plugin at all
        is_installed = False
    return (platform.system(), platform.machine()) == ("Darwin", "arm64") and not is_installed


def has_amx() -> bool:
    """Whether the CPU has units for products of bfloat16 matrices (AMX), and this jaxlib uses them (from 0.9 on).

    A sandbox can show the flag and forbid the units. Products are then slow, but correct.
    """
    return tuple(map(int, version("jaxlib").split(".")[:2])) >= (0, 9) and "amx_bf16" in _cpu_flags().split()


def make_mesh(num_devices: int | None = None) -> Mesh:
    """A mesh of one axis, "data", over the first `num_devices` devices (default: all)."""
    devices = jax.devices()[:num_devices]
    # From jax 0.10 axes are Explicit by default, under which mctx does not trace.
    return jax.make_mesh((num_devices or len(devices),), (AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def local_mesh(mesh: Mesh) -> Mesh:
    """The mesh over this process's own devices; with one process the mesh itself."""
    return Mesh(np.array(mesh.local_devices), mesh.axis_names, axis_types=mesh.axis_types)


def mean_over(axis_name: str, tree: Any) -> Any:
    """The mean of each leaf over the devices of a mesh axis.

    CPUs of several processes exchange arrays one by one, and wait each time. So on CPUs all leaves are joined into one
    vector: two processes learned Connect Four 1.6 to 2 times as fast with it.

    An all-reduce between processes sums in another order than one within a process. For 3 to `MOST_GATHERED` CPU
    devices (for two, the order does not matter), the values are therefore gathered and summed in the order of the
    devices, so that a run's numbers are bit-identical however many processes hold the devices.
    """
    size = jax.lax.axis_size(axis_name)
    if size == 1 or target_device().platform != "cpu":
        return jax.lax.pmean(tree, axis_name)
    vector, as_tree = ravel_pytree(tree)
    if size == 2 or size > MOST_GATHERED:
        return as_tree(jax.lax.pmean(vector, axis_name))
    return as_tree(jax.lax.all_gather(vector, axis_name).mean(axis=0))


def placed_shapes(tree: Any, sharding: Sharding) -> Any:
    """The shapes and dtypes of arrays, abstract or not, with `sharding` as their placement."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree)


def shard_map(function: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`jax.shard_map` without its replication check, which fails for while loops like mctx's."""
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def largest_divisor(available: int, *sizes: int) -> int:
    """The largest number of devices, at most `available`, that divides all `sizes`."""
    return max(count for count in range(1, available + 1) if all(size % count == 0 for size in sizes))


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


def machine() -> str:
    """This machine's processor and its features, on which compiled programs depend."""
    return f"{_cpu_name()}-{_cpu_flags()}"


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether XLA failed because a device's memory is full, for which it has no exception class."""
    return "RESOURCE_EXHAUSTED" in str(error)


def format_bytes(size: int) -> str:
    """1536 -> "1.5 KiB"."""
    if size < 1024:
        return f"{size} B"
    exponent = min(4, (size.bit_length() - 1) // 10)
    return f"{size / 1024**exponent:.1f} {('KiB', 'MiB', 'GiB', 'TiB')[exponent - 1]}"


def memory_stats(device: Any) -> dict[str, int]:
    """A `jax.Device`'s memory statistics; empty on a CPU and for plugins without them."""
    try:
        return device.memory_stats() or {}
    except RuntimeError:  # JAX's exception for "unimplemented", and Python's
        return {}


def kind() -> str:
    """The kind of device for which programs are compiled: "CPU", "TPU", "small GPU" or "large GPU"."""
    device = target_device()
    if device.platform in ("cpu", "tpu"):
        return device.platform.upper()
    return "small GPU" if has_little_memory() else "large GPU"


def has_little_memory() -> bool:
    """Whether the accelerator has less memory than `SMALL_GPU`: as it reports, or an Apple GPU shares with the host."""
    limit = memory_stats(target_device()).get("bytes_limit", 0)
    if not limit and target_device().platform == METAL:
        limit = available_memory_bytes() or 0
    return 0 < limit < SMALL_GPU * 2**30


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
    """Bytes left below the limit of the cgroup (v2); None: no limit, or not readable."""
    limit, usage = (_read(root / name).strip() for name in ("memory.max", "memory.current"))
    return max(0, int(limit) - int(usage)) if limit.isdecimal() and usage.isdecimal() else None


def _mem_available() -> int | None:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):  # macOS: all memory, as it does not report free memory
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


@functools.cache  # called whenever a product is traced
def _cpu_field(name: str) -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _cpu_name() -> str:
    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_flags() -> str:
    return _cpu_field("flags")
