"""The watchdog of a process that trains with others: it starts that process, and ends it if it hangs.

A process that waits for a dead or a stuck one sits in XLA, where no Python runs. So the watchdog is a process of its
own. It knows what its child does from a file (`run.heartbeat`). Its last line goes on with a run that is not over.
"""

import faulthandler
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED, command, report_errors
from muzero_jax.run import heartbeat, processes

EXIT_UNFINISHED, EXIT_HUNG = 75, 76
"""Exit statuses: the run is not over, but saved as far as it came; the watchdog ended a process that hung."""
TIMES_THE_USUAL = 10
LONG_PHASES_MINUTES = 60.0
"""The most that compiling, saving or an evaluation may take."""
STACKS_SECONDS = 2.0
"""How long a process that hangs has to print where it stands."""


class Beat(NamedTuple):
    """The child's last sign of life."""

    seconds_ago: float
    usual_seconds: float  # of a chunk; 0 before one has ended
    phase: str


def is_guarded() -> bool:
    """Whether this process is the child."""
    return heartbeat.FILE in os.environ


def run(arguments: list[str], watchdog_minutes: float) -> int:
    """Runs this very command as a child; returns its exit status, or one of the two above."""
    with tempfile.TemporaryDirectory(prefix="heartbeat-") as folder:
        file = Path(folder) / "phase"
        file.write_text("0 starting")
        program = [sys.executable, *sys.orig_argv[1:]]
        child = subprocess.Popen(program, env=os.environ | {heartbeat.FILE: str(file)})
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda signum, _: child.send_signal(signum))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child, too
        while (status := _wait(child)) is None:
            beat = read(file)
            if beat.seconds_ago > limit(beat, 60 * watchdog_minutes, is_stopped=is_stopped(child.pid)):
                _end(child)
                status = EXIT_HUNG
                print(f"error: no progress for {beat.seconds_ago:.0f} s in {beat.phase}", file=sys.stderr)
                break
        if status == -signal.SIGABRT:  # how JAX ends a process whose others have died
            status = EXIT_UNFINISHED
        if status == EXIT_UNFINISHED and read(file).phase != heartbeat.ENDED:
            print(f"error: another process died or fell silent, in {read(file).phase}", file=sys.stderr)
        elif status < 0:
            status = 128 - status
            print(
                f"error: {signal.Signals(status - 128).name} ended this process, in {read(file).phase}", file=sys.stderr
            )
    if status in (EXIT_UNFINISHED, EXIT_HUNG) or status > 128 and status != EXIT_INTERRUPTED:
        print(f"start all processes again, this one with: {line_to_go_on(arguments)}", file=sys.stderr)
    return status


def work(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    """The child's part: runs `main`. Where it fails this process ends at once, or JAX would wait for the others."""
    faulthandler.register(signal.SIGUSR1)
    try:
        status = report_errors(partial(_unless_lost, main), arguments)
        if status != EXIT_ERROR:
            return status
    except BaseException:
        traceback.print_exc()
        status = 1
    _leave(status)


def _unless_lost(main: Callable[[list[str]], int], arguments: list[str]) -> int:
    """`main`; a program that failed because another process is gone is no mistake of the user's."""
    try:
        return main(arguments)
    except (RuntimeError, ValueError) as error:
        if processes.is_loss(error):
            _leave(EXIT_UNFINISHED)
        raise


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def is_stopped(pid: int) -> bool:
    """Whether a child was stopped (SIGSTOP) and has not gone on."""
    return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def limit(beat: Beat, least_seconds: float, *, is_stopped: bool = False) -> float:
    """The seconds that this phase may take; a process that was stopped does nothing in any of them."""
    if is_stopped:
        return least_seconds
    if beat.phase == heartbeat.CHUNK and beat.usual_seconds:
        return max(least_seconds, TIMES_THE_USUAL * beat.usual_seconds)
    return max(least_seconds, 60 * LONG_PHASES_MINUTES)


def read(file: Path) -> Beat:
    """The child's last sign of life."""
    usual, _, phase = file.read_text().partition(" ")
    return Beat(time.time() - file.stat().st_mtime, float(usual), phase)


def line_to_go_on(arguments: list[str]) -> str:
    """The command that goes on with the run, or begins it if it had saved nothing."""
    kept = [word for word in arguments if word not in ("--overwrite", "--resume", "--resume-if-any")]
    return f"{command('train')} {shlex.join([*kept, '--resume-if-any'])}"


def _wait(child: subprocess.Popen) -> int | None:
    try:
        return child.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        return None


def _end(child: subprocess.Popen) -> None:
    """Has the child print all its stacks, and kills it."""
    child.send_signal(signal.SIGUSR1)
    time.sleep(STACKS_SECONDS)
    child.kill()
    child.wait()
