"""A chunk as one CUDA graph, which the host of an NVIDIA GPU launches once and then waits for.

By default, XLA captures sequences of kernels, but no loops, so an iteration of Hex 5x5 is some 530 launches on an H100.
With the options below, the whole chunk, 32 moves and 48 updates with all their loops, is one graph, and the H100 played
and learned a quarter faster (docs/results/2026-11-27-h100.md).

Older versions fail: graphs in loops crash with CUDA below 12.9, and in their second run with jaxlib below 0.8.3.
cuDNN's convolutions can fail too: a program of Pong from the compilation cache, in a process that had not called cuDNN
before, could not be captured (CUDNN_STATUS_EXECUTION_FAILED, jax 0.11.2, cuDNN for CUDA 13).
"""

from importlib.metadata import version
from typing import Any

COMMANDS = "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE"
"""The operations that are captured; as a compiler option, the list replaces XLA's own. With WHILE, the least graph size
must be 1, or else jax 0.10 captures nothing in a chunk of several iterations."""
OLDEST_CUDA = 12090
OLDEST_JAXLIB = (0, 8, 3)
PRODUCTS = {"xla_gpu_dot_merger_threshold_mb": "0"}
"""Keeps products of the same weights apart, which XLA would merge by copying their rows together: of the root and of
the unrolled positions, 148 MB twelve times an iteration of Hex 5x5 on an H100."""


def options(device: Any, cuda: int | None, jaxlib: tuple[int, ...]) -> dict[str, str]:
    """XLA's compiler options for one graph; empty if a graph is known to fail, and on other devices.

    Args:
      device: has a `jax.Device`'s `platform` and `compute_capability`.
      cuda: the older version of driver and runtime, 12090 for 12.9; None without CUDA.
      jaxlib: its version.
    """
    if device.platform != "gpu" or cuda is None or cuda < OLDEST_CUDA or jaxlib < OLDEST_JAXLIB:
        return {}
    chosen = {"xla_gpu_enable_command_buffer": COMMANDS, "xla_gpu_graph_min_graph_size": "1"}
    if float(device.compute_capability) >= 9.0:  # the pass's marks on rows written in a loop block a capture
        chosen["xla_disable_hlo_passes"] = "dynamic-slice-annotator"
    return chosen


def installed() -> tuple[int | None, tuple[int, ...]]:
    """The older version of CUDA's driver and runtime (12090 for 12.9, None without CUDA), and jaxlib's version."""
    jaxlib = tuple(int(part) for part in version("jaxlib").split(".")[:3] if part.isdecimal())
    try:
        from jax._src.lib import cuda_versions

        return min(cuda_versions.cuda_driver_get_version(), cuda_versions.cuda_runtime_get_version()), jaxlib  # type: ignore
    except (ImportError, AttributeError, RuntimeError):  # no plugin, another one (ROCm's), or no driver
        return None, jaxlib


def has_convolutions(lowered: Any) -> bool:
    """Whether a lowered program has convolutions, which cuDNN computes on an NVIDIA GPU."""
    return "stablehlo.convolution" in lowered.as_text()


def compile_with(lowered: Any, device: Any, say: Any, *, wanted: bool) -> Any:
    """The compiled program, as one graph if `wanted` and possible; on a GPU, prints whether it is one."""
    if device.platform != "gpu":
        return lowered.compile()
    cuda, jaxlib = installed()
    convolves = wanted and has_convolutions(lowered)
    chosen = options(device, cuda, jaxlib) if wanted and not convolves else {}
    if not chosen:
        needs = "cuDNN's convolutions may fail in one" if convolves else "that needs CUDA 12.9 and jaxlib 0.8.3"
        why = needs if wanted else "--no-cuda-graphs or --profile"
        say(f"CUDA graphs as XLA makes them by itself, not one for the whole chunk ({why})")
        return lowered.compile(PRODUCTS)
    try:
        compiled = lowered.compile(chosen | PRODUCTS)
    except Exception as error:  # XLA raises any kind
        say(f"CUDA graphs as XLA makes them by itself: one for the whole chunk fails ({str(error)[:200]})")
        return lowered.compile(PRODUCTS)
    say("one CUDA graph for the whole chunk; --no-cuda-graphs leaves it to XLA")
    return compiled
