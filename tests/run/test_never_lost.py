"""Signals, a full disk and `kill -9` cost a run no more than the work since its last save.

Tests of whole runs end by resuming the run, which must then equal an uninterrupted one bit for bit.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from muzero_jax.apps.evaluation import progress
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import run
from muzero_jax.run.interrupt import Interrupt, Stopped
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from tests.reference import process
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN, happening_in_chunk, saved_state, signalled_in_chunk

pytestmark = pytest.mark.filterwarnings(
    "ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning"
)
slow = partial(pytest.param, marks=pytest.mark.slow)  # for what differs little from another case
EVALUATED = replace(CONFIG.evaluation, interval_minutes=1e-9)  # after every chunk


def assert_goes_on(session, unbroken, **changes):
    """Resumed, the run ends like an uninterrupted one and has recorded each chunk once."""
    session(max_iterations=8, resume=True, **changes)
    assert_same(saved_state(session.directory)[1], unbroken[8])
    assert [record["total/frames"] for record in process.chunks(session.directory)] == [64, 128, 192, 256]


# --- SIGTERM and SIGHUP -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGTERM, slow(signal.SIGHUP)])
def test_sigterm_and_sighup_save_the_run(signum, session, unbroken):
    before = signal.getsignal(signum)
    result = session(signalled_in_chunk(2, signum), max_iterations=8)
    assert result.interrupted and result.by_system and not result.summary["finished"]
    assert checkpoint_steps(session.directory / "checkpoints")[-1] == 4
    assert signal.getsignal(signum) is before
    assert_goes_on(session, unbroken)


def test_a_signal_while_the_program_compiles_is_not_lost(session, monkeypatch, unbroken):
    compile_agent = run.compile_agent

    def asked_meanwhile(*arguments, **keywords):
        signal.raise_signal(signal.SIGTERM)
        return compile_agent(*arguments, **keywords)

    with monkeypatch.context() as early:
        early.setattr(run, "compile_agent", asked_meanwhile)
        assert session(max_iterations=8).by_system
        assert checkpoint_steps(session.directory / "checkpoints") == [0]
        with pytest.raises(Stopped):
            session(max_iterations=8, overwrite=True)
    assert checkpoint_steps(session.directory / "checkpoints") == [0], "what was to be overwritten stays"
    assert_goes_on(session, unbroken)


def test_a_signal_in_the_final_matches_ends_them_and_they_can_be_played_later(session, monkeypatch, unbroken):
    def asked(*arguments, **keywords):
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the matches went on")

    with monkeypatch.context() as matches, pytest.raises(Stopped):
        matches.setattr(Arena, "play", asked)
        session(max_iterations=8)
    assert not run_directory.has_ended(session.directory)
    assert_goes_on(session, unbroken)
    assert run_directory.has_ended(session.directory)
    assert run_directory.read_summary(session.directory)["strength"] == {"random": DRAWN}


def test_an_ignored_sighup_stays_ignored_and_repeated_signals_are_one_request():
    """`nohup` ignores SIGHUP. Kernel and shell both signal for a closed terminal, and so does systemd for a stop."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt() as asked:
            signal.raise_signal(signal.SIGHUP)
            assert not asked.requested
            for _ in range(3):
                signal.raise_signal(signal.SIGTERM)
            assert asked.by_system
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


IN_TERMINAL = """
import signal, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have ignored it
from muzero_jax.run.interrupt import Interrupt
with Interrupt() as asked:
    print("training", flush=True)
    while not asked.requested:
        time.sleep(0.01)
    print("saving", flush=True)
"""


def test_writing_to_a_closed_terminal_is_no_error():
    """An error would end the run before it is saved."""
    ours, its = os.openpty()
    with subprocess.Popen([sys.executable, "-c", IN_TERMINAL], stdout=its, stderr=its) as process:
        os.close(its)
        with open(ours, "rb", buffering=0) as terminal:
            assert terminal.readline() == b"training\r\n"  # all of it, or its write would fail
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 0


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk():
    """A file-size limit of 0 instead of a full disk: every write of a byte fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    def free():
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    yield SimpleNamespace(fill=fill, free=free)
    free()


@pytest.mark.parametrize(
    "place, name, words",
    [
        (None, "in a chunk", "(metrics|checkpoints)"),
        (Checkpointer, "save", "checkpoints"),
        slow(progress, "save_params", "checkpoints to .*/versions"),
        slow(run, "split_time", "summary.json"),
    ],
)
def test_a_full_disk_gives_one_error_message_and_keeps_the_newest_good_checkpoint(
    place, name, words, disk, session, monkeypatch, unbroken
):
    """It fills up in the third chunk, or when a function that writes is called for the third time."""
    times = []

    def filling(original):
        def call(*arguments, **keywords):
            times.append(None)
            if len(times) == 3:
                disk.fill()
            return original(*arguments, **keywords)

        return call

    with (
        monkeypatch.context() as soon,
        pytest.raises(ValueError, match=f"^cannot write {words}.*; free space") as error,
    ):
        if place:
            soon.setattr(place, name, filling(getattr(place, name)))
        program = None if place else happening_in_chunk(3, disk.fill)
        session(program, max_iterations=8, evaluation=EVALUATED)
    assert "\n" not in str(error.value)
    time.sleep(0.5)  # Orbax's other threads may still write
    disk.free()
    iteration, state = saved_state(session.directory)
    assert iteration >= 2, "that of the chunk before may have been under way"
    assert_same(state, unbroken[iteration])
    assert_goes_on(session, unbroken, evaluation=EVALUATED)


# --- kill -9 ----------------------------------------------------------------------------------------------------------


def test_a_run_that_was_killed_before_its_first_save_starts_again(session, unbroken):
    session(signalled_in_chunk(2, signal.SIGTERM), max_iterations=8)
    shutil.rmtree(session.directory / "checkpoints")
    (session.directory / "summary.json").unlink()
    assert_goes_on(session, unbroken)


def test_totals_continue_from_the_checkpoint_although_the_evaluation_after_it_failed(session, monkeypatch, unbroken):
    """A chunk is recorded before it is saved; otherwise the totals of a run killed here would lack its last chunk."""

    def killed(*arguments, **keywords):
        raise RuntimeError("killed")

    with monkeypatch.context() as matches, pytest.raises(RuntimeError, match="killed"):
        matches.setattr(Arena, "play", killed)
        session(max_iterations=8, evaluation=EVALUATED)
    assert checkpoint_steps(session.directory / "checkpoints")[-1] == 2, "it is saved before it is evaluated"
    assert_goes_on(session, unbroken)
