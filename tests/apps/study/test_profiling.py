"""A trace is taken of a few chunks that learn, and told by the scopes the program was written under."""

import gzip
import json
import os

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.run import profiling
from muzero_jax.run.profiling import ChunkProfiler
from tests.reference import tiny_run

PROGRAM = """HloModule jit_chunk, is_scheduled=true
  %while.1 = (f32[]) while(%t), metadata={op_name="jit(chunk)/while"}
  ROOT %fusion.2 = f32[] fusion(%a), metadata={op_name="jit(chunk)/rollout/while/search/expand/MuZeroNetwork.f/dot"}
  %dot.3 = f32[] dot(%a, %b), metadata={op_name="jit(chunk)/update/transpose(jvp(MuZeroNetwork.f))/dot" frame_id=1}
  %copy.4 = f32[] copy(%a)
  %add.5 = f32[] add(%a, %b), metadata={op_name="jit(chunk)/update/transpose(update)/add"}
"""


def operation(name, microseconds, module="jit_chunk"):
    return {"ph": "X", "name": name, "dur": microseconds, "args": {"hlo_op": name, "hlo_module": module}}


def test_tracing_begins_when_the_program_learns_and_ends_after_a_few_chunks(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(jax.profiler, "start_trace", lambda directory, **options: calls.append("start"))
    monkeypatch.setattr(jax.profiler, "stop_trace", lambda: calls.append("stop"))

    def run_chunks(profiler, count):
        for _ in range(count):
            with profiler.chunk():
                calls.append("chunk")

    with ChunkProfiler(tmp_path) as profiler:
        run_chunks(profiler, 2)
        profiler.warmed_up()
        run_chunks(profiler, 5)
    assert calls == ["chunk"] * 2 + ["start"] + ["chunk"] * profiling.MAX_CHUNKS + ["stop"] + ["chunk"] * 2
    calls.clear()
    with pytest.raises(KeyboardInterrupt), ChunkProfiler(tmp_path) as profiler:  # written whatever ends the run
        profiler.warmed_up()
        run_chunks(profiler, 1)
        raise KeyboardInterrupt
    assert calls == ["start", "chunk", "stop"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "--xla_gpu_enable_command_buffer="),
        ("--xla_dump_to=x", "--xla_dump_to=x --xla_gpu_enable_command_buffer="),
        ("--xla_gpu_enable_command_buffer=+FUSION", "--xla_gpu_enable_command_buffer=+FUSION"),
        ("a/file/of/flags", "a/file/of/flags"),
    ],
)
def test_command_buffers_are_turned_off_unless_the_user_says_otherwise(monkeypatch, before, after):
    monkeypatch.setenv("XLA_FLAGS", before)
    profiling.disable_command_buffers()
    assert os.environ["XLA_FLAGS"] == after


def test_an_operation_is_known_by_its_scopes_and_a_loops_time_is_that_of_its_body():
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


def test_every_scope_is_in_the_runs_own_program():
    found = set(profiling.operation_scopes(tiny_run.program().as_text()).values())
    assert {"rollout", "rollout/search/expand/network", "replay", "update/network", "update"} <= found
    assert any(scope.startswith("rollout/search/backup") for scope in found)


def test_a_real_trace_opens_and_its_operations_are_those_of_the_program(tmp_path):
    @jax.jit
    def program(x):
        with jax.named_scope("rollout"):
            x = jnp.tanh(x)
        with jax.named_scope("update"):
            return jnp.sort(x, axis=0)

    compiled = program.lower(jnp.ones((64, 64))).compile()
    with ChunkProfiler(tmp_path) as profiler:
        profiler.warmed_up()
        for _ in range(2):
            with profiler.chunk():
                compiled(jnp.ones((64, 64))).block_until_ready()
    assert profiler.report(compiled.as_text())
    (trace,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(trace) as stream:
        assert "chunk" in {event.get("name") for event in json.load(stream)["traceEvents"]}
    table = (tmp_path / "scopes.md").read_text()
    assert "| rollout |" in table and "| update |" in table


def test_a_run_that_ended_too_soon_says_so(tmp_path):
    with ChunkProfiler(tmp_path) as profiler, profiler.chunk():
        pass
    assert "--minutes" in profiler.report(PROGRAM) and not (tmp_path / "scopes.md").exists()
