"""A run's program, compiled ahead of time from the shapes of its state.

The state is allocated later, so that a run which XLA's memory analysis finds too large is refused first.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.session import Session
from muzero_jax.run import cuda_graphs, flops, memory
from muzero_jax.run.compilation_cache import HOW_LONG
from muzero_jax.run.flops import Flops
from muzero_jax.run.machine import available_memory_bytes, format_bytes
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from muzero_jax.types import Metrics, TrainState

Init = Any
"""`program.make_init`: a jitted function that makes the first state; its `eval_shape` gives the shapes."""


class Program(NamedTuple):
    """The compiled program of a run."""

    advance: Callable[[TrainState, np.ndarray], tuple[TrainState, Metrics]]  # a chunk, given the budget's progress [I]
    text: Callable[[], str]  # the compiled program's text, for a profile
    plan: memory.Plan
    flops: Flops  # of one iteration; `at_times` is what learning adds


def check_shares(config: Config, num_devices: int) -> None:
    """Raises ValueError, which names the nearest possible sizes, unless the devices share games and batch evenly."""
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        lower = size // num_devices * num_devices
        if lower < size:
            choices = f"{lower} or {lower + num_devices}" if lower else f"{num_devices}"
            raise ValueError(f"{flag} {size} cannot be shared evenly by {num_devices} devices; use {choices}")


def compile_agent(
    config: Config,
    algorithm: Algorithm,
    mesh: Mesh,
    session: Session,
    say: Callable[[str], None],
) -> tuple[Program, Init]:
    """The program of a run, and what makes its first state, of which nothing is allocated yet.

    Raises ValueError, which names the flags to lower, if the run does not fit in memory.
    """
    init = make_init(algorithm, config.seed, mesh)
    abstract = init.eval_shape()
    chunk = make_chunk(algorithm, mesh, plays=config.offline is None)
    traced = chunk.trace(abstract, abstract_progress(config.iterations_per_chunk))
    compiled, plan = compile_planned(traced, abstract, mesh, session, say)
    program = Program(advance=compiled, text=compiled.as_text, plan=plan, flops=count(config, traced))
    return program, init


def compile_planned(
    traced: Any, abstract: TrainState, mesh: Mesh, session: Session, say: Callable[[str], None]
) -> tuple[Any, memory.Plan]:
    """The compiled program and its memory plan, which it prints; ValueError if the plan does not fit."""
    say(f"compiling ({HOW_LONG})")
    start = time.perf_counter()
    device = mesh.devices.flat[0]
    program = cuda_graphs.compile_with(traced.lower(), device, say, wanted=session.cuda_graphs and not session.profile)
    is_cpu = device.platform == "cpu"
    plan = memory.make_plan(abstract, program, copied_by_saves=is_cpu)
    if session.verbose:
        say(plan.table())
    available = available_memory_bytes(len(mesh.local_devices))
    of = "" if available is None else f" of {format_bytes(available)}"
    seconds = f"compiled in {time.perf_counter() - start:.0f} s"
    say(f"memory      {format_bytes(plan.total)}{of} per device ({seconds})")
    plan.check(available)
    return program, plan


def count(config: Config, traced: Any) -> Flops:
    """The FLOPs of one iteration of a traced program."""
    counted = flops.count(traced.jaxpr, config.self_play.full_search_share)
    return counted.times(1 / config.iterations_per_chunk)
