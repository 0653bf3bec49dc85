"""Budgets end a run, and the program is told what share of them is spent."""

import signal
from dataclasses import replace

import numpy as np
import pytest

import muzero_jax
from muzero_jax.apps import start
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import accounting, budget
from muzero_jax.run.flops import Flops
from muzero_jax.run.run import Result
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN, saved_state


@pytest.mark.parametrize(
    "given, done, field",
    [
        ({"minutes": 2.0}, {"time/minutes": 2.0}, "minutes"),
        ({"minutes": None, "updates": 12}, {"time/minutes": 1e9, "total/updates": 11.0}, None),
        ({"frames": 64, "max_iterations": 90}, {"total/frames": 64.0, "iteration": 2}, "frames"),
        ({"frames": 64, "max_iterations": 90}, {"total/frames": 63.0, "iteration": 90}, "max_iterations"),
        ({"flops": 1e9}, {"total/flops": 1e9, "time/minutes": 2.0}, "flops"),
    ],
)
def test_the_first_budget_to_be_spent_ends_a_run(given, done, field):
    assert budget.spent(replace(CONFIG, **given), done) == field


@pytest.mark.parametrize(
    "given, done, shares",
    [
        ({"frames": 65}, {"total/frames": 0.0}, [0, 32 / 65]),  # 32 an iteration
        ({"frames": 65}, {"total/frames": 64.0}, [64 / 65, 1]),
        ({"updates": 12}, {"iteration": 0}, [0, 0]),  # two an iteration, from the third on
        ({"updates": 12}, {"iteration": 6, "total/updates": 8.0}, [8 / 12, 10 / 12]),
        ({"updates": 12}, {"iteration": 6, "total/updates": 3.0}, [3 / 12, 5 / 12]),  # resumed: they were fewer before
        ({"max_iterations": 5}, {"iteration": 4}, [4 / 5, 1]),
        ({"updates": 12, "frames": 128}, {"iteration": 2, "total/frames": 64.0}, [2 / 4, 3 / 4]),  # what ends the run
        ({"minutes": 10.0}, {"iteration": 900, "time/minutes": 10.5}, [1, 1]),
        ({"flops": 60.0}, {"iteration": 0}, [0, 10 / 60]),  # 10 an iteration, and 5 for learning, from the third on
        ({"flops": 60.0}, {"iteration": 4, "total/flops": 45.0}, [45 / 60, 1]),
        ({"minutes": 10.0, "max_iterations": 8}, {"iteration": 4, "time/minutes": 5.5}, [0.55, 5 / 8]),
    ],
)
def test_the_spent_share_of_a_budget_by_hand(given, done, shares):
    found = budget.progress(replace(CONFIG, **{"minutes": None} | given), done, Flops(10.0, 5.0))
    np.testing.assert_allclose(found, shares, rtol=1e-6)
    assert found.dtype == np.float32


def test_a_run_stops_after_the_chunk_that_spends_its_budget(session):
    assert session(minutes=None, updates=6).summary["totals"]["updates"] == 8  # whole chunks of 4
    with pytest.raises(ValueError, match="budget of 6 updates is spent; give --updates 12"):
        budget.check_left(replace(CONFIG, minutes=None, updates=6), session.directory)


def test_a_run_without_an_update_says_what_to_do_and_can_be_resumed(session):
    with pytest.raises(ValueError, match="no updates, .*--resume --max-iterations 9$"):
        session(max_iterations=2, minutes=None)
    assert session(max_iterations=4, minutes=None, resume=True).summary["totals"]["updates"] > 0


def test_train_takes_a_budget_and_refuses_what_the_command_refuses(monkeypatch, tmp_path, saved_run):
    handed = []
    monkeypatch.setattr(start, "train", lambda *arguments: handed.append(arguments) or Result({}, False))
    muzero_jax.train(CONFIG, tmp_path / "run", minutes=3.0)
    run, _ = handed[0]
    assert (run.config.minutes, run.config.max_iterations) == (3, None)
    assert (run.session.overwrite, run.folder.name, run.mesh.size) == (False, "run", 2)
    with pytest.raises(ValueError, match="--minutes is -1.0"):
        muzero_jax.train(CONFIG, tmp_path / "run", minutes=-1.0)
    with pytest.raises(ValueError, match="holds a run already"):
        muzero_jax.train(CONFIG, saved_run)


# --- runs under a clock -----------------------------------------------------------------------------------------------


@pytest.fixture
def timed(session, monkeypatch):
    """Runs under a clock on which each chunk takes 6 seconds, and each match as many as `timed.match_seconds` says.

    `timed.asked` has the first share of each chunk; a Ctrl-C comes in chunk `timed.interrupt_in`.
    """
    now, asked = [0.0], []
    monkeypatch.setattr(accounting.time, "perf_counter", lambda: now[0])

    def timed(minutes=1.0, **changes):
        def run_chunk(state, progress):
            now[0] += 6.0
            asked.append(float(progress[0]))
            if len(asked) == timed.interrupt_in:
                signal.raise_signal(signal.SIGINT)
            return tiny_run.program()(state, progress)

        return session(run_chunk, minutes=minutes, **changes)

    def play(*arguments, **keywords):
        now[0] += timed.match_seconds
        return DRAWN

    monkeypatch.setattr(Arena, "play", play)
    monkeypatch.setattr(tiny_run, "SESSION", replace(tiny_run.SESSION, checkpoint_minutes=0.0))
    timed.asked, timed.directory, timed.interrupt_in, timed.match_seconds = asked, session.directory, None, 0.0
    return timed


def test_each_chunk_gets_the_share_of_minutes_spent_also_in_a_resumed_run(timed):
    """A minute is 10 chunks; if the budget is doubled, the share is halved at once."""
    timed.interrupt_in = 6
    assert timed().interrupted
    timed(resume=True)
    timed(minutes=2.0, resume=True)
    assert timed.asked == pytest.approx([*(chunk / 10 for chunk in range(10)), *(n / 20 for n in range(10, 20))])


def test_evaluations_count_towards_the_minutes(timed):
    """Two matches of 3 s every half minute, and later three: a fifth of the time and more."""
    timed.match_seconds = 3.0
    timed(minutes=3.0, evaluation=replace(CONFIG.evaluation, interval_minutes=0.5))
    assert len(timed.asked) < 0.85 * 30 and 0.9 < timed.asked[-1] < 1
    assert timed.asked == sorted(timed.asked)


def test_a_resumed_run_gets_the_shares_that_an_uninterrupted_one_gets(timed, unbroken):
    timed.interrupt_in = 2
    assert timed(minutes=None, updates=12).interrupted
    timed(minutes=None, updates=12, resume=True)
    assert timed.asked == pytest.approx([0, 0, 4 / 12, 8 / 12])
    assert_same(saved_state(timed.directory)[1], unbroken[8])
