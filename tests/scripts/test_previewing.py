"""What `scripts/previewing` counts in XLA's texts, by hand."""

import pytest

from scripts.previewing import graphs, program
from scripts.previewing.graphs import Starts

HLO = """
HloModule chunk

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %both = f32[] add(%a, %b)
}

%added (table: f32[100], places: s32[4,1], more: f32[4]) -> f32[100] {
  %table = f32[100]{0} parameter(0)
  %places = s32[4,1]{1,0} parameter(1)
  %more = f32[4]{0} parameter(2)
  ROOT %scatter = f32[100]{0} scatter(%table, %places, %more), update_window_dims={}, to_apply=%sum
}

%goes_on (walk: (pred[], f32[8])) -> pred[] {
  %walk = (pred[], f32[8]{0}) parameter(0)
  ROOT %asked = pred[] get-tuple-element(%walk), index=0
}

%level (walk.1: (pred[], f32[8])) -> (pred[], f32[8]) {
  %walk.1 = (pred[], f32[8]{0}) parameter(0)
  %here = f32[8]{0} get-tuple-element(%walk.1), index=1
  %there = f32[8]{0} negate(%here)
  %arrived = pred[] get-tuple-element(%walk.1), index=0
  ROOT %next = (pred[], f32[8]{0}) tuple(%arrived, %there)
}

%iteration (state: (s32[], f32[100], s32[4,1], f32[4], pred[], f32[8])) -> (s32[], f32[100]) {
  %state = (s32[], f32[100]{0}, s32[4,1]{1,0}, f32[4]{0}, pred[], f32[8]{0}) parameter(0)
  %old = f32[100]{0} get-tuple-element(%state), index=1
  %at = s32[4,1]{1,0} get-tuple-element(%state), index=2
  %values = f32[4]{0} get-tuple-element(%state), index=3
  %fusion = f32[100]{0} fusion(%old, %at, %values), kind=kLoop, calls=%added
  %start = (pred[], f32[8]{0}) tuple(%old, %values)
  %walked = (pred[], f32[8]{0}) while(%start), condition=%goes_on, body=%level
  ROOT %out = (s32[], f32[100]{0}) tuple(%state, %fusion)
}

%more_iterations (state.1: (s32[])) -> pred[] {
  %state.1 = (s32[]) parameter(0)
  %number = s32[] get-tuple-element(%state.1), index=0
  %end = s32[] constant(2)
  ROOT %less = pred[] compare(%number, %end), direction=LT
}

ENTRY %main (first: (s32[])) -> (s32[]) {
  %first = (s32[]) parameter(0)
  %copied = (s32[]) copy(%first)
  ROOT %loop = (s32[]) while(%copied), condition=%more_iterations, body=%iteration
}
"""

THUNKS = """000: kCopy
001: kWhile
    condition:
    002: kKernel
    body:
    003: kCommandBuffer
        004: kKernel
        005: kGemm
        006: kWhile
            body:
            007: kKernel
    008: kConditional
        branch_0:
        009: kKernel
        branch_1:
        010: kKernel
        011: kCopy
012: kAsyncDone
"""


@pytest.mark.parametrize("levels", [1.0, 3.0])
def test_the_kernels_and_bytes_of_an_iteration(levels):
    """A scatter of 4 numbers, which it reads and adds to 4 places by 4 indices, and a negation of 8 at each level."""
    work = program.work_of_iteration(HLO, iterations=2, unknown_turns=levels)
    assert work.kernels == 1 + levels
    assert work.scatter_adds == 1
    assert work.size == 4 * (4 + 4 + 2 * 4) + levels * 2 * 4 * 8


def test_a_loops_turns_are_those_that_it_states_or_compares_with_or_unknown():
    computations, entry = program.parse(HLO)
    assert program.turns(computations[entry]["loop"], computations) == 2
    assert program.turns(computations["iteration"]["walked"], computations) is None
    said = computations["iteration"]["walked"]._replace(attributes='backend_config={"known_trip_count":{"n":"7"}}')
    assert program.turns(said, computations) == 7


@pytest.mark.parametrize(
    ("shape", "size"), [("f32[3,5]{1,0}", 60), ("(pred[9], bf16[2], s4[3])", 9 + 4 + 2), ("s32[]", 4)]
)
def test_bytes_of_a_type(shape, size):
    assert program.size_of(shape) == size


def test_what_the_host_launches():
    """A copy; then three turns, each with a graph and the larger branch; without a known length also the condition."""
    root = graphs.parse(THUNKS)
    inner = {6: 5}
    assert graphs.count(root, {1: 3, **inner}, 9.0) == Starts(1 + 3 * 3, 3, 3, 1 + 3 * (2 + 5 + 2))
    assert graphs.count(root, inner, 9.0) == Starts(1 + 9 * 4, 9, 9 * 2, 1 + 9 * (1 + 2 + 5 + 2))
    assert [thunk.number for thunk in graphs.left_outside(root)] == [1, 8]
