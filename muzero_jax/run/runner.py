"""Trains a run from its config: compiles its program, finds where it starts, and loops until its budget is spent.

Unless the budget is in minutes, weights do not depend on the clock, so a resumed run is the same, bit for bit.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from muzero_jax.config import config_file
from muzero_jax.config.config import IN_PYTHON, Config
from muzero_jax.config.session import Session
from muzero_jax.ops.mesh import local_mesh
from muzero_jax.own import python_file, trust
from muzero_jax.own.files import write_whole
from muzero_jax.run import budget, processes
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.compiled import Compiled
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.interrupt import Interrupt, Stopped
from muzero_jax.run.loop import loop
from muzero_jax.run.metrics import Callbacks, Record, last_record, open_metrics
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.run import MakeEvaluator, Member, Result, Run, measure_random_return
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.storage.run_directory import Shared

Say = Callable[[str], None]


class Planned(NamedTuple):
    """One of the agents of a run."""

    config: Config
    folder: Path  # of its metrics, versions and summary
    name: str = ""  # for people, if there are several
    shared: Shared | None = None  # where its state is, if several agents share one


def train(
    planned: Sequence[Planned],
    compile_run: Callable[[bool], Compiled],
    session: Session,
    folder: Path,
    mesh: Mesh,
    say: Say,
    callbacks: Callbacks | None,
    make_evaluator: MakeEvaluator,
) -> list[Result | ValueError]:
    """Trains agents with one program until their budget is spent or a signal asks for a stop; returns how each ended.

    A signal saves the run at the end of the chunk. In the final matches, all but Ctrl-C raise `interrupt.Stopped`.

    Args:
      planned: usually one agent. In process 0, the caller has opened their folders (`run_directory.opened`).
      compile_run: whether the run is new -> its compiled program.
      folder: the parent of the run's checkpoints.
      say: called with each line for the user; if it is `print`, a terminal shows a live table.
      callbacks: a user's functions, called with every record after it is written. An exception in one ends the run like
        Ctrl-C, and is raised after the run is saved.
      make_evaluator: makes an agent's `Evaluator`.

    Raises ValueError if the budget ends before the first update, all agents diverge, the disk is full, or the
    checkpoint is of another configuration. The last good checkpoint is kept.
    """
    callbacks = callbacks or Callbacks()
    with (
        Interrupt() as interrupt,
        Checkpointer(folder / run_directory.CHECKPOINTS) as checkpoints,
        ExitStack() as opened,
    ):
        start = time.perf_counter()
        steps = checkpoint_steps(checkpoints.directory) if session.resume else []  # none if the run ended before a save
        (newest,) = processes.from_first(np.array([steps[-1] if steps else -1])).tolist()
        is_new = newest < 0
        iteration = max(newest, 0)
        if is_new and session.resume and run_directory.read_summary(folder):
            raise ValueError(f"{folder} has a summary but no checkpoint to continue from; --overwrite starts it again")
        algorithm, init, abstract, abstract_params, program, plan, flops_ = compile_run(is_new)
        state = init() if is_new else checkpoints.restore(newest, abstract)
        del init  # and its compiled program, if any, of 20 MiB and more
        if processes.is_first():
            if session.overwrite and not session.resume:
                if interrupt.requested:  # keep the old run
                    raise Stopped
                run_directory.make_room(folder)
            # Only now, because flags that do not fit the checkpoint must not replace its config.
            for agent in planned:
                keep(agent, say)
        processes.check_shared(planned[0].folder / config_file.FILE)
        records = [last_record(agent.folder, up_to_iteration=iteration) for agent in planned]
        clock = Clock(max(records, key=lambda record: record.get("time/minutes", 0.0)))  # an agent may have ended early
        clock.seconds["compile"] += time.perf_counter() - start
        totals = [Totals(agent.config, record, flops_) for agent, record in zip(planned, records, strict=True)]
        measure_random_return(algorithm.environment, *totals, say=say)
        say(f"{'training' if is_new else f'continuing from iteration {iteration}'}; Ctrl-C saves and stops")
        where = local_mesh(mesh)
        members = []
        for agent, own in zip(planned, totals, strict=True):
            evaluator = make_evaluator(agent.config, algorithm, where, agent.folder, abstract_params, iteration)
            write = opened.enter_context(open_outputs(agent, session, iteration, callbacks))
            members.append(Member(agent.config, agent.folder, own, evaluator, write, agent.name))
        display = ProgressDisplay(say, [agent.name for agent in planned])
        profiler = ChunkProfiler(folder / run_directory.PROFILE if session.profile else None)
        run = Run(members, program, state, iteration, clock, checkpoints, display, profiler, mesh, plan.total)
        del state
        return train_to_end(run, session, interrupt, callbacks, say)


def train_to_end(
    run: Run, session: Session, interrupt: Interrupt, callbacks: Callbacks, say: Say
) -> list[Result | ValueError]:
    """Loops until the run or the session is over, and plays the final matches if the run is."""
    first = run.members[0]
    folder = run.members[0].folder
    tasks = first.evaluator.compilations() if processes.is_first() else []
    with in_background(tasks) as matches:
        with interrupt.by_ctrl_c(), run.display, run.profiler:
            loop(
                run,
                matches=matches,
                stop_requested=lambda: interrupt.requested or callbacks.error is not None,
                save_minutes=session.checkpoint_minutes,
            )
        run.checkpoints.wait()  # before the summary, which says that there is a checkpoint
        processes.part()
        if not processes.is_first():
            return [Result({}, interrupted=False)]
        if session.profile:
            say(run.profiler.report(run.program.text()))
        summaries = [run.summarise(member) for member in run.members]
        callbacks.raise_error(folder)
        if not (is_stopped := interrupt.requested):
            interrupt.nothing_to_save()
            budget.check_learned(run.config, run.spent(first))
            say("training is over and saved" + ("; now the final matches" if first.evaluator.has_matches else ""))
            with run.clock.measure("compile"):
                matches.result()
            summaries = [run.conclude(index) for index in range(len(run.members))]
            callbacks.raise_error(folder)
        ends = zip(run.members, summaries, strict=True)
        return [member.failure or Result(summary, is_stopped, interrupt.by_system) for member, summary in ends]


def keep(agent: Planned, say: Say) -> None:
    """Writes the files that make an agent's folder a run's, and records its Python files as trusted (`own.trust`)."""
    config = agent.config
    folder = agent.folder
    folder.mkdir(exist_ok=True)
    config_file.save(config, folder)
    run_directory.reopen(folder)
    if agent.shared:
        run_directory.share(folder, agent.shared)
        agent.shared.folder.mkdir(exist_ok=True)
    file = config.algorithm.file
    if file and file != IN_PYTHON:  # a copy to read and to tell runs apart, which never runs
        write_whole(folder / run_directory.ALGORITHM, python_file.source_that_ran(file))
    if problem := trust.note(config.own_files.values()):
        say(problem)


def open_outputs(
    agent: Planned, session: Session, iteration: int, callbacks: Callbacks
) -> AbstractContextManager[Callable[[Record], None]]:
    """A function that gives an agent's record to the disk and to a user's functions; process 0 only."""
    if not processes.is_first():
        return nullcontext(lambda record: None)
    return open_metrics(
        agent.folder,
        resume_from=iteration,
        tensorboard=session.tensorboard,
        wandb_config=asdict(agent.config) if session.wandb else None,
        callbacks=callbacks,
    )


@contextmanager
def in_background(tasks: Sequence[Callable[[], None]]) -> Iterator[Future]:
    """Calls tasks one after another in a thread; on leaving, waits for the current task and skips the others."""
    leaving = threading.Event()

    def call_all() -> None:
        for task in tasks:
            if not leaving.is_set():
                task()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="background") as thread:
        try:
            yield thread.submit(call_all)
        finally:
            leaving.set()
