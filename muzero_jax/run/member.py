"""A run whose program is ready: what its loop writes to is opened here, and the run concluded.

It has the program to itself, or is a member of a population that shares one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from jax.sharding import Mesh

from muzero_jax.games import random_play
from muzero_jax.ops import devices, precision
from muzero_jax.run import budget, heartbeat
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.background import Background
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.driver import Held
from muzero_jax.run.evaluator import Evaluator
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.loop import Loop
from muzero_jax.run.memory import Meter, Plan
from muzero_jax.run.metrics import open_metrics, wandb_writer
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.report import Reporter
from muzero_jax.run.session import Session
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment

RANDOM_GAMES, MOST_MOVES = 256, 1000
"""Games of random play whose mean return stands beside self-play's, and where they are broken off."""


class Result(NamedTuple):
    """How a session ended."""

    summary: dict[str, Any]  # what summary.json holds
    interrupted: bool  # by Ctrl-C, SIGTERM or SIGHUP; then the final matches were not played
    by_system: bool = False  # by one of the latter


class Host(NamedTuple):
    """The host's side of a program that is ready to run: what the runs that it trains share."""

    session: Session
    mesh: Mesh
    plan: Plan
    interrupt: Interrupt
    clock: Clock
    compiling: Background
    profiler: ChunkProfiler


class Member(NamedTuple):
    """A run that is ready to begin."""

    config: Config
    run_dir: Path
    say: Callable[[str], None]
    held: Held
    evaluator: Evaluator
    checkpoints: Checkpointer
    callbacks: Callbacks
    totals: Totals


@contextmanager
def open_loop(host: Host, member: Member, iteration: int, sharers: int = 1) -> Iterator[Loop]:
    """The loop of one run, with everything open that it writes to."""
    config, session, run_dir = member.config, host.session, member.run_dir
    others = [wandb_writer(run_dir, config=asdict(config))] if session.wandb else []
    others.append(member.callbacks)
    with open_metrics(run_dir, resume_from=iteration, tensorboard=session.tensorboard, others=others) as write:
        reporter = Reporter(
            run_dir,
            write,
            member.say,
            ProgressDisplay(config.minutes, budget.last_iteration(config), say=member.say, sharers=sharers),
            member.callbacks,
            host.clock,
            member.totals,
            member.evaluator,
            Meter(host.mesh.local_devices),
            describe_machine(config, host.mesh) | {"planned": host.plan.total},
        )
        yield Loop(
            config,
            session,
            run_dir,
            member.held,
            member.evaluator,
            host.compiling,
            member.checkpoints,
            reporter,
            host.profiler,
            host.interrupt,
            sharers,
        )


def conclude(loop: Loop, iteration: int, program: Any) -> Result:
    """Says how a session ended, and how strong the agent is if the run is over."""
    config, reporter, interrupt = loop.config, loop.reporter, loop.interrupt
    heartbeat.phase(heartbeat.ENDED)
    reporter.meter.stop()
    if loop.session.profile:
        reporter.say(loop.profiler.report(program.as_text()))
    loop.checkpoints.wait()  # a summary says that there is a checkpoint
    summary = reporter.conclude(iteration)
    reporter.callbacks.raise_error(loop.run_dir)
    if interrupt.requested:
        return Result(summary, interrupted=True, by_system=interrupt.by_system)
    interrupt.nothing_to_save()
    budget.check_learned(config, reporter.spent(iteration))
    reporter.say("training is over and saved" + ("; now the final matches" if loop.evaluator.has_matches else ""))
    summary = loop.finish(iteration)
    reporter.callbacks.raise_error(loop.run_dir)
    return Result(summary, interrupted=False)


def note_random_return(environment: Environment, *runs: Totals) -> None:
    """Measures the mean return of random play in a game for one, once in a run that plays."""
    lacking = [totals for totals in runs if totals.plays and totals.random_return is None]
    if lacking and environment.num_players == 1:
        found = random_play.play(environment, num_games=RANDOM_GAMES, max_moves=MOST_MOVES)
        for totals in lacking:
            totals.random_return = random_play.mean_return(found)


def describe_machine(config: Config, mesh: Mesh) -> dict[str, str]:
    """The devices of a run, and which precision "auto" meant there."""
    compute_dtype = precision.resolve(config.network.compute_dtype).compute_dtype
    return {"device": devices.describe_device(mesh.size), "precision": compute_dtype}
