"""The thin host loop: run the one program chunk after chunk; between chunks write, evaluate, save, and heed Ctrl-C.

The host decides *when* to evaluate and save by the clock, but neither touches the state: a run's parameters do not
depend on the clock, and a resumed run equals an unbroken one bit for bit.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax.arithmetic import devices, precision
from muzero_jax.evaluation.arena import Arena
from muzero_jax.evaluation.progress import Versions
from muzero_jax.run import profiling
from muzero_jax.run.accounting import Clock, Interrupt, Totals
from muzero_jax.run.assembly import assemble
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.memory import Meter
from muzero_jax.run.metrics import MetricsWriter, Record, last_record, wandb_writer
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.storage.config import Config
from muzero_jax.storage.files import write_whole
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


def train(config: Config, run_dir: Path, mesh: Mesh, say: Callable[[str], None]) -> Result:
    """Trains until the clock, `max_iterations` or Ctrl-C says stop, then measures how strong the agent has become.

    Raises ValueError in one sentence where the user can do something about it: a loss that stopped being finite, a
    disk that is full, a checkpoint of another configuration. The last good checkpoint is kept.
    """
    start = time.perf_counter()
    parts, init, abstract, program, plan = assemble(config, mesh, say)
    versions = Versions(config, Arena(config, parts, mesh), run_dir, abstract.learner.params)
    if config.evaluation.interval_minutes > 0:
        say("compiling the matches")
        versions.compile()  # before the meter, so that what it sees are a run's arrays and not its programs
    meter = Meter(list(mesh.devices.flat))
    seconds_to_compile = time.perf_counter() - start
    run_directory.make_room(config, run_dir)
    with Checkpointer(run_dir / run_directory.CHECKPOINTS) as checkpoints:
        restored = checkpoints.restore_latest(abstract) if config.resume else None
        if config.resume and restored is None and last_record(run_dir, up_to_iteration=sys.maxsize):
            raise ValueError(f"{run_dir} has metrics but no checkpoint to go on from; --overwrite starts it anew")
        iteration = restored[0] if restored else 0
        # Only now: flags that do not fit the checkpoint must not replace the config that it was made with.
        configs.save(replace(config, resume=False, overwrite=False, profile=False), run_dir)
        record = last_record(run_dir, up_to_iteration=iteration) if restored else {}
        versions.ladder.load(iteration)
        clock, totals = Clock(record), Totals(config, record)
        clock.seconds["compile"] += seconds_to_compile
        others = [wandb_writer(run_dir, config=asdict(config))] if config.wandb else []
        with MetricsWriter(run_dir, resume_from=iteration, tensorboard=config.tensorboard, others=others) as writer:
            with clock.measure("compile"):
                state = restored[1] if restored else init()
                del init  # and with it the program, if there was need of one: 20 MiB and more
            begun = f"going on from iteration {iteration}" if restored else "training"
            say(f"{begun}; Ctrl-C saves and stops")
            profiler = ChunkProfiler(run_dir / profiling.DIRECTORY if config.profile else None)
            with ProgressDisplay(config.minutes, config.max_iterations) as display, Interrupt() as interrupt, profiler:
                reporter = Reporter(writer, display, clock)
                loop = Loop(config, program, versions, checkpoints, reporter, totals, profiler)
                state, iteration = loop.run(state, iteration, interrupt)
                peak = meter.peak  # before the final matches, which nobody planned
            if config.profile:
                say(profiler.report(program.as_text()))
            if interrupt.requested:
                return Result({}, interrupted=True)
            say("training is over and saved; now the final matches")
            start = time.perf_counter()
            strength = versions.measure_fully(state.learner.params, iteration)
            final_seconds = time.perf_counter() - start
            scores = {f"eval/{spec}": summary["score"] for spec, summary in strength.items()}
            writer.write({"iteration": iteration} | totals.record() | clock.record() | scores)
    summary = {"iteration": iteration, "strength": strength, "elo": versions.ladder.by_iteration()}
    summary["device"] = devices.describe_device(mesh.size)
    summary["precision"] = precision.resolve(config.network.compute_dtype).compute_dtype  # what "auto" meant there
    summary["memory"] = {"planned": plan.total, "peak": peak}  # bytes per device
    seconds = split_time(clock, totals, iteration) | {"final matches": final_seconds}
    summary |= {"seconds": seconds} | totals.summary(clock.seconds["train"])
    write_whole(run_dir / "summary.json", json.dumps(summary, indent=2))
    return Result(summary, interrupted=False)


def split_time(clock: Clock, totals: Totals, iteration: int) -> dict[str, float]:
    """Seconds by purpose; self-play's share of the one program is the estimate of `Totals`."""
    self_play = min(totals.self_play_seconds_per_iteration * iteration, clock.seconds["train"])
    return {
        "self-play": self_play,
        "learning": clock.seconds["train"] - self_play,
        "evaluation": clock.seconds["evaluate"],
        "compilation": clock.seconds["compile"],
    }


class Reporter(NamedTuple):
    """Where records go: to the file, and before the user's eyes."""

    writer: MetricsWriter
    display: ProgressDisplay
    clock: Clock

    def report(self, record: Record) -> None:
        """Writes and shows one record, with the clock added."""
        record = record | self.clock.record()
        self.writer.write(record)
        self.display.update(record)


class Loop(NamedTuple):
    """The chunks of one session, and what happens between them."""

    config: Config
    program: Program
    versions: Versions
    checkpoints: Checkpointer
    reporter: Reporter
    totals: Totals
    profiler: ChunkProfiler

    def run(self, state: TrainState, iteration: int, interrupt: Interrupt) -> tuple[TrainState, int]:
        """Runs chunks until it is time to stop, then saves; returns the last state and its iteration."""
        clock = self.reporter.clock
        evaluations = Schedule(self.config.evaluation.interval_minutes, clock.minutes)
        saves = Schedule(self.config.checkpoint_minutes, clock.minutes)
        if iteration == 0 and self.config.evaluation.interval_minutes > 0:
            self.reporter.report({"iteration": 0} | self._evaluate(state, 0))
        saved_at = None
        while not (interrupt.requested or self._finished(iteration)):
            state, record = self._chunk(state)
            iteration += self.config.iterations_per_chunk
            check_finite(record, iteration)
            if "train/loss" in record:
                self.profiler.warmed_up()
            evaluate = evaluations.due(clock.minutes) or self._finished(iteration)
            if evaluate and not interrupt.requested:
                self.profiler.stop()
                record |= self._evaluate(state, iteration)
            self.reporter.report({"iteration": iteration} | record)
            if saves.due(clock.minutes) or evaluate:
                self.checkpoints.save(iteration, state)
                saved_at = iteration
        if saved_at != iteration:
            self.checkpoints.save(iteration, state)
        return state, iteration

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
        return state, self.totals.add(metrics, seconds["train"] - before)

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
