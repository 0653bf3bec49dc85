"""Trains a run in a child process, for `train.py --seeds` and `scripts/reproduce.py`; importing this starts no JAX."""

import os
import subprocess
import sys

from muzero_jax.apps.commands.constants import PREALLOCATE, ROOT
from muzero_jax.run.interrupt import Stopped, answered

COMMAND = ["-P", "-m", "muzero_jax", "train"]
"""Arguments of Python that train one run; -P keeps it from importing modules of the current folder."""


def wait(arguments: list[str]) -> int:
    """Runs `train` with these arguments and returns its exit status. After Ctrl-C it waits until the run has saved.

    SIGTERM and SIGHUP are passed on. If the run then ends with status 0, raises `Stopped`, so that no other run begins.
    """
    environment = {name: value for name, value in os.environ.items() if name != PREALLOCATE or value != "false"}
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))  # an empty part is the current folder
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *given])
    received: list[int] = []
    with (
        answered(lambda number, _: received.append(number)),
        subprocess.Popen([sys.executable, *COMMAND, *arguments], env=environment) as process,
    ):
        passed = 0
        while True:
            try:
                for number in received[passed:]:
                    process.send_signal(number)
                passed = len(received)
                status = process.wait(timeout=0.2)
                break
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                continue
    if received and not status:
        raise Stopped
    return status if status >= 0 else 128 - status  # as a shell reports a process that a signal killed
