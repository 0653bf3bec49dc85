"""A trace of a few chunks, and its time by the scopes of the program."""

import gzip
import json

import jax
import pytest

from muzero_jax.run import profiling
from muzero_jax.run.profiling import ChunkProfiler
from tests.reference import tiny_run

PROGRAM = """HloModule jit_chunk, is_scheduled=true
  %while.1 = (f32[]) while(%t), metadata={op_name="jit(chunk)/while"}
  ROOT %fusion.2 = f32[] fusion(%a), metadata={op_name="jit(chunk)/rollout/while/search/expand/MuZeroNetwork.f/dot"}
  %dot.3 = f32[] dot(%a, %b), metadata={op_name="jit(chunk)/update/transpose(jvp(PixelNetwork.f))/dot" frame_id=1}
  %copy.4 = f32[] copy(%a)
  %add.5 = f32[] add(%a, %b), metadata={op_name="jit(chunk)/update/transpose(update)/add"}
"""


def operation(name, microseconds, module="jit_chunk"):
    return {"ph": "X", "name": name, "dur": microseconds, "args": {"hlo_op": name, "hlo_module": module}}


def test_time_is_summed_by_scope_and_a_loops_time_is_that_of_its_body():
    assert profiling.operation_scopes(PROGRAM) == {
        "while.1": "",
        "fusion.2": "rollout/search/expand/network",
        "dot.3": "update/network",
        "add.5": "update",
    }
    events = [
        operation("while.1", 900.0),
        operation("fusion.2", 500.0),
        operation("fusion.2", 100.0),
        operation("dot.3", 300.0),
        operation("copy.4", 100.0),
        operation("add.5", 700.0, module="jit_another_program"),
        {"ph": "X", "name": "Execute", "dur": 5000.0},
    ]
    seconds = profiling.seconds_by_scope(events, PROGRAM)
    assert seconds == pytest.approx({"rollout/search/expand/network": 6e-4, "update/network": 3e-4, "": 1e-4})
    assert "| **all of the network** | 0.001 | **90.0%** |" in profiling.scope_table(seconds)


def test_a_real_trace_of_a_runs_program_opens_and_has_its_scopes(tmp_path):
    """The first chunks do not learn yet, so `update` is looked up in the program and not in the trace."""
    state = tiny_run.make_init()()
    with ChunkProfiler(tmp_path) as profiler:
        profiler.warmed_up()
        for _ in range(2):
            with profiler.chunk():
                state, _ = jax.block_until_ready(tiny_run.program()(state, tiny_run.PROGRESS))
    assert profiler.report(tiny_run.program().as_text())
    assert {"update", "update/network"} <= set(profiling.operation_scopes(tiny_run.program().as_text()).values())
    (trace,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(trace) as stream:
        assert "chunk" in {event.get("name") for event in json.load(stream)["traceEvents"]}
    table = (tmp_path / "scopes.md").read_text()
    for scope in ("rollout/search/expand/network", "rollout/search/backup", "replay"):
        assert f"| {scope}" in table, table
