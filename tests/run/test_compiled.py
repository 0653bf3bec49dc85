"""The compiled program: the folder that keeps it, one CUDA graph for a chunk, and its memory plan."""

from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from muzero_jax.ops.convolution import native
from muzero_jax.run import compilation_cache, cuda_graphs, memory
from muzero_jax.run.memory import Plan
from tests.reference import tiny_run

# --- the folder of compiled programs ----------------------------------------------------------------------------------

enable = compilation_cache.enable  # which `no_compilation_cache` replaces
OPTIONS = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def users_folder(monkeypatch, tmp_path):
    """The user's cache folder, while JAX's options are as a user has them."""
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    yield tmp_path / "muzero_jax"
    for name, value in before.items():
        jax.config.update(name, value)
    jax_cache.reset_cache()


def folder():
    enable()
    return Path(jax.config.jax_compilation_cache_dir)


def test_programs_lie_in_the_users_cache_folder_by_jaxlib_and_machine(users_folder, monkeypatch):
    found = folder()
    assert found.parent == users_folder and found.name.startswith(f"jaxlib-{version('jaxlib')}-")
    monkeypatch.setattr(compilation_cache, "processor", lambda: "another processor")
    jax.config.update("jax_compilation_cache_dir", None)
    assert folder() != found


def test_a_cache_folder_that_the_user_set_is_kept_with_its_limit(users_folder, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    before = jax.config.jax_compilation_cache_max_size
    assert folder() == tmp_path / "mine"
    assert jax.config.jax_compilation_cache_max_size == before != compilation_cache.MOST_BYTES


# --- one CUDA graph, requested where it is known to work --------------------------------------------------------------

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
            compile=lambda options: asked.append("xla_gpu_enable_command_buffer" in options),
            as_text=lambda text=text: text,
        )
        cuda_graphs.compile_with(lowered, GPU, print, wanted=wanted)
    assert asked == [True, False, False]


# --- the memory plan, against sums worked by hand and one compiled program --------------------------------------------

FRAME = 3 + 2 + 4 * 4 + 9 * 4 + 2
"""Bytes of a stored frame of tic-tac-toe: 18 bools are 3 and 9 are 2; 3 floats and an int, 9 floats, two bools."""


def make_plan(program, *, copied_by_saves=False):
    return memory.make_plan(tiny_run.abstract_state(), program, copied_by_saves=copied_by_saves)


def test_the_plan_is_the_state_plus_what_xla_reports_for_the_program():
    """Two devices share 8 games of 32 frames; two counters of the buffer are on both. A save holds the state again."""
    sizes = {"output": 1000, "alias": 900, "temp": 20, "generated_code": 3, "argument": 10**9}
    account = SimpleNamespace(**{f"{name}_size_in_bytes": size for name, size in sizes.items()})
    compiled = SimpleNamespace(memory_analysis=lambda: account)
    plan = make_plan(compiled)
    assert list(plan.parts) == ["replay", "games", "parameters", "optimiser", "program"]
    assert plan.parts["replay"] == 8 * 32 * FRAME // 2 + 2 * 4 and plan.parts["program"] == 123
    copy = make_plan(compiled, copied_by_saves=True).total - plan.total
    assert copy == plan.total - 123 == sum(plan.parts.values()) - 123


@pytest.mark.usefixtures("unbroken")  # which compiles the program
def test_a_compiled_program_takes_the_planned_state_and_returns_it_in_place():
    plan, account = make_plan(tiny_run.program()), tiny_run.program().memory_analysis()
    state = plan.total - plan.parts["program"]
    assert abs(state - account.argument_size_in_bytes) < 64  # a few counters and the key
    assert plan.parts["program"] >= account.temp_size_in_bytes > 0
    assert plan.parts["program"] < account.temp_size_in_bytes + state / 2  # results are metrics; the state is reused


@pytest.mark.parametrize(
    ("parts", "flag"),
    [
        ({"replay": 9, "program": 8, memory.SAVING: 10}, "--replay.replay-length or --self-play.num-envs"),
        ({"replay": 9, "program": 12}, "--optimiser.batch-size, --self-play.num-envs or --search.num-simulations"),
        ({"replay": 1, "optimiser": 9, "program": 8}, "--network.width or --network.num-blocks"),
    ],
)
def test_a_run_that_cannot_fit_is_refused_with_the_flags_that_lower_its_largest_part(parts, flag):
    """From the first byte too many, and never where memory is unknown."""
    plan = Plan(parts)
    plan.check(plan.total)
    plan.check(None)
    with pytest.raises(ValueError, match=f"lower {flag}$"):
        plan.check(plan.total - 1)
