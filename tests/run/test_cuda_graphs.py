"""One CUDA graph for a chunk: requested where it is known to work, unless a flag says no."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.ops.convolution import native
from muzero_jax.run import cuda_graphs

GPU = SimpleNamespace(platform="gpu", compute_capability="7.5")
HOPPER = SimpleNamespace(platform="gpu", compute_capability="9.0")


@pytest.mark.parametrize(
    ("device", "cuda", "jaxlib", "is_asked_for"),
    [
        (GPU, 12090, (0, 8, 3), True),
        (GPU, 12080, (0, 10, 2), False),  # a driver that crashes on graphs in loops
        (GPU, 12090, (0, 8, 2), False),
        (GPU, None, (0, 10, 2), False),  # no CUDA: ROCm
        (SimpleNamespace(platform="cpu"), None, (0, 10, 2), False),
    ],
)
def test_one_cuda_graph_is_requested_where_it_is_known_to_work(device, cuda, jaxlib, is_asked_for):
    assert bool(cuda_graphs.options(device, cuda, jaxlib)) == is_asked_for


def test_loops_of_every_size_are_captured_and_hopper_gets_no_slice_annotations():
    """With loops in the list and a least size above 1, jax 0.10 captures nothing in a chunk of several iterations."""
    chosen = cuda_graphs.options(HOPPER, 12090, (0, 10, 2))
    assert (
        "WHILE" in chosen["xla_gpu_enable_command_buffer"].split(",") and chosen["xla_gpu_graph_min_graph_size"] == "1"
    )
    assert chosen["xla_disable_hlo_passes"] == "dynamic-slice-annotator"
    assert "xla_disable_hlo_passes" not in cuda_graphs.options(GPU, 12090, (0, 10, 2))


def test_one_cuda_graph_is_requested_unless_a_flag_says_no_or_cudnn_is_called(monkeypatch):
    """cuDNN's first call in a process was seen to fail while a graph was captured."""
    monkeypatch.setattr(cuda_graphs, "installed", lambda: (12090, (0, 10, 2)))
    product, convolution = jax.jit(lambda x: x @ x), jax.jit(lambda x: native(x[None, :, :, None], x[:, :, None, None]))
    asked = []
    for program, wanted in ((product, True), (product, False), (convolution, True)):
        text = program.lower(jnp.ones((3, 3))).as_text()
        lowered = SimpleNamespace(
            compile=lambda options=None: asked.append(bool(options)), as_text=lambda text=text: text
        )
        cuda_graphs.compile_with(lowered, GPU, print, wanted=wanted)
    assert asked == [True, False, False]
