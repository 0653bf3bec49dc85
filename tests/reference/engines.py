"""Other programs for tests: a scripted one (`fake_engine.py`), and how to see that none is left behind."""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest

from muzero_jax.apps.engines.engine import EngineProcess

FAKE = Path(__file__).parent / "fake_engine.py"
DEBIANS_GAMES = Path("/usr/games")


def command(protocol, *arguments):
    """The command line of the scripted program."""
    return shlex.join([sys.executable, "-I", "-S", str(FAKE), protocol, *map(str, arguments)])


def name(protocol, *arguments, settings=""):
    """The scripted program as a user names it."""
    return f"{protocol}:{command(protocol, *arguments)}{settings}"


def started(*arguments, seconds=20.0):
    """The scripted program as a process."""
    return EngineProcess(shlex.split(command(*arguments)), "gtp:fake", seconds=seconds)


def is_alive(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def is_gone(pid, seconds=5.0):
    """Whether a process ends within some seconds."""
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def installed(program):
    """The path of a real program; without it the test is left out."""
    found = shutil.which(program) or shutil.which(program, path=str(DEBIANS_GAMES))
    return found or pytest.skip(f"{program} is not installed; Debian has a package of it")
