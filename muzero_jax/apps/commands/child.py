"""A run as a process of its own, for `train.py --seeds` and `scripts/reproduce.py`; importing this starts no JAX."""

import os
import subprocess
import sys

from muzero_jax.apps.commands.entry import ROOT
from muzero_jax.run.interrupt import Stopped, answered

COMMAND = ["-P", "-m", "muzero_jax", "train"]
"""The command that trains one run, by this Python; -P keeps it from importing what lies in the current folder."""
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""Set to false where a process only starts others, so that it takes no accelerator's memory from them."""


def wait(arguments: list[str]) -> int:
    """The exit status of one run. Ctrl-C reaches it too: it saves and ends, and is waited for.

    SIGTERM and SIGHUP are passed on to it; where it has then ended well, this raises `Stopped`, for no other may begin.
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
