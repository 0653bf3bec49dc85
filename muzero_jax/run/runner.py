"""Trains a run from its config: assembles it, loops, measures how strong the agent has become.

A run's parameters depend on the clock only where its budget does (`loop`), and a resumed run equals an unbroken one bit
for bit.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.ops import devices
from muzero_jax.own import trust
from muzero_jax.own.files import write_whole
from muzero_jax.run import following, heartbeat, processes, profiling
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.assembly import assemble
from muzero_jax.run.background import Background
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.driver import ChunkRunner, OneRun, drive
from muzero_jax.run.evaluator import MakeEvaluator
from muzero_jax.run.interrupt import Interrupt, Stopped
from muzero_jax.run.member import Host, Member, Result, conclude, note_random_return, open_loop
from muzero_jax.run.metrics import Record, last_record
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.program import Init
from muzero_jax.run.session import Session
from muzero_jax.run.sources import offline, warm_start
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.storage.config import Config
from muzero_jax.types import Params, TrainState

Start = tuple[int, TrainState | None, Record]
"""The iteration, the state (None: one is yet to be made), and the newest metrics, whose counts and times go on."""
NEW: Start = 0, None, {}


def train(
    config: Config,
    session: Session,
    run_dir: Path,
    mesh: Mesh,
    say: Callable[[str], None],
    algorithm: Algorithm | None = None,
    callbacks: Callbacks | None = None,
    *,
    make_evaluator: MakeEvaluator,
) -> Result:
    """Trains until the budget is spent or a signal asks for a stop, then measures how strong the agent has become.

    Ctrl-C, SIGTERM and SIGHUP let the chunk end, and save. After that the latter two raise `interrupt.Stopped`.

    Args:
      say: called with each line that is meant for a person; if it is `print`, a terminal gets a live table.
      algorithm: in place of the one that the config names, with its game and its network.
      callbacks: a user's functions, called with every record once it is written. What one raises ends the run like
        Ctrl-C, and comes through when the run is saved.
      make_evaluator: makes what judges the agent while it trains and at the end.

    Raises ValueError, in one sentence, for a folder in which another process trains, a budget that ended before the
    first update, a loss that is no longer finite, a full disk, or a checkpoint of another configuration. The last good
    checkpoint is kept.
    """
    leads = processes.is_first()
    with (
        Interrupt() as interrupt,
        ExitStack() as held,
        Checkpointer(run_dir / run_directory.CHECKPOINTS) as checkpoints,
    ):
        held.enter_context(folder_held(config, session, run_dir))
        heartbeat.phase("compiling")
        start = time.perf_counter()
        saves = session.checkpoint_minutes > 0 or config.evaluation.interval_minutes > 0
        is_new = not (session.resume and checkpoint_steps(checkpoints.directory))
        with processes.all_or_none():
            given, algorithm = algorithm, algorithm or algorithms.make(config)
            sources = open_sources(config, session, algorithm, given, say) if is_new else (None, None)
            run = assemble(config, mesh, say, saves=saves, verbose=session.verbose, algorithm=algorithm)
        init, abstract, program, plan, flops = run
        del run  # which would keep `init` in memory
        if leads and session.overwrite and not session.resume:
            if interrupt.requested:  # so the old run stays
                raise Stopped
            run_directory.make_room(run_dir)
        iteration, state, record = find_start(checkpoints, abstract, run_dir, say) if session.resume else NEW
        begins = state is None
        state = make_state(init, abstract, *sources) if state is None else state
        del init, sources  # and with it the program, if there was need of one: 20 MiB and more
        if not leads:
            following.follow(program, checkpoints, state, config.iterations_per_chunk)
            return Result({}, interrupted=False)
        held.enter_context(following.leading())
        # Only now: flags that do not fit the checkpoint must not replace the config that it was made with.
        keep_config(config, run_dir, say)
        say(f"{'training' if begins else f'going on from iteration {iteration}'}; Ctrl-C saves and stops")
        clock, totals = Clock(record), Totals(config, record, flops)
        clock.seconds["compile"] += time.perf_counter() - start
        note_random_return(algorithm.environment, totals)
        where, speak = (devices.local_mesh(mesh), run_dir), lambda *_: processes.tell(following.WAIT)
        evaluator = make_evaluator(config, algorithm, *where, abstract.learner.params, iteration, speak)
        compiling = held.enter_context(Background(evaluator.compilations()))
        run = OneRun(state)
        profiler = ChunkProfiler(run_dir / profiling.DIRECTORY if session.profile else None)
        host = Host(session, mesh, plan, interrupt, clock, compiling, profiler)
        member = Member(config, run_dir, say, run, evaluator, checkpoints, callbacks or Callbacks(), totals)
        return run_to_end(host, member, run, program, iteration)


def run_to_end(host: Host, member: Member, run: OneRun, program: Any, iteration: int) -> Result:
    """Loops until the run or the session is over, and concludes it."""
    with open_loop(host, member, iteration) as loop:
        run_chunk = ChunkRunner(partial(run.advance, program), host.clock, host.compiling, host.profiler)
        with host.interrupt.by_ctrl_c():
            (end,) = drive([loop.run(iteration)], run_chunk)
        if isinstance(end, ValueError):
            raise end
        return conclude(loop, end, program)


@contextmanager
def folder_held(config: Config, session: Session, run_dir: Path) -> Iterator[None]:
    """Keeps others from training in the folder; ValueError in each process of the run if it cannot train there."""
    with ExitStack() as held:
        with processes.all_or_none():
            if processes.is_first():
                wanted = {"resume": session.resume, "overwrite": session.overwrite, "sources": config.sources}
                held.enter_context(run_directory.opened(run_dir, **wanted))
        processes.check_shared(run_dir)
        yield


def open_sources(
    config: Config, session: Session, algorithm: Algorithm, given: Algorithm | None, say: Callable[[str], None]
) -> tuple[offline.Fill | None, Params | None]:
    """The sources of a new run: the buffer if it learns offline, and the weights that it begins with.

    `given` is the algorithm if a program gave it. Raises ValueError in one sentence if a source cannot be read or does
    not fit.
    """
    fill = offline.open_source(config, algorithm.environment, say) if config.offline else None
    if not config.init_from:
        return fill, None
    return fill, warm_start.open_source(config, algorithm.model, say, given=given, trust_code=session.trust_code)


def keep_config(config: Config, run_dir: Path, say: Callable[[str], None]) -> None:
    """Makes the folder a run's, and notes that its own Python files are this user's (`own.trust`)."""
    configs.save(config, run_dir)
    file = config.algorithm.file
    if file and file != configs.IN_PYTHON:  # to look at, and to tell runs apart; it is never run
        write_whole(run_dir / run_directory.ALGORITHM, Path(file).read_text(encoding="utf-8"))
    if problem := trust.note(config.own_files):
        say(problem)


def make_state(init: Init, abstract: TrainState, fill: offline.Fill | None, weights: Params | None) -> TrainState:
    """The first state of a run: with the buffer of its source if it learns offline, and with weights if it has them."""
    state = init()
    if weights is not None:
        state = state._replace(learner=warm_start.place(state.learner, weights, abstract.learner))
    if fill is None:
        return state
    state = state._replace(replay=None)  # type: ignore  # which frees its memory for the other
    return state._replace(replay=fill(abstract.replay))


def find_start(checkpoints: Checkpointer, abstract: TrainState, run_dir: Path, say: Callable[[str], None]) -> Start:
    """The newest intact checkpoint with its metrics; the beginning, if the run was stopped before its first save ended.

    Raises ValueError if there was a checkpoint, as a summary tells, and is no more.
    """
    restored = checkpoints.restore_latest(abstract)
    if restored is not None:
        return *restored, last_record(run_dir, up_to_iteration=restored[0], say=say)
    if run_directory.read_summary(run_dir):
        raise ValueError(f"{run_dir} has a summary but no checkpoint to go on from; --overwrite starts it anew")
    return NEW
