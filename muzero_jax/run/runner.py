"""The thin host loop: run the one program chunk after chunk; between chunks write, evaluate, save, and heed Ctrl-C.

The host decides *when* to evaluate and save by the clock, but neither touches the state: a run's parameters do not
depend on the clock, and a resumed run equals an unbroken one bit for bit.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax.arithmetic import devices, precision
from muzero_jax.evaluation.arena import Arena, Summary
from muzero_jax.evaluation.progress import Versions
from muzero_jax.run import profiling
from muzero_jax.run.accounting import Clock, Interrupt, Totals
from muzero_jax.run.assembly import assemble
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.memory import Meter
from muzero_jax.run.metrics import Record, last_record, open_metrics, wandb_writer
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.storage.config import Config
from muzero_jax.storage.files import write_whole
from muzero_jax.training import Parts
from muzero_jax.types import Metrics, TrainState

Program = Callable[[TrainState], tuple[TrainState, Metrics]]


class Schedule:
    """Says when the clock has gone on by another `minutes`; never, if that is 0."""

    def __init__(self, minutes: float, now: float):
        self._minutes, self._last = minutes, now

    def due(self, now: float) -> bool:
        """True once per interval."""
        if self._minutes <= 0 or now - self._last < self._minutes:
            return False
        self._last = now
        return True


class Result(NamedTuple):
    """How a session ended."""

    summary: dict[str, Any]  # what summary.json holds
    interrupted: bool  # by Ctrl-C; then nothing was evaluated at the end


Start = tuple[int, TrainState | None, Record]
"""The iteration, the state (None: one is yet to be made), and the newest metrics, whose counts and times go on."""
NEW: Start = 0, None, {}


def train(
    config: Config,
    session: Session,
    run_dir: Path,
    mesh: Mesh,
    say: Callable[[str], None],
    parts: Parts | None = None,
) -> Result:
    """Trains until the clock, `max_iterations` or Ctrl-C says stop, then measures how strong the agent has become.

    `parts` are a game, a network or an algorithm of one's own, in place of what the config says.

    Raises ValueError, in one sentence, for a loss that is no longer finite, a full disk, or a checkpoint of another
    configuration. The last good checkpoint is kept.
    """
    start = time.perf_counter()
    saves = session.checkpoint_minutes > 0 or config.evaluation.interval_minutes > 0
    parts, init, abstract, program, plan = assemble(config, mesh, say, saves=saves, parts=parts)
    versions = Versions(config, Arena(config, parts, mesh), run_dir, abstract.learner.params)
    if config.evaluation.interval_minutes > 0:
        say("compiling the matches")
        versions.compile()
    meter = Meter(list(mesh.devices.flat))  # after compiling, which takes more than the run
    seconds_to_compile = time.perf_counter() - start
    if session.overwrite and not session.resume:
        run_directory.make_room(run_dir)
    with Checkpointer(run_dir / run_directory.CHECKPOINTS) as checkpoints:
        iteration, state, record = find_start(checkpoints, abstract, run_dir) if session.resume else NEW
        # Only now: flags that do not fit the checkpoint must not replace the config that it was made with.
        configs.save(config, run_dir)
        versions.ladder.load(iteration)
        clock, totals = Clock(record), Totals(config, record)
        clock.seconds["compile"] += seconds_to_compile
        others = [wandb_writer(run_dir, config=asdict(config))] if session.wandb else []
        with open_metrics(run_dir, resume_from=iteration, tensorboard=session.tensorboard, others=others) as write:
            say(f"{'training' if state is None else f'going on from iteration {iteration}'}; Ctrl-C saves and stops")
            with clock.measure("compile"):
                state = init() if state is None else state
                del init  # and with it the program, if there was need of one: 20 MiB and more
            reporter = Reporter(write, ProgressDisplay(config.minutes, config.max_iterations), clock)
            profiler = ChunkProfiler(run_dir / profiling.DIRECTORY if session.profile else None)
            loop = Loop(config, session, program, versions, checkpoints, reporter, totals, profiler)
            state, iteration, interrupted = loop.run(state, iteration)
            peak = meter.peak  # before the final matches, which nobody planned
            if session.profile:
                say(profiler.report(program.as_text()))
            if interrupted:
                return Result({}, interrupted=True)
            say("training is over and saved; now the final matches")
            strength, seconds = loop.measure_fully(state, iteration)
    held = {"planned": plan.total, "peak": peak}  # bytes per device
    summary = {"iteration": iteration, "strength": strength, "elo": versions.ladder.by_iteration(), "memory": held}
    summary |= describe_machine(config, mesh) | totals.summary(clock.seconds["train"])
    summary["seconds"] = split_time(clock, totals, iteration) | {"final matches": seconds}
    write_whole(run_dir / "summary.json", json.dumps(summary, indent=2))
    return Result(summary, interrupted=False)


def find_start(checkpoints: Checkpointer, abstract: TrainState, run_dir: Path) -> Start:
    """The newest intact checkpoint with its metrics; ValueError if there is none but metrics tell that there was."""
    restored = checkpoints.restore_latest(abstract)
    if restored is not None:
        return *restored, last_record(run_dir, up_to_iteration=restored[0])
    if last_record(run_dir, up_to_iteration=sys.maxsize):
        raise ValueError(f"{run_dir} has metrics but no checkpoint to go on from; --overwrite starts it anew")
    return NEW


def describe_machine(config: Config, mesh: Mesh) -> dict[str, str]:
    """The devices of a run, and which precision "auto" meant there."""
    compute_dtype = precision.resolve(config.network.compute_dtype).compute_dtype
    return {"device": devices.describe_device(mesh.size), "precision": compute_dtype}


def split_time(clock: Clock, totals: Totals, iteration: int) -> dict[str, float]:
    """Seconds by purpose; self-play's share of the one program is estimated from the time in which the ring filled."""
    program = clock.seconds["train"]
    parts = {"self-play and learning": program}
    if self_play := min(totals.self_play_seconds_per_iteration * iteration, program):
        parts = {"self-play": self_play, "learning": program - self_play}
    return parts | {"evaluation": clock.seconds["evaluate"], "compilation": clock.seconds["compile"]}


class Reporter(NamedTuple):
    """Where records go: to the file and to the screen."""

    write: Callable[[Record], None]
    display: ProgressDisplay
    clock: Clock

    def report(self, record: Record) -> None:
        """Writes and shows one record, with the clock added."""
        record = record | self.clock.record()
        self.write(record)
        self.display.update(record)


class Loop(NamedTuple):
    """The chunks of one session, and what happens between them."""

    config: Config
    session: Session
    program: Program
    versions: Versions
    checkpoints: Checkpointer
    reporter: Reporter
    totals: Totals
    profiler: ChunkProfiler

    def run(self, state: TrainState, iteration: int) -> tuple[TrainState, int, bool]:
        """Runs chunks until it is time to stop, then saves.

        Returns the last state, its iteration, and whether Ctrl-C was pressed.
        """
        clock = self.reporter.clock
        evaluations = Schedule(self.config.evaluation.interval_minutes, clock.minutes)
        saves = Schedule(self.session.checkpoint_minutes, clock.minutes)
        with self.reporter.display, Interrupt() as interrupt, self.profiler:
            if iteration == 0 and self.config.evaluation.interval_minutes > 0:
                self.reporter.report({"iteration": 0} | self._evaluate(state, 0))
            saved = False
            while not (interrupt.requested or self._finished(iteration)):
                state, record = self._chunk(state)
                iteration += self.config.iterations_per_chunk
                check_finite(record, iteration)
                evaluate = evaluations.due(clock.minutes) or self._finished(iteration)
                if evaluate and not interrupt.requested:
                    self.profiler.stop()
                    record |= self._evaluate(state, iteration)
                self.reporter.report({"iteration": iteration} | record)
                saved = saves.due(clock.minutes) or evaluate
                if saved:
                    self.checkpoints.save(iteration, state)
            if not saved:
                self.checkpoints.save(iteration, state)
        return state, iteration, interrupt.requested

    def measure_fully(self, state: TrainState, iteration: int) -> tuple[dict[str, Summary], float]:
        """Plays the matches of a run's end and writes their scores; returns them and the seconds that they took."""
        start = time.perf_counter()
        strength = self.versions.measure_fully(state.learner.params, iteration)
        seconds = time.perf_counter() - start
        scores = {f"eval/{spec}": summary["score"] for spec, summary in strength.items()}
        record = {"iteration": iteration} | self.totals.record() | self.reporter.clock.record() | scores
        self.reporter.write(record)
        return strength, seconds

    def _finished(self, iteration: int) -> bool:
        if iteration == 0:  # compilation may have eaten the whole budget; a run learns something all the same
            return False
        at_limit = self.config.max_iterations is not None and iteration >= self.config.max_iterations
        return at_limit or self.reporter.clock.minutes >= self.config.minutes

    def _chunk(self, state: TrainState) -> tuple[TrainState, Record]:
        seconds = self.reporter.clock.seconds
        before = seconds["train"]
        with self.profiler.chunk(), self.reporter.clock.measure("train"):
            state, metrics = self.program(state)
            metrics = jax.device_get(metrics)
        record = self.totals.add(metrics, seconds["train"] - before)
        if "train/loss" in record:
            self.profiler.warmed_up()
        return state, record

    def _evaluate(self, state: TrainState, iteration: int) -> Record:
        with self.reporter.clock.measure("evaluate"):
            return self.versions.measure(state.learner.params, iteration)


def check_finite(record: Record, iteration: int) -> None:
    """Raises ValueError if learning has diverged; called before anything is saved, so no bad checkpoint is written."""
    for name in ("train/loss", "train/gradient_norm", "train/parameter_norm"):
        if not math.isfinite(record.get(name, 0.0)):
            raise ValueError(
                f"{name} is not finite at iteration {iteration}: training has diverged and stops. Checkpoints "
                "saved so far are good; go on from the last with --resume and a lower --optimiser.learning-rate"
            )
