"""A run in progress: its state on the devices, the program that advances it, and its records.

`apps.start` makes it step by step, and `loop` drives it. Unless the budget is in minutes, weights do not depend on the
clock, so a resumed run is the same, bit for bit.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.session import Session
from muzero_jax.games import random_play
from muzero_jax.ops import precision
from muzero_jax.own import python_file, trust
from muzero_jax.own.files import write_whole
from muzero_jax.run import budget, charts, memory, processes
from muzero_jax.run.accounting import Clock, Totals, split_time
from muzero_jax.run.compiled import Init, Program, compile_agent
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.machine import describe_device
from muzero_jax.run.metrics import RANDOM_RETURN, Callbacks, Record, last_record, open_metrics, read_records
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.run.sizes import compile_sizes
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.types import Params, TrainState

RANDOM_GAMES, MOST_MOVES = 64, 3000
"""Random games whose mean return is compared with self-play's (256 of Blinky took 4 minutes), and their most moves."""

Say = Callable[[str], None]


class Diverged(ValueError):
    """A loss is no longer finite; the message says where, and what to do."""


class Result(NamedTuple):
    """How a session ended."""

    summary: dict[str, Any]  # the content of summary.json
    interrupted: bool  # by Ctrl-C, SIGTERM or SIGHUP, so there were no final matches
    by_system: bool = False  # by SIGTERM or SIGHUP


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates an agent by matches, during training and at its end (`apps.evaluation.progress.Versions`)."""

    has_matches: bool  # whether it plays any

    def compilations(self) -> Sequence[Callable[[], None]]:
        """Functions that compile its programs during the training, in the order in which they are needed."""
        ...

    def begin(self, params: Params) -> dict[str, float]:
        """Keeps the untrained weights; returns metrics `eval/...`."""
        ...

    def measure(self, params: Params, iteration: int) -> dict[str, float]:
        """Evaluates the weights after an iteration, and keeps them; returns metrics `eval/...`."""
        ...

    def conclude(self, params: Params, iteration: int) -> tuple[dict[str, Any], dict[str, float]]:
        """The final evaluation: entries of the summary, including `strength`, and metrics `eval/...`."""
        ...

    def ratings(self) -> dict[str, float]:
        """The Elo of every kept version, by iteration."""
        ...


@dataclass
class Run:
    """Everything that the loop needs between two chunks; the later fields follow once it is compiled (`begin`)."""

    config: Config
    folder: Path  # which this process has locked, if it is the first
    algorithm: Algorithm
    mesh: Mesh
    session: Session
    say: Say  # called with each line for the user; if it is `print`, a terminal shows a live table
    program: Program = field(init=False)
    state: TrainState = field(init=False)
    iteration: int = field(init=False)
    clock: Clock = field(init=False)
    totals: Totals = field(init=False)
    checkpoints: Checkpointer = field(init=False)
    evaluator: Evaluator = field(init=False)
    write: Callable[[Record], None] = field(init=False)
    display: ProgressDisplay = field(init=False)
    profiler: ChunkProfiler = field(init=False)
    saved: bool = field(init=False)
    failure: Diverged | None = None

    @property
    def params(self) -> Params:
        """The agent's present weights."""
        return self.state.learner.agent_params

    def newest_checkpoint(self) -> int | None:
        """The iteration from which the session continues; None: from the beginning, also if no save was reached.

        Raises ValueError for a finished run whose checkpoint is gone.
        """
        folder = self.folder / run_directory.CHECKPOINTS
        steps = checkpoint_steps(folder) if self.session.resume else []
        (newest,) = processes.from_first(np.array([steps[-1] if steps else -1])).tolist()
        if newest >= 0:
            return newest
        if self.session.resume and run_directory.read_summary(self.folder):
            raise ValueError(
                f"{self.folder} has a summary but no checkpoint to continue from; --overwrite starts it again"
            )
        return None

    def compile(self) -> Init:
        """Compiles the program, and returns what makes the first state.

        Raises ValueError, which names the flags to lower, if the run does not fit in memory.
        """
        compile_any = compile_sizes if self.config.board_sizes else compile_agent
        self.program, init = compile_any(self.config, self.algorithm, self.mesh, self.session, self.say)
        return init

    def write_files(self) -> None:
        """Writes the files that make the folder a run's, and records its Python files as trusted (`own.trust`)."""
        config_file.save(self.config, self.folder)
        run_directory.reopen(self.folder)
        if files := self.config.algorithm.own_files:  # a copy to read and to tell runs apart, which never runs
            source = b"\n".join(map(python_file.source_that_ran, files))
            write_whole(self.folder / run_directory.ALGORITHM, source)
        if problem := trust.note(self.config.own_files):
            self.say(problem)

    def begin(
        self,
        state: TrainState,
        iteration: int,
        checkpoints: Checkpointer,
        evaluator: Evaluator,
        write: Callable[[Record], None],
        *,
        started: float,
    ) -> None:
        """Makes the run ready for its first chunk.

        Args:
          state: of `iteration`. write: gives a record to the disk and to a user's functions (`open_records`).
          started: when the preparation began, by `time.perf_counter`.
        """
        record = last_record(self.folder, up_to_iteration=iteration)
        self.state = state
        self.iteration = iteration
        self.checkpoints = checkpoints
        self.evaluator = evaluator
        self.write = write
        self.saved = iteration in checkpoint_steps(checkpoints.directory)
        self.totals = Totals(self.config, record, self.program.flops)
        self.clock = Clock(record)
        self.clock.seconds["compile"] += time.perf_counter() - started
        self.display = ProgressDisplay(self.say)
        self.profiler = ChunkProfiler(self.folder / run_directory.PROFILE if self.session.profile else None)
        self.measure_random_return()

    def open_records(self, iteration: int, callbacks: Callbacks) -> AbstractContextManager[Callable[[Record], None]]:
        """A function that gives a record to the disk and to a user's functions; in process 0 only."""
        if not processes.is_first():
            return nullcontext(lambda record: None)
        return open_metrics(
            self.folder,
            resume_from=iteration,
            tensorboard=self.session.tensorboard,
            wandb_config=asdict(self.config) if self.session.wandb else None,
            callbacks=callbacks,
        )

    def chunk(self, progress: np.ndarray, *, is_typical: bool) -> None:
        """Runs the program once, and records its metrics.

        `is_typical` says that nothing is being compiled at the same time, so that a profile may begin.
        """
        before = self.clock.seconds["train"]
        with self.profiler.chunk(), self.clock.measure("train"):
            self.state, metrics = self.program.advance(self.state, progress)
            found = jax.device_get(metrics)
        self.iteration += len(progress)
        self.saved = False
        record = self.totals.add(found, self.clock.seconds["train"] - before)
        if name := not_finite(record):
            self.failure = Diverged(
                f"{name} is not finite at iteration {self.iteration}: training has diverged; lower "
                "--optimiser.learning-rate, and continue from the last checkpoint with --resume; muzero-jax doctor "
                "looks for other causes (docs/doctor.md)"
            )
            return
        if "train/loss" in record and is_typical:
            self.profiler.warmed_up()
        self._report(record)

    def is_over(self) -> bool:
        """Whether a budget is spent."""
        return budget.spent(self.config, self.spent()) is not None

    def spent(self) -> Record:
        """The work and the time so far."""
        return {"iteration": self.iteration} | self.totals.record | self.clock.record()

    def progress(self) -> np.ndarray:
        """`budget.progress` of the run."""
        return budget.progress(self.config, self.spent(), self.program.flops)

    def save(self) -> None:
        """Saves the state in the background, so that the next chunk need not wait."""
        self.checkpoints.save(self.iteration, self.state)
        self.saved = True

    def keep_untrained(self) -> None:
        """Keeps the untrained agent, whose Elo is 0."""
        if found := self.evaluator.begin(self.params):
            self._report(self.spent() | found)

    def evaluate(self) -> None:
        """Evaluates the agent during training."""
        self.profiler.stop()
        with self.clock.measure("evaluate"):
            found = self.evaluator.measure(self.params, self.iteration)
        if found:
            self._report(self.spent() | found)

    def conclude(self) -> dict[str, Any]:
        """Plays the final matches, if the game has any; returns the summary."""
        with self.clock.measure("finish" if self.evaluator.has_matches else "evaluate"):
            found, scores = self.evaluator.conclude(processes.local(self.params), self.iteration)
        self.write(self.spent() | scores)
        return self.summarise(found)

    def summarise(self, found: dict[str, Any] | None = None) -> dict[str, Any]:
        """Draws the curves, and writes and returns `summary.json`.

        `found` are the entries of the final evaluation; None: the run is not finished.
        """
        seconds = self.clock.seconds["train"]
        summary = {"iteration": self.iteration, "finished": found is not None, "strength": {}} | (found or {})
        summary |= {
            "elo": self.evaluator.ratings(),
            # bytes a device
            "memory": {"planned": self.program.plan.total, "peak": memory.peak(self.mesh.local_devices)},
            "device": describe_device(self.mesh.size),
            "precision": precision.resolve(self.config.network.compute_dtype).compute_dtype,
        }
        summary |= self.totals.summary(seconds) | {"seconds": split_time(self.clock, self.totals)}
        if read_records(self.folder):
            charts.plot_curves(self.folder)
        # Written last, because it says that the run has ended, and then nothing may be missing.
        write_whole(self.folder / run_directory.SUMMARY, json.dumps(summary, indent=2))
        return summary

    def _report(self, record: Record) -> None:
        """Writes and shows a record, with the clock added."""
        record = {"iteration": self.iteration} | record | self.clock.record()
        self.write(record)
        self.display.update(record, float(self.progress()[0]))

    def measure_random_return(self) -> None:
        """Measures random play's mean return in a single-player game, once for a run with self-play.

        There is none if random games do not end in time.
        """
        environment = self.algorithm.environment
        if environment.num_players > 1 or not self.totals.plays or RANDOM_RETURN in self.totals.record:
            return
        self.say(f"measuring the return of random play in {RANDOM_GAMES} games")
        found = random_play.play(environment, num_games=RANDOM_GAMES, max_moves=MOST_MOVES)
        if (mean := random_play.mean_return(found)) is not None:
            self.totals.record[RANDOM_RETURN] = mean


def not_finite(record: Record) -> str | None:
    """The first metric of learning that is not finite; loss terms come first, because they name the head."""
    terms = [name for name in record if name.startswith("train/") and name.endswith("_loss")]
    names = (*terms, "train/loss", "train/gradient_norm", "train/parameter_norm")
    return next((name for name in names if not math.isfinite(record.get(name, 0.0))), None)
