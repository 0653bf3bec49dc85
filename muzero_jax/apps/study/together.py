"""Trains several runs as one program (`population`): each with its own folder, curves, checkpoints and versions.

A member equals its run alone on as many devices as it has, up to the rounding of products that `vmap` batches. All save
and evaluate after the same chunks, because they decide by what the chunk says. They share the clock: the minutes of
each are those of the program and of everybody's evaluations.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.apps.evaluation.progress import open_versions
from muzero_jax.apps.study import comparison, population
from muzero_jax.apps.study.population import MemberState, Population
from muzero_jax.run import assembly, member
from muzero_jax.run import program as programs
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.background import Background
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.driver import ChunkRunner, drive
from muzero_jax.run.flops import Flops
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.loop import Loop
from muzero_jax.run.member import Host, Member, Result
from muzero_jax.run.memory import Plan
from muzero_jax.run.metrics import last_record
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.runner import folder_held, keep_config
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.storage.config import Config
from muzero_jax.types import TrainState


class Planned(NamedTuple):
    """One of the runs."""

    name: str  # for a person
    config: Config
    run_dir: Path


class Ready(NamedTuple):
    """The program of all members; nothing of their states is allocated."""

    algorithm: Algorithm
    mesh: Mesh
    init: Any  # makes the states
    abstract: TrainState  # the shapes of one member's state, as in a checkpoint
    program: Any  # `population.make_chunk`, compiled
    numbers: np.ndarray  # [N, F], what it takes beside the states
    plan: Plan
    flops: Flops  # of one member's iteration


def alike(config: Config) -> Config:
    """The config without what may differ between the members of a program."""
    names = [*population.NUMBERS, *comparison.OF_A_RUN_ALONE]
    return configs.with_values(config, {name: configs.flat(Config())[name] for name in names})


def check(config: Config) -> None:
    """Raises ValueError in one sentence for a run that is no member of a program."""
    if config.sources:
        raise ValueError("--together begins from nothing; leave it out with --offline and --init-from")


def train(
    runs: Sequence[Planned], session: Session, mesh: Mesh, say: Callable[[str], None]
) -> list[Result | ValueError]:
    """Trains them all until the first has spent its budget, or a signal asks for a stop.

    Args:
      mesh: of all devices; matches are played there.

    Returns:
      how each ended. One that failed, because it diverged, say, has left the others alone.

    Raises ValueError as `runner.train` does, where that concerns all of them.
    """
    with Interrupt() as interrupt, ExitStack() as held:
        for run in runs:
            held.enter_context(folder_held(run.config, session, run.run_dir))
        stores = [held.enter_context(Checkpointer(run.run_dir / run_directory.CHECKPOINTS)) for run in runs]
        start = time.perf_counter()
        ready = assemble([run.config for run in runs], mesh, session, say)
        iteration, states = find_start(stores, ready) if session.resume else (0, ready.init())
        for run in runs:
            keep_config(run.config, run.run_dir, say)
        members = Population(states, ready.numbers, ready.program, ready.abstract, ready.mesh)
        del states
        say(f"{f'going on from iteration {iteration}' if iteration else 'training'}; Ctrl-C saves and stops")
        records = [last_record(run.run_dir, up_to_iteration=iteration, say=say) if iteration else {} for run in runs]
        clock = Clock(records[0])
        clock.seconds["compile"] += time.perf_counter() - start
        what, weights = (ready.algorithm, mesh), ready.abstract.learner.params
        versions = [open_versions(run.config, *what, run.run_dir, weights, iteration) for run in runs]
        compiling = held.enter_context(Background(versions[0].compilations()))
        host = Host(session, mesh, ready.plan, interrupt, clock, compiling, ChunkProfiler(None))
        totals = [Totals(run.config, record, ready.flops) for run, record in zip(runs, records, strict=True)]
        member.note_random_return(ready.algorithm.environment, *totals)
        loops: list[Loop] = []
        for index, run in enumerate(runs):
            named, state, own = partial(_say, run.name, say), MemberState(members, index), totals[index]
            one = Member(run.config, run.run_dir, named, state, versions[index], stores[index], Callbacks(), own)
            loops.append(held.enter_context(member.open_loop(host, one, iteration, len(runs))))
        with interrupt.by_ctrl_c():
            run_chunk = ChunkRunner(members.advance, clock, compiling, host.profiler)
            ends = drive([loop.run(iteration) for loop in loops], run_chunk)
        return [_conclude(loop, end) for loop, end in zip(loops, ends, strict=True)]


def assemble(configs_: Sequence[Config], mesh: Mesh, session: Session, say: Callable[[str], None]) -> Ready:
    """Compiles the members' program; ValueError, which names the flags to lower, if they do not fit in memory."""
    config, names = configs_[0], comparison.differing(configs_)
    check(config)
    algorithm = algorithms.make(config)
    own_mesh = population.make_mesh(population.mesh_shape(len(configs_), mesh.size, *config.shared_sizes))
    init = population.make_init(algorithm, [each.seed for each in configs_], own_mesh)
    numbers = np.array([[configs.flat(each)[name] for name in names] for each in configs_], np.float32)
    stacked = init.eval_shape()
    progress = programs.abstract_progress(config.iterations_per_chunk)
    traced = population.make_chunk(config, algorithm, names, own_mesh).trace(numbers, stacked, progress)
    program, plan = assembly.compile_planned(traced, stacked, own_mesh, say, saves=True, verbose=session.verbose)
    abstract = programs.make_init(algorithm, config.seed, own_mesh).eval_shape()
    alone = programs.make_chunk(algorithm, own_mesh).trace(abstract, progress)
    return Ready(algorithm, own_mesh, init, abstract, program, numbers, plan, assembly.count(config, alone))


def find_start(stores: Sequence[Checkpointer], ready: Ready) -> tuple[int, TrainState]:
    """The newest iteration of which every member has a checkpoint, and their states; 0 if none has any.

    Raises ValueError if some have checkpoints and there is no such iteration.
    """
    steps = [set(checkpoint_steps(store.directory)) for store in stores]
    if not any(steps):
        return 0, ready.init()
    common = max(set.intersection(*steps), default=None)
    if common is None:
        raise ValueError(
            "these runs have no checkpoint of one iteration in common; leave out --together to continue one by one"
        )
    return common, population.stack([store.restore(common, ready.abstract) for store in stores], ready.mesh)


def _conclude(loop: Loop, end: int | ValueError) -> Result | ValueError:
    """Concludes one of the runs, if its loop has come to an end."""
    if isinstance(end, ValueError):
        return end
    try:
        return member.conclude(loop, end, None)
    except ValueError as error:
        return error


def _say(name: str, say: Callable[[str], None], line: str) -> None:
    say(f"{name}: {line}")
