"""Accelerators by name: their figures, and JAX devices to compile for, which need not be on this machine.

Peaks, bandwidth and memory are the makers': NVIDIA's data sheets of T4, L4, A100 SXM 40 GB and H100 SXM, without
sparsity, and Google Cloud's page on the v5e. From the A100 on, JAX multiplies float32 in TF32. The time of the host's
launches and waits depends on the host and is not in data sheets, so these are orders of magnitude (2 to 5 and 8 to 20
us). A TPU runs a whole program by itself, without either.
"""

import os
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple


class Chip(NamedTuple):
    """What XLA's compiler needs to know about a GPU, as in OpenXLA's files of `target_config/specs`."""

    cores: int
    units: int  # float32 units per core
    gigahertz: float
    cache: int  # bytes of L2
    shared: int  # bytes of shared memory per core
    threads: int  # most per core


class Target(NamedTuple):
    """An accelerator."""

    title: str
    platform: str  # JAX's name: "gpu" or "tpu"
    compute_capability: str | None
    peak: dict[str, float]  # FLOP/s by compute dtype
    bandwidth: float  # bytes/s
    memory: int  # bytes
    launch: float  # seconds of the host for one
    wait: float  # seconds that the device idles when the host must read a number
    chip: Chip | None = None

    @property
    def available(self) -> int:
        """Bytes that a run may use: JAX takes three quarters of a GPU's memory."""
        return self.memory * 3 // 4 if self.platform == "gpu" else self.memory

    def memory_stats(self) -> dict[str, int]:
        """Like `jax.Device.memory_stats`."""
        return {"bytes_limit": self.available}


def _peaks(float32: float, bfloat16: float, float16: float) -> dict[str, float]:
    return {"float32": float32 * 1e12, "bfloat16": bfloat16 * 1e12, "float16": float16 * 1e12}


TARGETS = {
    "t4": Target(
        "Tesla T4", "gpu", "7.5", _peaks(8.1, 8.1, 65), 320e9, 15_640_000_000, 4e-6, 15e-6,
        Chip(40, 64, 1.59, 4 << 20, 65536, 1024),
    ),
    "l4": Target(
        "NVIDIA L4", "gpu", "8.9", _peaks(60, 121, 121), 300e9, 23_600_000_000, 3e-6, 10e-6,
        Chip(58, 128, 2.04, 48 << 20, 102400, 1536),
    ),
    "a100": Target(
        "NVIDIA A100-SXM4-40GB", "gpu", "8.0", _peaks(156, 312, 312), 1555e9, 42_331_013_120, 3e-6, 10e-6,
        Chip(108, 64, 1.41, 40 << 20, 167936, 2048),
    ),
    "h100": Target(
        "NVIDIA H100 80GB HBM3", "gpu", "9.0", _peaks(494, 989, 989), 3352e9, 84_942_979_072, 2.5e-6, 8e-6,
        Chip(132, 128, 1.98, 50 << 20, 233472, 2048),
    ),
    "v5e": Target("TPU v5e", "tpu", None, _peaks(197, 197, 197), 819e9, 16 << 30, 0.0, 0.0),
}  # fmt: skip
PACKAGES = {"gpu": "jax_cuda12_plugin", "tpu": "libtpu"}


def prepare() -> None:
    """Configures JAX and XLA, before their first use, to run without an accelerator and to find CUDA's assembler."""
    nvcc = Path(sysconfig.get_path("purelib")) / "nvidia" / "cuda_nvcc"
    os.environ |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1", "TPU_SKIP_MDS_QUERY": "1"}
    os.environ |= {"TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}  # locks no TPU
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "PATH": f"{nvcc / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    flags = f"--xla_gpu_cuda_data_dir={nvcc} --xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"


def check_installed(target: Target) -> None:
    """Raises ValueError, which says what to install, unless JAX can compile for the target here."""
    from importlib.util import find_spec

    if find_spec(PACKAGES[target.platform]) is None:
        raise ValueError(
            f"compiling for a {target.title} needs {PACKAGES[target.platform]}: "
            "in a separate virtual environment, pip install -e '.[preview]' -c constraints.txt"
        )


def devices(target: Target, count: int, cuda: str = "12.9") -> list[Any]:
    """`count` devices of the target that `jax.jit` lowers and compiles for; `cuda` is the version of its driver."""
    from jax._src import xla_bridge
    from jax.experimental import topologies

    check_installed(target)
    if target.chip is None:
        return list(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices)[:count]
    known = xla_bridge.canonicalize_platform  # jax 0.10 renames "gpu" only if there is one (jax-ml/jax#23971)
    xla_bridge.canonicalize_platform = lambda name: "cuda" if name in ("gpu", "cuda") else known(name)
    found = topologies.get_topology_desc(
        platform="cuda", target_config=_told(target, target.chip, cuda), topology=f"1x1x{count}"
    )
    return list(found.devices)


def _told(target: Target, chip: Chip, cuda: str) -> str:
    """The description of a GPU for XLA, as the text of its `GpuTargetConfigProto`."""
    major, minor = (target.compute_capability or "").split(".")
    numbers = {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "shared_memory_per_block": 49152,
        "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
        "shared_memory_per_core": chip.shared, "threads_per_core_limit": chip.threads, "core_count": chip.cores,
        "fpus_per_core": chip.units, "memory_bandwidth": int(target.bandwidth), "l2_cache_size": chip.cache,
        "clock_rate_ghz": chip.gigahertz, "device_memory_size": target.memory,
        "shared_memory_per_block_optin": chip.shared - 1024 * (major != "7"),
    }  # fmt: skip
    told = " ".join(f"{name}: {number}" for name, number in numbers.items())
    # If one of the three is missing, XLA leaves loops outside of graphs.
    versions = "driver_version", "runtime_version", "compile_time_toolkit_version"
    told = " ".join([*(f'{name}: "{cuda}.0"' for name in versions), told])
    return (
        f"gpu_device_info {{ {told} cuda_compute_capability {{ major: {major} minor: {minor} }} }} "
        'platform_name: "CUDA" dnn_version_info { major: 9 minor: 7 } '
        f'runtime_version {{ major: 12 minor: 9 patch: 0 }} device_description_str: "{target.title}"'
    )
