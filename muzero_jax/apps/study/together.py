"""Trains several agents as one run of one program (`population`): one state, one checkpoint, one clock.

Each agent has a folder with its config, metrics, versions and summary. The checkpoints hold the state of all agents and
lie in the first agent's folder. Each agent equals a separate run on as many devices, up to the rounding of products
that `vmap` batches. An agent whose loss is no longer finite does not disturb the others.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.evaluation.progress import Versions, open_versions
from muzero_jax.apps.study import comparison, population
from muzero_jax.config.config import Config, flat, with_values
from muzero_jax.config.fields import names
from muzero_jax.config.session import Session
from muzero_jax.run import runner
from muzero_jax.run.compiled import Compiled, compile_planned, count
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from muzero_jax.run.run import Result
from muzero_jax.run.runner import Planned
from muzero_jax.storage import run_directory
from muzero_jax.storage.run_directory import Shared


def alike(config: Config) -> Config:
    """The config with all fields that may differ between the agents of a program reset to defaults."""
    own = [*names(Config, "member"), *names(Config, "own")]
    return with_values(config, {name: flat(Config())[name] for name in own})


def check(config: Config) -> None:
    """Raises ValueError for a run that cannot be trained with others in one program."""
    if config.sources:
        raise ValueError("--together cannot be combined with --offline or --init-from; leave it out")
    if config.board_sizes:
        raise ValueError("--together cannot be combined with --board-sizes; leave it out")


def train(
    agents: Sequence[Planned], session: Session, mesh: Mesh, say: Callable[[str], None]
) -> list[Result | ValueError]:
    """Trains all agents until their budget is spent or a signal stops them; returns how each ended.

    Args:
      agents: the caller has opened the first one's folder.
      mesh: of all devices; matches are played on it.

    Raises ValueError as `runner.train` does, for what concerns all agents.
    """
    shared = agents[0].folder / run_directory.TOGETHER
    agents = [agent._replace(shared=Shared(shared, index, len(agents))) for index, agent in enumerate(agents)]
    for agent in agents:
        check(agent.config)
        if session.resume and run_directory.shared(agent.folder) != agent.shared:
            raise ValueError(
                f"{agent.folder} was not trained together with exactly these runs; leave out --together, or give "
                "the flags with which they were begun"
            )

    def compile_run(is_new: bool) -> Compiled:
        del is_new  # `check` allows no sources
        return compile_together([agent.config for agent in agents], mesh, session, say)

    opened: list[Versions] = []

    def open_alike(*arguments: Any) -> Versions:
        opened.append(open_versions(*arguments, like=opened[0] if opened else None))
        return opened[-1]

    with ExitStack() as locks:
        for agent in agents[1:]:
            folder = run_directory.opened(agent.folder, resume=session.resume, overwrite=session.overwrite)
            locks.enter_context(folder)
        return runner.train(agents, compile_run, session, shared, mesh, say, None, open_alike)


def compile_together(configs_: Sequence[Config], mesh: Mesh, session: Session, say: Callable[[str], None]) -> Compiled:
    """The agents' program; raises ValueError with the flags to lower if it does not fit in memory."""
    config = configs_[0]
    varied = comparison.varied_fields(configs_)
    algorithm = make_algorithm(config)
    own_mesh = population.make_mesh(population.mesh_shape(len(configs_), mesh.size, *config.shared_sizes))
    init = population.make_init(algorithm, [each.seed for each in configs_], own_mesh)
    numbers = np.array([[flat(each)[name] for name in varied] for each in configs_], np.float32)
    stacked = init.eval_shape()
    progress = abstract_progress(config.iterations_per_chunk)
    traced = population.make_chunk(config, algorithm, varied, own_mesh).trace(numbers, stacked, progress)
    compiled, plan = compile_planned(traced, stacked, own_mesh, session, say)
    alone = make_init(algorithm, config.seed, own_mesh).eval_shape()
    counted = count(config, make_chunk(algorithm, own_mesh).trace(alone, progress))
    program = population.make_program(compiled, numbers, own_mesh)
    return Compiled(algorithm, init, stacked, alone.learner.params, program, plan, counted)
