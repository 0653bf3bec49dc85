"""The other processes of a run, and the loop in which they do what process 0 says.

They hold the state with process 0, and run the program and save with it. They keep no clock, write no metrics and play
no matches; while process 0 does, they wait.
"""

import signal
from collections.abc import Callable

import jax

from muzero_jax.arithmetic import processes
from muzero_jax.run import heartbeat
from muzero_jax.run.schedule import with_span
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import Metrics, TrainState

CHUNK, SAVE, SPAN, END = range(4)
"""The words of `processes.tell`: a chunk, the checkpoint of an iteration, a learning rate's span, the end."""


def follow(
    program: Callable[[TrainState], tuple[TrainState, Metrics]], checkpoints: Checkpointer, state: TrainState
) -> None:
    """Does what process 0 says, until it says that the run is over; a terminal's Ctrl-C is for process 0 to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        heartbeat.phase("waiting for process 0")
        number, argument = processes.listen()
        if number == CHUNK:
            heartbeat.phase(heartbeat.CHUNK)
            state, metrics = program(state)
            jax.block_until_ready(metrics)
        elif number == SAVE:
            heartbeat.phase("saving")
            checkpoints.save(argument, state)
        elif number == SPAN:
            state = with_span(state, argument)
        else:
            return
