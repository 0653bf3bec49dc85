"""`scripts/preview.py`: what a text of XLA says, arithmetic by hand, and what this program gives accelerators to do.

The tables of started operations are a guard: whoever makes a loop longer edits a number that a reviewer sees.
"""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest
from scripts.benchmarks.workloads import algorithm_of

from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import devices, precision
from muzero_jax.run import flops
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from scripts import preview
from scripts.preview import Work
from scripts.previewing import program, targets
from scripts.previewing.program import Loop
from scripts.previewing.targets import TARGETS
from tests.reference import tiny_run

ROOT = Path(__file__).resolve().parents[2]
HLO = """\
HloModule jit_chunk, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{1,0}}

%fused_write (p.0: f32[8,4], p.1: f32[4]) -> f32[8,4] {
  %p.0 = f32[8,4]{1,0} parameter(0)
  %p.1 = f32[4]{0} parameter(1)
  %one = s32[] constant(1)
  %row = f32[1,4]{1,0} bitcast(%p.1)
  ROOT %write = f32[8,4]{1,0} dynamic-update-slice(%p.0, %row, %one, %one)
}

%fused_read (p.2: f32[8,4]) -> f32[4] {
  %p.2 = f32[8,4]{1,0:T(8,128)} parameter(0)
  %two = s32[] constant(2)
  %taken = f32[1,4]{1,0} dynamic-slice(%p.2, %two, %two), dynamic_slice_sizes={1,4}
  ROOT %flat = f32[4]{0} bitcast(%taken)
}

%down (d: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %d = (s32[], f32[8,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%d), index=0
  %x = f32[8,4]{1,0} get-tuple-element(%d), index=1
  %line = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused_read
  %y = f32[8,4]{1,0} fusion(%x, %line), kind=kLoop, calls=%fused_write
  ROOT %d.1 = (s32[], f32[8,4]{1,0}) tuple(%i, %y)
}

%on (g: (s32[], f32[8,4])) -> pred[] {
  %g = (s32[], f32[8,4]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%g), index=0
  ROOT %any = pred[] negate(%j)
}

%play (m: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %m = (s32[], f32[8,4]{1,0}) parameter(0)
  %z = f32[8,4]{1,0} get-tuple-element(%m), index=1
  %dot = (f32[8,4]{1,0}, s8[4096]{0}) custom-call(%z, %z), custom_call_target="__cublas$lt$matmul"
  ROOT %inner = (s32[], f32[8,4]{1,0}) while(%m), condition=%on, body=%down, metadata={op_name="a/descend/while"}
}

%before (b: (s32[], f32[8,4])) -> pred[] {
  %b = (s32[], f32[8,4]{1,0}) parameter(0)
  %end = s32[] constant(3)
  %k = s32[] get-tuple-element(%b), index=0
  ROOT %less = pred[] compare(%k, %end), direction=LT
}

%learn (l: f32[8,4]) -> f32[8,4] {
  %l = f32[8,4]{1,0} parameter(0)
  %sum = f32[8,4]{1,0} all-reduce-start(%l), replica_groups={{0,1}}, to_apply=%add
  ROOT %done = f32[8,4]{1,0} all-reduce-done(%sum)
}

%skip (s: f32[8,4]) -> f32[8,4] {
  ROOT %s = f32[8,4]{1,0} parameter(0)
}

ENTRY %main (a: f32[8,4]) -> f32[8,4] {
  %a = f32[8,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %begin = (s32[], /*index=1*/f32[8,4]{1,0}) tuple(%zero, %a)
  %moves = (s32[], f32[8,4]{1,0}) while(%begin), condition=%before, body=%play, metadata={op_name="rollout/while"}
  %ready = pred[] compare(%zero, %zero), direction=EQ
  %played = f32[8,4]{1,0} get-tuple-element(%moves), index=1
  ROOT %learned = f32[8,4]{1,0} conditional(%ready, %played, %played), true_computation=%learn, false_computation=%skip
}
"""
ARRAY, LINE, NUMBER = 8 * 4 * 4, 4 * 4, 4


def test_a_text_is_read_as_loops_with_the_kernels_and_bytes_of_a_turn():
    whole = program.read(HLO)
    (move,) = whole.inner
    (down,) = move.inner
    # The host reads which branch to take; the comparison before and the all-reduce of the larger branch are kernels.
    assert (whole.name, whole.kernels, whole.waits) == ("iteration", 2, 1)
    # The loop's length stands in its condition; a product's room to work in is not moved.
    assert (move.name, move.turns, move.kernels, move.waits) == ("move", 3, 1, 0) and move.size == 3 * ARRAY
    # A turn reads one line of the array and writes one in place; then its condition is asked, and waited for.
    assert (down.name, down.turns, down.kernels, down.waits) == ("level down", None, 3, 1)
    assert down.size == (LINE + LINE) + (LINE + LINE) + (1 + NUMBER)


@pytest.mark.parametrize(
    ("shape", "size"),
    [("f32[8,4]", 128), ("pred[]", 1), ("(bf16[3], s32[2,2])", 22), ("s4[3]", 2), ("token[]", 0), ("f8e4m3fn[5]", 5)],
)
def test_a_types_bytes(shape, size):
    assert program.size_of(shape) == size


def loop(name, turns, kernels, waits, size, *inner):
    return Loop(name, turns, kernels, waits, size, inner)


def test_work_is_that_of_all_turns():
    down = loop("level down", None, 3, 1, 10)
    whole = loop("iteration", 1, 5, 1, 100, loop("move", 8, 2, 0, 20, down))
    assert preview.work(whole, 4.0) == Work(kernels=5 + 8 * (2 + 12), waits=1 + 8 * 4, size=100 + 8 * (20 + 40))
    assert preview.levels(16) == 4 and preview.levels(1) == 1


def test_the_largest_bound_is_the_limit():
    target = TARGETS["t4"]._replace(peak={"float32": 1e12, "bfloat16": 2e12}, bandwidth=1e9, launch=1e-3, wait=1e-2)
    done = Work(kernels=10, waits=1, size=5e6, flops=2e9)
    seconds = preview.seconds(done, target, "float32")
    assert seconds == pytest.approx({"FLOPs": 2e-3, "bytes": 5e-3, "launches": 20e-3})
    found = preview.at_best(seconds, frames=100)
    assert found == {"limit": "launch-bound", "frames_per_second": pytest.approx(5000), "busy": pytest.approx(0.25)}
    many = preview.at_best(seconds | {"bytes": 80e-3}, frames=1600)
    assert many == {"limit": "memory-bound", "frames_per_second": pytest.approx(20_000), "busy": 1.0}


def test_every_figure_says_whether_it_was_counted_or_estimated():
    """The search without loops needs no depth of trees, the other one does."""
    work, names = Work(3, 1, 10, 5)._asdict(), ("level down", "update", "move")
    record = {
        "devices": 1, "env": "hex", "board_size": 5, "dtype": "float32", "memory": {"replay": 7}, "fits": True,
        "iteration": work | {"seconds": {"launches": 0.02}}, "limit": "launch-bound", "frames_per_second": 9.0,
        "busy": 0.5,
    }  # fmt: skip
    for per, of_move in ((names, "estimated"), (names[1:], "counted")):
        first, *lines = preview.describe(record | {"per": dict.fromkeys(per, work)}, TARGETS["t4"]).splitlines()
        assert first == "1 x Tesla T4, hex 5, float32"
        how = {name: line.split()[-1] for line in lines for name in names if line.startswith(name)}
        assert how == dict.fromkeys(per, "counted") | {"move": of_move}


def test_the_library_makes_programs_for_the_device_that_it_is_told():
    with devices.made_for(TARGETS["t4"]):
        assert precision.resolve("auto").compute_dtype == "float32"
    with devices.made_for(TARGETS["h100"]):
        assert precision.resolve("auto").compute_dtype == "bfloat16"
        with devices.made_for(TARGETS["v5e"]):
            assert devices.target_device().platform == "tpu"
        assert devices.target_device().platform == "gpu"
    assert devices.target_device().platform == "cpu"


def test_what_cannot_be_previewed_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(targets, "PACKAGES", {"gpu": "no_such_package", "tpu": "no_such_package"})
    for flags in (
        ["--devices", "5"],
        ["--devices", "3"],
        ["--offline", "runs/x"],
        ["--env", "hex", "--board-size", "99"],
        ["--env", "hex", "--board-size", "3"],
    ):
        assert report_errors(preview.main, flags) == 2
        assert capsys.readouterr().err.count("error: ") == 1


MOVES, SIMULATIONS, UPDATES = 3, 5, 2
TURNS = {1: "iteration", MOVES: "move", SIMULATIONS: "simulation", UPDATES: "update"}
"""The loops of the tiny program by their length."""
STARTED = set(
    "dot_general conv_general_dilated gather scatter scatter-add sort argmax dynamic_update_slice dynamic_slice".split()
)
"""What XLA starts by itself, or at least reads and writes memory for."""
TINY = replace(
    tiny_run.CONFIG,
    env="hex",
    board_size=3,
    network=replace(tiny_run.CONFIG.network, kind="observation", width=8, num_blocks=1, num_bins=2),
    search=replace(tiny_run.CONFIG.search, num_simulations=SIMULATIONS),
    self_play=replace(tiny_run.CONFIG.self_play, rollout_length=MOVES),
    replay=replace(tiny_run.CONFIG.replay, replay_length=36),
    targets=replace(tiny_run.CONFIG.targets, unroll_steps=1, td_steps=2),
    optimiser=replace(tiny_run.CONFIG.optimiser, updates_per_iteration=UPDATES),
)
KINDS = {
    "small board": TINY,
    "loop_free": replace(TINY, search=replace(TINY.search, engine="loop_free")),
    "larger Hex": replace(TINY, network=replace(TINY.network, kind="fully_convolutional")),
    "tower": replace(TINY, network=replace(TINY.network, kind="tower")),
}
"""The kinds of presets, and the search for accelerators."""
INSIDE = {"waits of a simulation": 2, "level of a simulation": 17}
COUNTED = {
    "small board": {"iteration": 9, "move": 25, "simulation": 32, "other": 1, "update": 79} | INSIDE,
    "loop_free": {"iteration": 9, "move": 22, "simulation": 28, "other": 1, "update": 79},
    "larger Hex": {"iteration": 62, "move": 28, "simulation": 40, "other": 1, "update": 54} | INSIDE,
    # Where a move is imagined in turn, the loop of the one that this program imagines is as long as that of iterations.
    "tower": {"iteration": 44, "move": 26, "simulation": 32, "other": 1, "update": 48} | INSIDE,
}


def started(jaxpr, where="iteration", found=None):
    """The operations of a turn of each loop of a traced program; loops of unknown length are waits of the host."""
    found = {} if found is None else found
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        kind, inside = equation.primitive.name, where
        if kind == "scan":
            inside = TURNS.get(equation.params["length"], "other")
        if kind == "while":
            found[f"waits of a {where}"] = found.get(f"waits of a {where}", 0) + 1
            inside = f"level of a {where}"
        found[where] = found.get(where, 0) + (kind in STARTED)
        for part in flops._inner(equation):
            started(part, inside, found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_preset_lowers_for_gpus_and_tpus_and_starts_what_the_table_says(kind):
    mesh = devices.make_mesh(1)
    with devices.made_for(TARGETS["t4"]):
        algorithm = algorithm_of(KINDS[kind])
        traced = make_chunk(algorithm, mesh).trace(make_init(algorithm, 0, mesh).eval_shape(), abstract_progress(1))
        for platform in ("cuda", "tpu"):
            assert "stablehlo.while" in traced.lower(lowering_platforms=(platform,)).as_text()
    if jax.__version__ == "0.10.2":  # others write some operations in other ways
        assert started(traced.jaxpr) == COUNTED[kind]


SMALL = (
    "--env hex --board-size 3 --network.width 16 --network.num-bins 3 "
    "--search.num-simulations 4 --search.max-num-considered-actions 4 "
    "--self-play.num-envs 8 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8 --optimiser.updates-per-iteration 2"
)
KERNELS = {
    "t4": {"iteration": (169, 1), "move": (63, 0), "simulation": (51, 0), "update": (249, 0)},
    "h100": {"iteration": (167, 1), "move": (81, 0), "simulation": (77, 0), "update": (266, 0)},
    "v5e": {
        "iteration": (662, 1), "move": (175, 0), "simulation": (100, 0), "level down": (15, 1), "level up": (16, 1),
        "update": (593, 0),
    },
}  # fmt: skip
"""Kernels and waits of one turn of each loop of that program, loops within it left out, with jaxlib 0.10.2."""


@pytest.mark.slow
@pytest.mark.parametrize("target", KERNELS)
def test_the_tiny_program_compiles_for_accelerators_and_has_the_kernels_that_the_table_says(target):
    package = targets.PACKAGES[TARGETS[target].platform]
    if find_spec(package) is None or version("jaxlib") != "0.10.2":
        pytest.skip(f"needs {package} (pip install -e '.[preview]') beside jaxlib 0.10.2")
    command = [sys.executable, "scripts/preview.py", "--json", "--target", target, *SMALL.split()]
    record = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert {loop["name"]: (loop["kernels"], loop["waits"]) for loop in record["loops"]} == KERNELS[target]
    assert record["fits"] and record["iteration"]["flops"] > 0
