"""A run's functions and its one program, put together in the order that lets memory be planned before any is taken.

The program is compiled from the shapes of the state, so that XLA's own account of its memory is known, and can refuse
the run, while there is no state yet.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax import training
from muzero_jax.run import memory
from muzero_jax.run.memory import Plan
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Init, TrainState


class Assembly(NamedTuple):
    """What a run needs to begin. Nothing of its state is allocated."""

    parts: Parts
    init: Init  # makes the first state
    abstract: TrainState  # what that, or a checkpoint, will be
    program: jax.stages.Compiled  # `training.make_chunk`
    estimate: Plan
    plan: Plan  # exact


def assemble(
    config: Config,
    mesh: Mesh,
    say: Callable[[str], None],
    checkpoint_minutes: float = Session.checkpoint_minutes,
) -> Assembly:
    """Compiles a run's program and tells its memory plan, which depends on whether the clock orders checkpoints.

    Raises ValueError, naming the flags to lower, if the run will not fit: before compiling, if that is plain already.
    """
    parts = training.make_parts(config)
    init = training.make_init(config, parts, mesh)
    abstract = init.eval_shape()
    estimate = memory.estimate(config, parts, abstract, mesh, checkpoint_minutes)
    memory.refuse_hopeless(estimate, mesh, say)
    say("compiling")
    program = training.make_chunk(config, parts, mesh).lower(abstract).compile()
    plan = memory.exact(estimate, program, mesh)
    memory.check(plan, mesh, say)
    return Assembly(parts, init, abstract, program, estimate, plan)
