"""Budgets end a run, and the program is told what share of them is spent."""

import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import accounting, budget
from muzero_jax.run.metrics import read_records
from muzero_jax.run.program import make_chunk
from muzero_jax.storage.checkpoint import Checkpointer
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN

COSINE = replace(CONFIG.optimiser, schedule="cosine")
CHUNK_SECONDS = 6.0

# --- budgets of frames, updates and iterations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, iteration",
    [
        ({"frames": 64}, 2),  # 32 an iteration
        ({"frames": 65}, 3),
        ({"updates": 1}, 3),  # learning begins with the third iteration, with 2 updates in each
        ({"updates": 12}, 8),
        ({"max_iterations": 8}, 8),
        ({"updates": 12, "frames": 128}, 4),
    ],
)
def test_a_budget_ends_at_the_iteration_that_spends_it(given, iteration):
    assert budget.last_iteration(replace(CONFIG, minutes=None, **given)) == iteration


def test_minutes_end_at_an_iteration_that_nobody_knows():
    assert budget.last_iteration(CONFIG) is None


@pytest.mark.parametrize(
    "given, done, field",
    [
        ({"minutes": 2.0}, {"time/minutes": 1.9, "iteration": 900}, None),
        ({"minutes": 2.0}, {"time/minutes": 2.0}, "minutes"),
        ({"minutes": None, "updates": 12}, {"time/minutes": 1e9, "total/updates": 11.0}, None),
        ({"minutes": None, "updates": 12}, {"total/updates": 12.0}, "updates"),
        ({"frames": 64, "max_iterations": 90}, {"total/frames": 64.0, "iteration": 2}, "frames"),
        ({"frames": 64, "max_iterations": 90}, {"total/frames": 63.0, "iteration": 90}, "max_iterations"),
    ],
)
def test_the_first_budget_to_be_spent_ends_a_run(given, done, field):
    assert budget.spent(replace(CONFIG, **given), done) == field


def test_a_budget_is_said_in_words_and_a_larger_one_as_a_flag():
    config = replace(CONFIG, minutes=0.5, frames=1_000_000)
    assert budget.describe(config) == "0.5 minutes or 1,000,000 frames"
    assert budget.larger(config, "minutes") == "--minutes 1"
    assert budget.larger(config, "frames") == "--frames 2000000"
    assert budget.larger(replace(config, max_iterations=7), "max_iterations", 3.0) == "--max-iterations 21"


def test_a_run_stops_when_its_updates_are_made(session):
    assert session(minutes=None, updates=6).summary["totals"]["updates"] == 8  # whole chunks of 4


# --- the share that is spent ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, iteration, minutes, shares",
    [
        ({"frames": 65}, 0, 7.0, [0, 1 / 3]),
        ({"frames": 65}, 2, 7.0, [2 / 3, 1]),
        ({"updates": 12}, 0, 7.0, [0, 1 / 8]),  # the iterations that only play are two of the eight
        ({"updates": 12}, 6, 7.0, [6 / 8, 7 / 8]),
        ({"max_iterations": 5}, 4, 7.0, [4 / 5, 1]),
        ({"updates": 12, "frames": 128}, 2, 7.0, [2 / 4, 3 / 4]),  # the one that ends the run
        ({"minutes": 10.0}, 900, 7.0, [0.7, 0.7]),
        ({"minutes": 10.0}, 900, 10.5, [1, 1]),
        ({"minutes": 10.0, "max_iterations": 8}, 4, 5.5, [0.55, 5 / 8]),
    ],
)
def test_the_share_that_is_spent_by_hand(given, iteration, minutes, shares):
    found = budget.progress(replace(CONFIG, **{"minutes": None} | given), iteration, minutes)
    np.testing.assert_allclose(found, shares, rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("given", [{"frames": 300}, {"updates": 11}, {"updates": 7, "frames": 1000, "minutes": 90.0}])
def test_the_share_rises_from_0_to_1_at_the_iteration_that_ends_the_run(given):
    config = replace(CONFIG, **{"minutes": None} | given)
    last = budget.last_iteration(config)
    shares = np.concatenate([budget.progress(config, start, minutes=start / 60) for start in range(0, 20, 2)])
    assert shares[0] == 0 and (np.diff(shares[: last + 1]) > 0).all() and (shares[last:] == 1).all()


# --- runs under a clock -----------------------------------------------------------------------------------------------


def saved(run_dir):
    with Checkpointer(run_dir / "checkpoints") as checkpoints:
        return checkpoints.restore_latest(tiny_run.abstract_state())


@pytest.fixture(scope="module")
def cosine():
    """The tiny run's program with a rate that falls as a cosine."""
    algorithm = algorithms.make(replace(CONFIG, optimiser=COSINE))
    return make_chunk(algorithm, tiny_run.mesh()).lower(tiny_run.abstract_state(), tiny_run.PROGRESS).compile()


@pytest.fixture
def timed(session, monkeypatch):
    """Runs under a clock on which each chunk takes 6 seconds, and each match as many as `timed.match_seconds` says.

    `timed.asked` has the first share of each chunk; a Ctrl-C comes in chunk `timed.interrupt_in`.
    """
    now, asked = [0.0], []
    monkeypatch.setattr(accounting.time, "perf_counter", lambda: now[0])

    def timed(minutes=1.0, program=None, **changes):
        def run_chunk(state, progress):
            now[0] += CHUNK_SECONDS
            asked.append(float(progress[0]))
            if len(asked) == timed.interrupt_in:
                signal.raise_signal(signal.SIGINT)
            return (program or tiny_run.program())(state, progress)

        return session(run_chunk, minutes=minutes, **changes)

    def play(*arguments, **keywords):
        now[0] += timed.match_seconds
        return DRAWN

    monkeypatch.setattr(Arena, "play", play)
    monkeypatch.setattr(tiny_run, "SESSION", replace(tiny_run.SESSION, checkpoint_minutes=0.0))
    timed.asked, timed.directory, timed.interrupt_in, timed.match_seconds = asked, session.directory, None, 0.0
    return timed


def test_a_chunk_is_told_the_share_of_the_minutes_that_are_over_when_it_begins(timed):
    """A minute is 10 chunks."""
    timed()
    assert timed.asked == pytest.approx([chunk / 10 for chunk in range(10)])


def test_time_for_evaluations_is_spent_too(timed):
    """Two matches of 3 s every half minute, and later three: a fifth of the time and more."""
    timed.match_seconds = 3.0
    timed(minutes=3.0, evaluation=replace(CONFIG.evaluation, interval_minutes=0.5))
    assert len(timed.asked) < 0.85 * 30 and 0.9 < timed.asked[-1] < 1
    assert timed.asked == sorted(timed.asked)


def test_a_run_that_is_interrupted_goes_on_with_the_share_that_it_had(timed):
    timed.interrupt_in = 6
    assert timed().interrupted
    timed(resume=True)
    assert timed.asked == pytest.approx([chunk / 10 for chunk in range(10)])


def test_of_another_budget_another_share_is_spent_at_once(timed):
    timed()
    timed(minutes=2.0, resume=True)
    assert timed.asked[10:] == pytest.approx([chunk / 20 for chunk in range(10, 20)])


@pytest.mark.parametrize("given", [{"updates": 12}, {"frames": 250}])
def test_the_rate_falls_over_the_budget_and_a_resumed_run_equals_an_unbroken_one(given, timed, cosine):
    """Bit for bit; the eighth iteration spends either budget."""
    run = partial(timed, minutes=None, program=cosine, optimiser=COSINE, **given)
    run()
    iteration, unbroken = saved(timed.directory)
    rates = [record["train/learning_rate"] for record in read_records(timed.directory) if "train/loss" in record]
    shares = np.array([[2, 3], [4, 5], [6, 7]]) / 8  # learning begins with the second chunk
    expected = (0.55 + 0.45 * np.cos(np.pi * shares)).mean(axis=1) * COSINE.learning_rate
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    timed.interrupt_in = len(timed.asked) + 2
    assert run(overwrite=True).interrupted
    run(resume=True)
    assert timed.asked[4:] == timed.asked[:4] and iteration == 8
    assert_same(saved(timed.directory)[1], unbroken)


def test_matches_are_compiled_while_the_program_trains(timed, monkeypatch):
    """And evaluations wait for that, while chunks do not."""
    compiled = []
    monkeypatch.setattr(Arena, "compile", lambda *arguments, **keywords: compiled.append(len(timed.asked)))
    timed(evaluation=replace(CONFIG.evaluation, interval_minutes=0.5))
    assert len(compiled) == 2  # against random and itself


def test_a_match_that_cannot_be_compiled_ends_the_run_with_its_reason(timed, monkeypatch):
    def fail(*arguments, **keywords):
        raise ValueError("no such match")

    monkeypatch.setattr(Arena, "compile", fail)
    with pytest.raises(ValueError, match="no such match"):
        timed()
    assert saved(timed.directory)[0] == 20  # nothing that was learned is lost
