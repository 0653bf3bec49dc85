"""The host's loop: asks for chunk after chunk of the one program, and says when to evaluate, save and stop.

It decides that by the clock. The program learns one thing from it: how much of the budget is spent (`budget.progress`).
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.run import budget, following, heartbeat, processes
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.background import Background
from muzero_jax.run.driver import Chunk, Held, Steps
from muzero_jax.run.evaluator import Evaluator
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.metrics import Record
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.report import Reporter
from muzero_jax.run.session import Session
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.storage.config import Config


class Diverged(ValueError):
    """A loss is no longer finite; the text says where, and what to do."""


class Timer:
    """Says when the clock has gone on by another `minutes`; never, if that is 0."""

    def __init__(self, minutes: float, now: float):
        self._minutes, self._last = minutes, now

    def due(self, now: float) -> bool:
        """True once per interval."""
        if self._minutes <= 0 or now - self._last < self._minutes:
            return False
        self._last = now
        return True


class Loop(NamedTuple):
    """The chunks of one session, and what happens between them."""

    config: Config
    session: Session
    run_dir: Path
    held: Held
    evaluator: Evaluator
    compiling: Background  # the matches
    checkpoints: Checkpointer
    reporter: Reporter
    profiler: ChunkProfiler
    interrupt: Interrupt
    sharers: int = 1  # the runs that share its clock, this one included

    def run(self, iteration: int) -> Steps:
        """Asks for chunks until it is time to stop, then saves; returns the iteration of the last.

        A chunk's record is written before its checkpoint, and so totals go on from a checkpoint whenever the run ends.
        """
        clock = self.clock
        # Orbax has all processes take part where one keeps a version, so several play no matches before the end.
        evaluates = self.config.evaluation.interval_minutes > 0 and processes.count() == 1
        # A new run is evaluated as soon as the matches are compiled: early on, and then at every interval.
        evaluations = Timer(self.config.evaluation.interval_minutes, clock.minutes if iteration else -math.inf)
        saves = Timer(self.session.checkpoint_minutes, clock.minutes)
        interrupt, callbacks = self.interrupt, self.reporter.callbacks
        with self.reporter.display, self.profiler:
            if iteration == 0 and evaluates:
                self.reporter.report({"iteration": 0} | self.evaluator.begin(self.held.params))
            saved = iteration in checkpoint_steps(self.checkpoints.directory)
            while not (interrupt.requested or callbacks.error or self._is_over(iteration, clock.minutes)):
                chunk = yield budget.progress(self.config, iteration, clock.minutes)
                if chunk is None:
                    break
                iteration += self.config.iterations_per_chunk
                record = self._account(chunk)
                check_finite(record, iteration, self.checkpoints)
                is_last = self._is_over(iteration, chunk.minutes)
                evaluate = evaluates and (is_last or chunk.is_typical and evaluations.due(chunk.minutes))
                self.reporter.report({"iteration": iteration} | record)
                saved = saves.due(chunk.minutes) or evaluate
                if saved:  # before an evaluation, which could fail
                    self._save(iteration)
                if evaluate and not (interrupt.requested or callbacks.error):
                    self._evaluate(iteration)
                if evaluate and not is_last:
                    self.checkpoints.wait()
                    self.reporter.conclude(iteration)
            if not saved:
                self._save(iteration)
        return iteration

    def finish(self, iteration: int) -> dict[str, Any]:
        """Plays the matches of a run's end; returns the summary."""
        heartbeat.phase("the final matches")
        self._await_matches()
        params = processes.local(self.held.params)
        with self.clock.measure("finish"):
            found, scores = self.evaluator.conclude(params, iteration)
        self.reporter.write(self.reporter.spent(iteration) | scores)
        return self.reporter.conclude(iteration, found)

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return self.reporter.clock

    @property
    def totals(self) -> Totals:
        """The work of the run so far."""
        return self.reporter.totals

    def _is_over(self, iteration: int, minutes: float) -> bool:
        return budget.spent(self.config, self.reporter.spent(iteration) | {"time/minutes": minutes}) is not None

    def _account(self, chunk: Chunk) -> Record:
        record = self.totals.add(chunk.metrics, chunk.seconds)
        if not chunk.is_typical:
            self.reporter.meter.restart()  # compiling takes more memory than the run
        elif "train/loss" in record:
            self.profiler.warmed_up()
        return record

    def _save(self, iteration: int) -> None:
        heartbeat.phase("saving")
        if processes.count() > 1:
            processes.tell(following.SAVE, iteration)
        self.checkpoints.save(iteration, self.held.whole())

    def _evaluate(self, iteration: int) -> None:
        self.profiler.stop()
        heartbeat.phase("an evaluation")
        self._await_matches()
        with self.clock.measure("evaluate"):
            strength = self.evaluator.measure(self.held.params, iteration)
        if strength:
            self.reporter.report(self.reporter.spent(iteration) | strength)

    def _await_matches(self) -> None:
        """Waits until the matches are compiled; raises what went wrong with that."""
        if not self.compiling.is_done:
            self.reporter.say("waiting for the matches to compile")
        with self.clock.measure("compile"):
            self.compiling.finish()


def check_finite(record: Record, iteration: int, checkpoints: Checkpointer) -> None:
    """Raises Diverged if learning has; called before anything is saved, so no bad checkpoint is written."""
    terms = [name for name in record if name.startswith("train/") and name.endswith("_loss")]  # first: they say which
    for name in (*terms, "train/loss", "train/gradient_norm", "train/parameter_norm"):
        if math.isfinite(record.get(name, 0.0)):
            continue
        checkpoints.wait()
        remedy = "nothing was saved yet; begin anew with --overwrite"
        if checkpoint_steps(checkpoints.directory):
            remedy = "checkpoints saved so far are good; go on from the last with --resume"
        raise Diverged(
            f"{name} is not finite at iteration {iteration}: training has diverged and stops; {remedy} and a lower "
            "--optimiser.learning-rate"
        )
