"""The words by which process 0 leads the others, and the loop in which they follow.

They hold the state with process 0, and run the program and save with it. They keep no clock, write no metrics and play
no matches; while process 0 does, they wait, and hear of each piece of a match, because XLA waits 30 minutes at most.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

from muzero_jax.run import heartbeat, processes
from muzero_jax.run.interrupt import SYSTEMS, Stopped
from muzero_jax.run.schedule import with_span
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import Metrics, TrainState

RUN_CHUNK, SAVE, SET_SPAN, WAIT, END = range(5)
"""The words: run a chunk, save the checkpoint of an iteration, set the learning rate's span, wait on, end."""


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
    program: Callable[[TrainState], tuple[TrainState, Metrics]], checkpoints: Checkpointer, state: TrainState
) -> None:
    """Does what process 0 says, until it says that the run is over; signals are for process 0 to answer."""
    for number in (signal.SIGINT, *SYSTEMS):
        signal.signal(number, signal.SIG_IGN)
    while True:
        heartbeat.phase("waiting for process 0")
        word, argument = processes.listen()
        if word == RUN_CHUNK:
            heartbeat.phase(heartbeat.CHUNK)
            state, metrics = program(state)
            jax.block_until_ready(metrics)
        elif word == SAVE:
            heartbeat.phase("saving")
            checkpoints.save(argument, state)
        elif word == SET_SPAN:
            state = with_span(state, argument)
        elif word == END:
            return
