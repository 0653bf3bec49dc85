"""Runs the one program chunk after chunk for the loops that wait for it: one of a run, or one of each member.

A loop is a generator (`loop.Loop.run`). It yields whenever it wants a chunk, and gets what that brought.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

import jax
import numpy as np

from muzero_jax.run import following, heartbeat, processes
from muzero_jax.run.accounting import Clock
from muzero_jax.run.background import Background
from muzero_jax.run.profiling import ChunkProfiler
from muzero_jax.types import Metrics, Params, TrainState

Program = Callable[[TrainState, np.ndarray], tuple[TrainState, Metrics]]
Found = dict[str, np.ndarray]
"""The metrics of a chunk's iterations, on the host."""


class Chunk(NamedTuple):
    """The findings of a chunk. Loops that decide by these, and by no clock of their own, decide alike."""

    metrics: Found
    seconds: float
    minutes: float  # of the run when the chunk had ended
    is_typical: bool  # nothing was compiled beside it, and the matches are ready


Steps = Generator[np.ndarray, Chunk | None, int]
"""A loop under way: it gives the progress of a chunk, takes the chunk, or None where it must stop, and returns the
iteration at which it ended."""


class Held(Protocol):
    """The state of a run between two chunks, as its loop sees it."""

    @property
    def params(self) -> Params:
        """The weights, for matches."""
        ...

    def whole(self) -> TrainState:
        """All of it, for a checkpoint."""
        ...


class OneRun:
    """The state of a run that has the program to itself."""

    def __init__(self, state: TrainState):
        self._state = state

    @property
    def params(self) -> Params:
        """The weights."""
        return self._state.learner.params

    def whole(self) -> TrainState:
        """The state."""
        return self._state

    def advance(self, program: Program, progress: np.ndarray) -> list[Found]:
        """Runs a chunk, in all processes, and waits for it."""
        processes.tell(following.RUN_CHUNK)
        self._state, metrics = program(self._state, processes.from_first(progress))
        return [jax.device_get(metrics)]


class ChunkRunner(NamedTuple):
    """Runs and times chunks."""

    advance: Callable[[np.ndarray], Sequence[Found]]  # runs the program; the metrics of each loop
    clock: Clock
    compiling: Background  # the matches
    profiler: ChunkProfiler

    def __call__(self, progress: np.ndarray) -> list[Chunk]:
        """Runs a chunk; what it brought to each loop."""
        heartbeat.phase(heartbeat.CHUNK)
        with self.profiler.chunk(), self.clock.measure("train"):
            metrics = self.advance(progress)
        last, minutes, is_typical = self.clock.last["train"], self.clock.minutes, self.compiling.is_done
        return [Chunk(one, last, minutes, is_typical) for one in metrics]


def drive(loops: Sequence[Steps], run_chunk: Callable[[np.ndarray], Sequence[Chunk]]) -> list[int | ValueError]:
    """Runs loops in step until all have ended; returns the iteration at which each did, or its ValueError.

    The progress is the same for all: they share the clock and the iteration. Once one ends because its work is done or
    it shall stop, all others stop after the same number of chunks; a loop that fails leaves the others alone.
    """
    ends: dict[int, int | ValueError] = {}
    given: Sequence[Chunk | None] = [None] * len(loops)
    progress = np.zeros(0)
    while True:
        for index, loop in enumerate(loops):
            if index in ends:
                continue
            try:
                progress = loop.send(given[index])
            except StopIteration as end:
                ends[index] = end.value
            except ValueError as error:
                ends[index] = error
        if len(ends) == len(loops):
            return [ends[index] for index in range(len(loops))]
        must_stop = any(isinstance(end, int) for end in ends.values())
        given = [None] * len(loops) if must_stop else run_chunk(progress)
