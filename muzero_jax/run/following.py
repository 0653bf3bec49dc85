"""The words by which process 0 leads the others, and the loop in which they follow.

They hold the state with process 0, and run the program and save with it. They keep no clock, write no metrics and play
no matches; while process 0 does, they wait, and hear of each piece of a match, because XLA waits 30 minutes at most.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np

from muzero_jax.run import heartbeat, processes
from muzero_jax.run.interrupt import SYSTEMS, Stopped
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import Metrics, TrainState

RUN_CHUNK, SAVE, WAIT, END = range(4)
"""The words: run a chunk, save the checkpoint of an iteration, wait on, end."""


@contextmanager
def leading() -> Iterator[None]:
    """Process 0's part of a run, at whose end the others are told to end.

    But for an error that may have come while all were at work, or a second Ctrl-C: then nobody listens. This process
    ends, and JAX ends the others.
    """
    try:
        yield
    except (ValueError, OSError, Stopped):
        processes.tell(END)
        raise
    processes.tell(END)


def follow(
    program: Callable[[TrainState, np.ndarray], tuple[TrainState, Metrics]],
    checkpoints: Checkpointer,
    state: TrainState,
    num_iterations: int,
) -> None:
    """Does what process 0 says, until it says that the run is over; signals are for process 0 to answer."""
    for number in (signal.SIGINT, *SYSTEMS):
        signal.signal(number, signal.SIG_IGN)
    while True:
        heartbeat.phase("waiting for process 0")
        word, argument = processes.listen()
        if word == RUN_CHUNK:
            heartbeat.phase(heartbeat.CHUNK)
            state, metrics = program(state, processes.from_first(np.zeros(num_iterations, np.float32)))
            jax.block_until_ready(metrics)
        elif word == SAVE:
            heartbeat.phase("saving")
            checkpoints.save(argument, state)
        elif word == END:
            return
