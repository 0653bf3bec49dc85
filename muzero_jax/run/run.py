"""A run in progress: its agents' state on the devices, the program that advances it, and the run's records.

Usually there is one agent. Several that are trained as one program (`apps.study.together`) share the state, the clock
and the checkpoints; each has its own metrics, evaluations and summary.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm
from muzero_jax.config.config import Config
from muzero_jax.games import random_play
from muzero_jax.ops import precision
from muzero_jax.own.files import write_whole
from muzero_jax.run import budget, charts, memory, processes
from muzero_jax.run.accounting import Clock, Totals, split_time
from muzero_jax.run.compiled import Program
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.machine import describe_device
from muzero_jax.run.metrics import RANDOM_RETURN, Record, read_records
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from muzero_jax.types import Environment, Params, TrainState

RANDOM_GAMES, MOST_MOVES = 64, 3000
"""Random games whose mean return is compared with self-play's (256 of Blinky took 4 minutes), and their most moves."""


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


MakeEvaluator = Callable[[Config, Algorithm, Mesh, Path, Params, int], Evaluator]
"""(config, algorithm, mesh, run's folder, shapes of the weights, iteration where the run continues) -> its evaluator"""


@dataclass
class Member:
    """One agent in training: its work so far, and where records of it go."""

    config: Config
    folder: Path
    totals: Totals
    evaluator: Evaluator
    write: Callable[[Record], None]  # gives a record to the disk and to a user's functions
    name: str = ""  # if there are several
    failure: Diverged | None = None


@dataclass
class Run:
    """Everything that the loop needs between two chunks."""

    members: Sequence[Member]
    program: Program
    state: TrainState
    iteration: int
    clock: Clock
    checkpoints: Checkpointer
    display: ProgressDisplay
    profiler: ChunkProfiler
    mesh: Mesh
    planned: int  # bytes per device
    saved: bool = field(init=False)

    def __post_init__(self):
        self.saved = self.iteration in checkpoint_steps(self.checkpoints.directory)

    @property
    def config(self) -> Config:
        """The config, of the first agent if there are several."""
        return self.members[0].config

    @property
    def failure(self) -> Diverged | None:
        """Why no agent is left to train; None if there is one."""
        return self.members[0].failure if all(member.failure for member in self.members) else None

    def chunk(self, progress: np.ndarray, *, is_typical: bool) -> None:
        """Runs the program once, and records each agent's metrics.

        `is_typical` says that nothing is being compiled at the same time, so that a profile may begin.
        """
        with self.profiler.chunk(), self.clock.measure("train"):
            self.state, metrics = self.program.advance(self.state, progress)
            agents = self.program.agents(jax.device_get(metrics))
        self.iteration = self.iteration + len(progress)
        self.saved = False
        for member, found in zip(self.members, agents, strict=True):
            if member.failure:
                continue
            record = member.totals.add(found, self.clock.last["train"])
            if name := not_finite(record):
                member.failure = Diverged(
                    f"{name} is not finite at iteration {self.iteration}: training has diverged; lower "
                    "--optimiser.learning-rate, and continue from the last checkpoint with --resume"
                )
                self.display.drop(member.name, str(member.failure))
                continue
            if "train/loss" in record and is_typical:
                self.profiler.warmed_up()
            self._report(member, record)

    def is_over(self) -> bool:
        """Whether a budget is spent; of several agents, the first to spend its own ends the run."""
        return any(budget.spent(member.config, self.spent(member)) is not None for member in self.members)

    def spent(self, member: Member) -> Record:
        """The work and the time of an agent so far."""
        return {"iteration": self.iteration} | member.totals.record | self.clock.record()

    def save(self) -> None:
        """Saves the state in the background, so that the next chunk need not wait."""
        self.checkpoints.save(self.iteration, self.state)
        self.saved = True

    def begin(self) -> None:
        """Keeps the untrained agents, whose Elo is 0."""
        for index, member in enumerate(self.members):
            if found := member.evaluator.begin(self.program.params(self.state, index)):
                self._report(member, self.spent(member) | found)

    def evaluate(self) -> None:
        """Evaluates the agents during training."""
        self.profiler.stop()
        for index, member in enumerate(self.members):
            if member.failure:
                continue
            with self.clock.measure("evaluate"):
                found = member.evaluator.measure(self.program.params(self.state, index), self.iteration)
            if found:
                self._report(member, self.spent(member) | found)

    def conclude(self, index: int) -> dict[str, Any]:
        """Plays an agent's final matches, if its game has any; returns its summary."""
        member = self.members[index]
        if member.failure:
            return {}
        with self.clock.measure("finish" if member.evaluator.has_matches else "evaluate"):
            params = processes.local(self.program.params(self.state, index))
            found, scores = member.evaluator.conclude(params, self.iteration)
        member.write(self.spent(member) | scores)
        return self.summarise(member, found)

    def summarise(self, member: Member, found: dict[str, Any] | None = None) -> dict[str, Any]:
        """Draws an agent's curves, and writes and returns its `summary.json`.

        `found` are the entries of the final evaluation; None: the run is not finished.
        """
        config = member.config
        seconds = self.clock.seconds["train"]
        summary = {"iteration": self.iteration, "finished": found is not None, "strength": {}} | (found or {})
        summary |= {
            "elo": member.evaluator.ratings(),
            "memory": {"planned": self.planned, "peak": memory.peak(self.mesh.local_devices)},  # bytes a device
            "device": describe_device(self.mesh.size),
            "precision": precision.resolve(config.network.compute_dtype).compute_dtype,
        }
        summary |= member.totals.summary(seconds) | {"seconds": split_time(self.clock, member.totals)}
        if read_records(member.folder):
            charts.plot_curves(member.folder)
        # Written last, because it says that the run has ended, and then nothing may be missing.
        write_whole(member.folder / run_directory.SUMMARY, json.dumps(summary, indent=2))
        return summary

    def _report(self, member: Member, record: Record) -> None:
        """Writes and shows a record, with the clock added."""
        record = {"iteration": self.iteration} | record | self.clock.record()
        member.write(record)
        spent = budget.progress(member.config, self.iteration, self.clock.minutes)
        self.display.update(record, member.name, float(spent[0]))


def not_finite(record: Record) -> str | None:
    """The first metric of learning that is not finite; loss terms come first, because they name the head."""
    terms = [name for name in record if name.startswith("train/") and name.endswith("_loss")]
    names = (*terms, "train/loss", "train/gradient_norm", "train/parameter_norm")
    return next((name for name in names if not math.isfinite(record.get(name, 0.0))), None)


def measure_random_return(environment: Environment, *runs: Totals, say: Callable[[str], None]) -> None:
    """Measures random play's mean return in a single-player game, once for each run with self-play.

    There is none if random games do not end in time.
    """
    lacking = [totals for totals in runs if totals.plays and RANDOM_RETURN not in totals.record]
    if lacking and environment.num_players == 1:
        say(f"measuring the return of random play in {RANDOM_GAMES} games")
        found = random_play.play(environment, num_games=RANDOM_GAMES, max_moves=MOST_MOVES)
        if (mean := random_play.mean_return(found)) is not None:
            for totals in lacking:
                totals.record[RANDOM_RETURN] = mean
