"""A run's functions and its one program, put together in the order that lets memory be planned before any is taken.

The program is compiled from the shapes of the state, so that XLA's own account of its memory is known, and can refuse
the run, while there is no state yet.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax import building
from muzero_jax.run import memory
from muzero_jax.run.memory import Plan
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Init, TrainState


class Assembly(NamedTuple):
    """What a run needs to begin. Nothing of its state is allocated."""

    parts: Parts
    init: Init  # makes the first state
    abstract: TrainState  # what that, or a checkpoint, will be
    program: jax.stages.Compiled  # `program.make_chunk`
    estimate: Plan
    plan: Plan  # exact


def assemble(config: Config, mesh: Mesh, say: Callable[[str], None]) -> Assembly:
    """Compiles a run's program and tells its memory plan.

    Raises ValueError, naming the flags to lower, if the run will not fit: before compiling, if that is plain already.
    """
    parts = building.make_parts(config)
    init = make_init(parts, config.seed, mesh)
    abstract = init.eval_shape()
    estimate = memory.estimate(config, parts, abstract, mesh)
    memory.refuse_hopeless(estimate, mesh, say)
    say("compiling")
    program = make_chunk(parts, mesh, num_iterations=config.iterations_per_chunk).lower(abstract).compile()
    plan = memory.exact(estimate, program, mesh)
    memory.check(plan, mesh, say)
    return Assembly(parts, init, abstract, program, estimate, plan)
