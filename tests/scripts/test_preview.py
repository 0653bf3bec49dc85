"""`scripts/preview.py`: what a text of XLA says, arithmetic by hand, and what this program gives accelerators to do."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest

from muzero_jax import building
from muzero_jax.arithmetic import devices, precision
from muzero_jax.commands.command_line import report_errors
from muzero_jax.run.program import make_chunk, make_init
from scripts import preview
from scripts.previewing import bounds, page, program, targets
from scripts.previewing.bounds import Work
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

%descend (d: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %d = (s32[], f32[8,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%d), index=0
  %x = f32[8,4]{1,0} get-tuple-element(%d), index=1
  %line = f32[4]{0} fusion(%x), kind=kLoop, calls=%fused_read
  %y = f32[8,4]{1,0} fusion(%x, %line), kind=kLoop, calls=%fused_write
  ROOT %d.1 = (s32[], f32[8,4]{1,0}) tuple(%i, %y)
}

%goes_on (g: (s32[], f32[8,4])) -> pred[] {
  %g = (s32[], f32[8,4]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%g), index=0
  ROOT %any = pred[] negate(%j)
}

%play (m: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %m = (s32[], f32[8,4]{1,0}) parameter(0)
  %z = f32[8,4]{1,0} get-tuple-element(%m), index=1
  %dot = (f32[8,4]{1,0}, s8[4096]{0}) custom-call(%z, %z), custom_call_target="__cublas$lt$matmul"
  ROOT %inner = (s32[], f32[8,4]{1,0}) while(%m), condition=%goes_on, body=%descend, metadata={op_name="jit(chunk)/rollout/while/body/descend/while"}
}

%before_end (b: (s32[], f32[8,4])) -> pred[] {
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
  %moves = (s32[], f32[8,4]{1,0}) while(%begin), condition=%before_end, body=%play, metadata={op_name="jit(chunk)/rollout/while"}
  %ready = pred[] compare(%zero, %zero), direction=EQ
  %played = f32[8,4]{1,0} get-tuple-element(%moves), index=1
  ROOT %learned = f32[8,4]{1,0} conditional(%ready, %played, %played), true_computation=%learn, false_computation=%skip
}
"""
ARRAY, LINE, NUMBER = 8 * 4 * 4, 4 * 4, 4


def test_a_text_is_read_as_loops_with_what_a_turn_launches_and_moves():
    whole = program.read(HLO)
    (move,) = whole.inner
    (down,) = move.inner
    # The host reads which branch to take; the comparison before and the all-reduce of the larger branch are launched.
    assert (whole.name, whole.launches, whole.waits) == ("iteration", 2, 1)
    assert whole.collectives == (("all-reduce", ARRAY),)
    # The loop's length stands in its condition; a product's room to work in is not moved.
    assert (move.name, move.turns, move.launches, move.waits) == ("move", 3, 1, 0) and move.size == 3 * ARRAY
    # A turn reads one line of the array and writes one in place; then its condition is asked, and waited for.
    assert (down.name, down.turns, down.launches, down.waits) == ("level down", None, 3, 1)
    assert down.size == (LINE + LINE) + (LINE + LINE) + (1 + NUMBER)


@pytest.mark.parametrize(
    ("shape", "size"),
    [("f32[8,4]", 128), ("pred[]", 1), ("(bf16[3], s32[2,2])", 22), ("s4[3]", 2), ("token[]", 0), ("f8e4m3fn[5]", 5)],
)
def test_a_types_bytes(shape, size):
    assert program.size_of(shape) == size


def loop(name, turns, launches, waits, size, *inner):
    return Loop(name, turns, launches, waits, size, (), inner)


def test_work_is_that_of_all_turns():
    down = loop("level down", None, 3, 1, 10)
    whole = loop("iteration", 1, 5, 1, 100, loop("move", 8, 2, 0, 20, down))
    assert bounds.work(whole, 4.0) == Work(launches=5 + 8 * (2 + 12), waits=1 + 8 * 4, size=100 + 8 * (20 + 40))
    assert bounds.levels(16) == 4 and bounds.levels(1) == 1


def test_the_largest_bound_binds():
    target = TARGETS["t4"]._replace(peak={"float32": 1e12}, bandwidth=1e9, launch=1e-3, wait=1e-2)
    done = Work(launches=10, waits=1, size=5e6, flops=2e9)
    seconds = bounds.seconds(done, target, "float32")
    assert seconds == pytest.approx({"FLOPs": 2e-3, "bytes": 5e-3, "launches": 20e-3})
    found = bounds.bound(done, 100, target, "float32")
    assert (found.binds, found.seconds) == ("launches", pytest.approx(0.02))
    assert found.frames_per_second == pytest.approx(5000) and found.busy == pytest.approx(0.25)
    many = bounds.bound(done.times(16), 1600, target, "float32")
    assert (many.binds, many.busy) == ("bytes", 1.0) and many.seconds == pytest.approx(0.08)


def test_games_and_windows_grow_and_weights_do_not():
    parts = {"replay": 100, "parameters": 7, "optimiser": 3, "program": 50}
    target = TARGETS["t4"]._replace(memory=1000)
    done = Work(1, 0, 1.0, 1.0)
    sizes = [preview.at(times, done, parts, 1, target, "float32") for times in (1, 4, 16)]
    assert [(size["memory"], size["fits"]) for size in sizes] == [(160, True), (610, True), (2410, False)]


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
    for flags in (["--devices", "5"], ["--env", "hex", "--board-size", "99"], ["--env", "hex", "--board-size", "3"]):
        assert report_errors(preview.main, flags) == 2
        assert capsys.readouterr().err.count("error: ") == 1
