"""A run's functions and its one compiled program, made before there is any state.

The program is compiled from the shapes of the state, so XLA's account of its memory can refuse the run in time.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.ops import devices
from muzero_jax.run import flops, memory
from muzero_jax.run.compilation_cache import HOW_LONG
from muzero_jax.run.flops import Flops
from muzero_jax.run.memory import Plan
from muzero_jax.run.program import Init, abstract_progress, make_chunk, make_init
from muzero_jax.storage.config import Config
from muzero_jax.types import TrainState


class Assembly(NamedTuple):
    """The parts that a run needs to begin. Nothing of its state is allocated."""

    init: Init  # makes the first state
    abstract: TrainState  # its shapes, which are also those of a checkpoint
    program: jax.stages.Compiled  # `program.make_chunk`
    plan: Plan
    flops: Flops  # of one iteration; playing alone, and what learning adds


def assemble(
    config: Config,
    mesh: Mesh,
    say: Callable[[str], None],
    *,
    saves: bool = True,
    verbose: bool = False,
    algorithm: Algorithm | None = None,
) -> Assembly:
    """Compiles a run's program and says what memory it needs, with `verbose` for what.

    `saves` says whether checkpoints are saved before the run's end; `algorithm` is the config's unless
    it is given. Raises ValueError, which names the flags to lower, if the run does not fit in memory.
    """
    algorithm = algorithm or algorithms.make(config)
    init = make_init(algorithm, config.seed, mesh)
    abstract = init.eval_shape()
    chunk = make_chunk(algorithm, mesh, plays=config.offline is None)
    traced = chunk.trace(abstract, abstract_progress(config.iterations_per_chunk))
    flops = count(config, traced)
    program, plan = compile_planned(traced, abstract, mesh, say, saves=saves, verbose=verbose)
    return Assembly(init, abstract, program, plan, flops)


def count(config: Config, traced: Any) -> Flops:
    """The FLOPs of one iteration of a run's traced program."""
    counted = flops.count(traced.jaxpr, config.self_play.full_search_share)
    return counted.times(1 / config.iterations_per_chunk)


def compile_planned(
    traced: Any,
    abstract: TrainState,
    mesh: Mesh,
    say: Callable[[str], None],
    *,
    saves: bool,
    verbose: bool,
) -> tuple[Any, Plan]:
    """The compiled program and its plan of memory, which is said; ValueError where it does not fit."""
    say(f"compiling ({HOW_LONG})")
    start = time.perf_counter()
    program = traced.lower().compile()
    held = memory.held_by_process(mesh.local_devices)
    is_cpu = mesh.devices.flat[0].platform == "cpu"
    plan = memory.make_plan(abstract, program, copied_by_saves=is_cpu and saves, held=held)
    free = devices.available_memory_bytes(len(mesh.local_devices))
    available = None if free is None else free + held
    if verbose or not plan.fits(available):
        say(plan.table(available))
    say(f"memory      {plan.line(available)} (compiled in {time.perf_counter() - start:.0f} s)")
    plan.check(available)
    return program, plan
