"""The watchdog ends a process that hangs, tells how to go on, and passes on whatever else happens to it."""

import shlex
import signal
import sys

import pytest

from muzero_jax.apps.commands import guard
from muzero_jax.apps.commands.guard import Beat

SAYS = "import os, pathlib, time; say = pathlib.Path(os.environ['MUZERO_JAX_HEARTBEAT']).write_text\n"
ARGUMENTS = ["--env", "hex", "--run-dir", "my runs/x", "--overwrite", "--distributed"]


@pytest.fixture
def end_of(monkeypatch, capfd):
    """The exit status of the watchdog of a Python program, and what both of them wrote on stderr."""
    monkeypatch.setattr(guard, "STACKS_SECONDS", 0.3)
    heard = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {number: signal.getsignal(number) for number in heard}

    def run(program, watchdog_minutes=5.0):
        monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", SAYS + program])
        return guard.run(ARGUMENTS, watchdog_minutes), capfd.readouterr().err

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_exit_status_is_passed_on_without_a_word(end_of):
    assert end_of("raise SystemExit(3)") == (3, "")


def test_another_signal_is_reported_as_a_shell_does(end_of):
    status, said = end_of("os.kill(os.getpid(), 9)")
    assert status == 128 + 9 and "SIGKILL ended this process, in starting" in said and "--resume-if-any" in said


def test_a_process_that_jax_ends_because_another_died_says_how_to_go_on(end_of):
    status, said = end_of("say('0.5 a chunk'); os.abort()")
    assert status == guard.EXIT_UNFINISHED
    assert "another process died or fell silent, in a chunk" in said
    assert shlex.split(said.splitlines()[-1].partition(": ")[2])[2:] == [
        *"--env hex --run-dir".split(),
        "my runs/x",
        "--distributed",
        "--resume-if-any",
    ]


def test_a_process_that_hangs_prints_where_it_stands_and_is_killed(end_of):
    hangs = "import faulthandler, signal; faulthandler.register(signal.SIGUSR1); say('0.001 a chunk'); time.sleep(60)"
    status, said = end_of(hangs, watchdog_minutes=0.01)
    assert status == guard.EXIT_HUNG
    assert "in <module>" in said and "no progress for" in said and "in a chunk" in said


def test_a_process_that_is_stopped_is_ended_in_any_phase(end_of):
    """Compiling and waiting may take long; a process that was stopped does neither."""
    stops = f"say('0 waiting for process 0'); os.kill(os.getpid(), {int(signal.SIGSTOP)})"
    status, said = end_of(stops, watchdog_minutes=0.01)
    assert status == guard.EXIT_HUNG and "in waiting for process 0" in said


@pytest.mark.parametrize(
    "beat, seconds",
    [
        (Beat(0.0, 0.0, "a chunk"), 3600),  # none has ended yet: the first may take long
        (Beat(0.0, 2.0, "a chunk"), 300),
        (Beat(0.0, 90.0, "a chunk"), 900),
        (Beat(0.0, 2.0, "compiling"), 3600),
    ],
)
def test_a_chunk_may_take_ten_times_the_usual_and_at_least_the_flags_minutes(beat, seconds):
    assert guard.limit(beat, least_seconds=300.0) == seconds
