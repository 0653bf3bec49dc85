"""Predicts a run's speed on an accelerator that you do not have: python scripts/preview.py --target t4 --env hex

XLA on a CPU compiles the training program of two iterations for a T4, L4, A100, H100 or TPU v5e. The compiled program
shows its memory, kernels and bytes, and for a GPU the host's launches and waits; the traced program shows its FLOPs.
With the accelerator's figures, each gives a lower bound of an iteration's time, and the largest bound counts. Further
flags are those of train.py, such as --search.engine own. Needs the extra `preview`, in a separate virtual environment
(docs/accelerators.md).
"""

import json
import math
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.previewing import targets

if __name__ == "__main__":
    targets.prepare()

import numpy as np
from jax.sharding import Mesh
from msgspec import Meta

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.commands import parser, train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.config.config import Config
from muzero_jax.config.fields import fields_of
from muzero_jax.config.session import Session
from muzero_jax.config.validation import validate
from muzero_jax.ops import precision
from muzero_jax.ops.devices import made_for
from muzero_jax.ops.mesh import AXIS
from muzero_jax.run import cuda_graphs, flops, memory
from muzero_jax.run.compiled import check_shares
from muzero_jax.run.machine import format_bytes
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from scripts.benchmarks import report
from scripts.benchmarks.report import Record
from scripts.previewing import graphs, program
from scripts.previewing.targets import TARGETS, Target

LIMITS = {"FLOPs": "compute-bound", "bytes": "memory-bound", "launches": "launch-bound"}


@dataclass(frozen=True)
class Arguments:
    """The flags of the preview; all others are train.py's."""

    target: Literal["t4", "l4", "a100", "h100", "v5e"] = "t4"
    """the accelerator to compile for"""
    devices: Annotated[int, Meta(ge=1, le=4)] = 1
    """number of these devices that share the games"""
    cuda: str = "12.9"
    """CUDA version of driver and runtime; below 12.9, CUDA graphs contain no loops"""
    cuda_graphs: bool = True
    """compile a chunk as one CUDA graph; if off, XLA chooses the graphs"""
    json: bool = False
    """print one JSON object"""


def read_arguments(arguments: list[str]) -> tuple[Arguments, Config]:
    """The command's own flags, and the run's settings."""
    given = parser.split(arguments, Config, Arguments)
    if parser.HELP in given:
        parser.read(Arguments, [parser.HELP], __doc__)
    own = parser.convert(Arguments, {f.name: given.pop(f.name) for f in fields_of(Arguments) if f.name in given})
    if not re.fullmatch(r"\d+\.\d+", own.cuda):
        raise ValueError(f"--cuda is {own.cuda}, but must be MAJOR.MINOR, such as 12.9")
    with redirect_stdout(sys.stderr), made_for(TARGETS[own.target]):
        config = validate(train.settle(given, Session())[0])
    if config.offline:
        raise ValueError("a preview needs self-play; leave out --offline")
    check_shares(config, own.devices)
    return own, config


ITERATIONS = 2
"""Iterations of the program, because XLA would remove a loop of one, and then compile the loops in it differently."""


def preview(config: Config, target: Target, num_devices: int, cuda: str, *, one_graph: bool) -> Record:
    """Compiles the program of a chunk, and returns its figures for one iteration on each device."""
    with made_for(target), TemporaryDirectory() as folder:
        mesh = Mesh(np.array(targets.devices(target, num_devices, cuda)), (AXIS,))
        algorithm = make_algorithm(config)
        abstract = make_init(algorithm, config.seed, mesh).eval_shape()
        traced = make_chunk(algorithm, mesh).trace(abstract, abstract_progress(ITERATIONS))
        dtype = precision.resolve(config.network.compute_dtype).compute_dtype
        depth = levels(config.search.num_simulations)
        compiled, host = compile_for(traced.lower(), target, cuda, depth, Path(folder), one_graph=one_graph)
    held = memory.make_plan(abstract, compiled, copied_by_saves=False).parts
    work = program.work_of_iteration(compiled.as_text(), ITERATIONS, depth)
    counted = sum(flops.count(traced.jaxpr, config.self_play.full_search_share)) / num_devices / ITERATIONS
    bounds = seconds(counted, work.size, host, target, dtype)
    frames = config.self_play.num_envs * config.self_play.rollout_length
    return {
        "target": target.title,
        "devices": num_devices,
        "env": config.env,
        "board_size": config.board_size,
        "engine": config.search.engine,
        "games": config.self_play.num_envs,
        "batch": config.optimiser.batch_size,
        "dtype": dtype,
        "levels": depth,
        "iteration": work._asdict() | {"flops": counted, "seconds": bounds},
        "host": host,
        "memory": held,
        "fits": sum(held.values()) <= target.available,
        **at_best(bounds, frames),
    }


def compile_for(
    lowered: Any, target: Target, cuda: str, depth: float, folder: Path, *, one_graph: bool
) -> tuple[Any, Record]:
    """The compiled program, and the host's work for a chunk; none for a TPU, which runs a whole program by itself."""
    if target.platform != "gpu":
        return lowered.compile(), {}
    major, minor = map(int, cuda.split("."))
    jaxlib = tuple(map(int, version("jaxlib").split(".")[:3]))
    one_graph = one_graph and not cuda_graphs.has_convolutions(lowered)
    options = cuda_graphs.options(target, 1000 * major + 10 * minor, jaxlib) if one_graph else {}
    compiled = lowered.compile(options | cuda_graphs.PRODUCTS | {"xla_dump_to": str(folder)})
    root, turns = graphs.read(folder)
    outside = [thunk.kind.removeprefix("k") for thunk in graphs.left_outside(root)]
    return compiled, graphs.count(root, turns, depth)._asdict() | {"outside": outside, "options": options}


def levels(num_simulations: int) -> float:
    """The assumed depth of a simulation's walk, in the game where it is deepest."""
    return max(1.0, math.log2(num_simulations))


def seconds(done: float, moved: float, host: Record, target: Target, dtype: str) -> dict[str, float]:
    """The lower bounds of an iteration's time by name: by its FLOPs, its bytes, and the host's work for a chunk."""
    return {
        "FLOPs": done / target.peak.get(dtype, target.peak["bfloat16"]),  # bfloat16_products multiplies bfloat16
        "bytes": moved / target.bandwidth,
        "launches": (host.get("starts", 0) * target.launch + host.get("waits", 0) * target.wait) / ITERATIONS,
    }


def at_best(bounds: dict[str, float], frames: int) -> Record:
    """The largest lower bound of an iteration of `frames` frames: its name, the best speed, and the device's load."""
    name, longest = max(bounds.items(), key=lambda named: named[1])
    busy = max(bounds["FLOPs"], bounds["bytes"]) / longest  # the share of time that the device works
    return {"limit": LIMITS[name], "frames_per_second": frames / longest, "busy": busy}


def describe(record: Record, target: Target) -> str:
    """The record as text."""
    done = record["iteration"]
    host = record["host"]
    bounds = ", ".join(f"{1e3 * bound:,.2f} ms by {name}" for name, bound in done["seconds"].items())
    held = " + ".join(f"{name} {format_bytes(size)}" for name, size in record["memory"].items())
    fits = "fits" if record["fits"] else "does not fit"
    rows = {
        "an iteration": f"{done['kernels']:,.0f} kernels, {done['flops']:.3g} FLOPs, {done['size']:.3g} bytes",
        "takes at least": bounds,
        "frames a second": f"at best {record['frames_per_second']:,.0f}; {record['limit']}, the device is "
        f"{record['busy']:.0%} busy",
        "memory": f"{held}: {fits} in {format_bytes(target.available)}",
    }
    if host:
        rows[f"the host, {ITERATIONS} iterations"] = (
            f"{host['starts']:,.0f} starts, of them {host['graphs']:,.0f} graphs; {host['waits']:,.0f} waits; "
            f"in no graph: {', '.join(host['outside']) or 'nothing'}"
        )
    title = f"{record['devices']} x {target.title}, {record['env']} {record['board_size'] or ''}, {record['dtype']}"
    return "\n".join([title, *(f"{name:<24}{value}" for name, value in rows.items())])


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    own, config = read_arguments(arguments)
    target = TARGETS[own.target]
    targets.check_installed(target)
    about = report.describe([__file__, *arguments])
    record = preview(config, target, own.devices, own.cuda, one_graph=own.cuda_graphs)
    record |= {key: about[key] for key in ("date", "commit", "versions", "command")}
    print(json.dumps(record, indent=1) if own.json else describe(record, target))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --self-play.num-envs"))
