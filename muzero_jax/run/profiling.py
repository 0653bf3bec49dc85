"""A trace of a few chunks, for Perfetto and XProf, and their time by scope.

Tracing begins when chunks learn, and ends before anything else runs. XLA's metadata has every operation's scopes
(rollout, search, expand, backup, replay, update, and Flax's modules). A CPU's trace has only short names of operations,
so the text of the compiled program is used to look up their scopes.
"""

import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax

from muzero_jax.own.files import write_whole

MAX_CHUNKS = 3
MAX_SECONDS = 2.0
"""After this long, no further chunk is traced: on a CPU, a second of trace is some 30 MB and takes 10 s to write."""
SCOPES = ("rollout", "search", "descend", "expand", "backup", "replay", "update")
NETWORK = "network"
"""The scope that stands for all modules of the network."""
_CONTAINERS = ("while", "conditional", "call")
_NO_COMMAND_BUFFERS = "--xla_gpu_enable_command_buffer="
"""XLA's flag which says that no operations go into command buffers."""


def disable_command_buffers() -> None:
    """Makes XLA launch a GPU's kernels one by one, unless XLA_FLAGS says otherwise; call it before JAX starts.

    A trace cannot distinguish operations in command buffers (CUDA graphs). The flag has no effect on other devices.
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    names_a_file = flags[:1] not in ("", "-")  # with flags, to which we cannot add one
    if _NO_COMMAND_BUFFERS not in flags and not names_a_file:
        os.environ["XLA_FLAGS"] = f"{flags} {_NO_COMMAND_BUFFERS}".strip()


class ChunkProfiler:
    """Traces up to MAX_CHUNKS chunks into `directory`, from the first one after `warmed_up`; None traces nothing."""

    def __init__(self, directory: Path | None):
        self._directory = directory
        self._is_warm = False
        self._is_tracing = False
        self._num_traced = 0
        self._deadline = 0.0

    def __enter__(self) -> "ChunkProfiler":
        return self

    def __exit__(self, *exception):
        self.stop()

    def warmed_up(self) -> None:
        """Says that chunks are typical from now on: compiled, and learning."""
        self._is_warm = True

    @contextmanager
    def chunk(self) -> Iterator[None]:
        """Surrounds one chunk, including the wait for its results."""
        if self._directory and self._is_warm and not self._num_traced:
            self._start(self._directory)
        if not self._is_tracing:
            yield
            return
        with jax.profiler.StepTraceAnnotation("chunk", step_num=self._num_traced):
            yield
        self._num_traced += 1
        if self._num_traced == MAX_CHUNKS or time.perf_counter() > self._deadline:
            self.stop()

    def _start(self, directory: Path) -> None:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # a chunk is one call from Python
        jax.profiler.start_trace(directory, create_perfetto_trace=True, profiler_options=options)
        self._is_tracing = True
        self._deadline = time.perf_counter() + MAX_SECONDS

    def stop(self) -> None:
        """Ends tracing for good, and writes the trace."""
        if self._is_tracing:
            self._is_tracing = False
            jax.profiler.stop_trace()

    def report(self, program_text: str) -> str:
        """A text with this session's trace file and its time by scope; the table is also written to `scopes.md`."""
        if not (self._directory and self._num_traced):
            return (
                "nothing was profiled: the run ended before a whole chunk had learned and the matches were compiled; "
                "give it more --minutes"
            )
        traces = self._directory.glob("plugins/profile/*/perfetto_trace.json.gz")
        newest = max(traces, key=lambda trace: trace.stat().st_mtime)  # folders' names are local times, which go back
        with gzip.open(newest, "rt", encoding="utf-8") as stream:
            events = json.load(stream)["traceEvents"]
        table = scope_table(seconds_by_scope(events, program_text))
        write_whole(self._directory / "scopes.md", table + "\n")
        return f"profile: {newest} opens in https://ui.perfetto.dev\n{table}"


def seconds_by_scope(events: list[dict], program_text: str) -> dict[str, float]:
    """Seconds of a trace's operations by scope, largest first, summed over devices.

    Args:
      events: of the Perfetto trace. Loops and branches are skipped, because it also has the operations in them.
      program_text: the compiled program. Operations without metadata have the empty scope: some of XLA's rewrites lose
        it, and those that XLA adds (mostly copies) have none.
    """
    scopes = operation_scopes(program_text)
    module = program_text.split(maxsplit=2)[1].rstrip(",")
    seconds: Counter[str] = Counter()
    for event in events:
        arguments = event.get("args", {})
        operation = arguments.get("hlo_op", "while")
        if arguments.get("hlo_module") == module and operation.split(".")[0] not in _CONTAINERS:
            seconds[scopes.get(operation, "")] += event.get("dur", 0.0) / 1e6
    return dict(seconds.most_common())


def operation_scopes(program_text: str) -> dict[str, str]:
    """Every operation's scopes, such as `rollout/search/expand/network`; an empty string if it has none."""
    named = re.findall(r'^\s*(?:ROOT )?%?([\w.\-]+) = .*?op_name="([^"]*)"', program_text, re.MULTILINE)
    return {operation: _scope(name) for operation, name in named}


def _scope(op_name: str) -> str:
    parts = re.split(r"[/()]", op_name)
    found = dict.fromkeys(part for part in parts if part in SCOPES)  # once each, because backward passes repeat them
    if any(part.split(".")[0].endswith("Network") for part in parts):  # `networks.network.Network` and its subclasses
        found[NETWORK] = None
    return "/".join(found)


def scope_table(seconds: dict[str, float]) -> str:
    """A Markdown table of each scope's seconds and share, and of the network's in all scopes."""
    total = sum(seconds.values()) or 1.0
    lines = ["| scope | device seconds | share |", "|---|---|---|"]
    lines += [f"| {scope or 'other'} | {time:.3f} | {time / total:.1%} |" for scope, time in seconds.items()]
    network = sum(time for scope, time in seconds.items() if scope.endswith(NETWORK))
    return "\n".join([*lines, f"| **all of the network** | {network:.3f} | **{network / total:.1%}** |"])
