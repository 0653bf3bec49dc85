"""`scripts/preview.py`: what a text of XLA says, arithmetic by hand, and that programs compile for accelerators."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import devices
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from scripts import preview
from scripts.benchmarks.report import ROOT
from scripts.previewing import program, targets
from scripts.previewing.program import Work
from scripts.previewing.targets import TARGETS
from tests.reference import tiny_run

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
  %strip = f32[1,4]{1,0} parameter(1)
  %at = s32[] constant(2)
  %put = f32[8,4]{1,0} dynamic-update-slice(%l, %strip, %at, %at)
  %sum = f32[8,4]{1,0} all-reduce-start(%put), replica_groups={{0,1}}, to_apply=%add
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


def test_kernels_and_bytes_of_an_iteration_are_those_of_all_turns():
    """The program's loop has three turns, as its condition says; in it lies one whose length is not known."""
    # A turn reads one line of the array and writes one in place; then its condition is asked.
    down = Work(kernels=3, size=(LINE + LINE) + (LINE + LINE) + (1 + NUMBER))
    # A product's room to work in is not moved.
    turn = Work(kernels=1 + 5 * down.kernels, size=3 * ARRAY + 5 * down.size)
    assert program.work_of_iteration(HLO, 3, unknown_turns=5) == turn
    # Without a loop of so many turns it is the whole program: a comparison, and a branch with a row and an all-reduce.
    compared, put, reduced = NUMBER + NUMBER + 1, LINE + LINE, ARRAY + ARRAY
    whole = Work(kernels=3 + 3 * turn.kernels, size=compared + put + reduced + 3 * turn.size)
    assert program.work_of_iteration(HLO, 2, unknown_turns=5) == whole
    assert preview.levels(16) == 4 and preview.levels(1) == 1


def test_the_largest_bound_is_the_limit():
    target = TARGETS["t4"]._replace(peak={"float32": 1e12, "bfloat16": 2e12}, bandwidth=1e9, launch=1e-3, wait=1e-2)
    host = {"starts": 20, "waits": 2}  # for two iterations
    seconds = preview.seconds(2e9, 5e6, host, target, "float32")
    assert seconds == pytest.approx({"FLOPs": 2e-3, "bytes": 5e-3, "launches": 20e-3})
    found = preview.at_best(seconds, frames=100)
    assert found == {"limit": "launch-bound", "frames_per_second": pytest.approx(5000), "busy": pytest.approx(0.25)}


def test_what_cannot_be_previewed_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(targets, "PACKAGES", {"gpu": "no_such_package", "tpu": "no_such_package"})
    for flags in (
        ["--devices", "5"],
        ["--devices", "3"],
        ["--offline", "runs/x"],
        ["--env", "hex", "--board-size", "3"],
    ):
        assert report_errors(preview.main, flags) == 2
        assert capsys.readouterr().err.count("error: ") == 1


TINY = replace(tiny_run.CONFIG, env="hex", board_size=3)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [pytest.param("observation", "own", marks=pytest.mark.slow), ("fully_convolutional", "passes")],
)
def test_programs_of_every_kind_lower_for_gpus_and_tpus(kind, engine):
    network, search = replace(TINY.network, kind=kind, width=8), replace(TINY.search, engine=engine)
    mesh = devices.make_mesh(1)
    with devices.made_for(TARGETS["t4"]):
        algorithm = algorithms.make(replace(TINY, network=network, search=search))
        traced = make_chunk(algorithm, mesh).trace(make_init(algorithm, 0, mesh).eval_shape(), abstract_progress(1))
        for platform in ("cuda", "tpu"):
            assert "stablehlo.while" in traced.lower(lowering_platforms=(platform,)).as_text()


SMALL = (
    "--env hex --board-size 3 --network.width 16 --network.num-bins 3 "
    "--search.num-simulations 4 --search.max-num-considered-actions 4 "
    "--self-play.num-envs 8 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8 --optimiser.updates-per-iteration 2"
)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["t4", "h100", "v5e"])
def test_a_tiny_program_compiles_for_accelerators(target):
    package = targets.PACKAGES[TARGETS[target].platform]
    if find_spec(package) is None:
        pytest.skip(f"needs {package} (pip install -e '.[preview]')")
    command = [sys.executable, "scripts/preview.py", "--json", "--target", target, *SMALL.split()]
    record = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert record["fits"] and record["iteration"]["flops"] > 0
    if target != "v5e":  # the whole chunk of two iterations is one graph, for which the host never waits
        assert (record["host"]["starts"], record["host"]["waits"], record["host"]["outside"]) == (1, 0, [])
    assert record["iteration"]["kernels"] > 4 * 4 * 2  # moves, simulations, levels
