"""Budgets end a run, and the learning rate falls over what they hold."""

import signal
from dataclasses import replace

import numpy as np
import pytest

from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.learning.learner import UNKNOWN_SPAN
from muzero_jax.run import accounting, budget
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import Checkpointer
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN

COSINE = replace(CONFIG.optimiser, schedule="cosine")
CHUNK_SECONDS = 6.0

# --- budgets of frames, updates and iterations ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, iteration, updates",
    [
        ({"frames": 64}, 2, 0),  # 32 an iteration; learning begins with the third
        ({"frames": 65}, 3, 2),
        ({"updates": 1}, 3, 2),
        ({"updates": 12}, 8, 12),
        ({"max_iterations": 8}, 8, 12),
        ({"updates": 12, "frames": 128}, 4, 4),
    ],
)
def test_a_budget_ends_at_the_iteration_that_spends_it_and_holds_so_many_updates(given, iteration, updates):
    config = replace(CONFIG, minutes=None, **given)
    assert (budget.last_iteration(config), budget.countable_updates(config)) == (iteration, updates)
    assert budget.schedule_span(config) == updates


def test_minutes_hold_nobody_knows_how_many_updates():
    assert budget.last_iteration(CONFIG) is None and budget.schedule_span(CONFIG) is None
    assert budget.schedule_span(replace(CONFIG, updates=12)) is None  # the minutes may be over before
    assert budget.schedule_span(replace(CONFIG, optimiser=replace(CONFIG.optimiser, decay_updates=7))) == 7


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
    summary = session(minutes=None, updates=6).summary
    assert summary["totals"]["updates"] == 8  # whole chunks of 4
    assert int(saved(session.directory)[1].learner.schedule_span) == 6


# --- minutes: the span is timed ---------------------------------------------------------------------------------------


def saved(run_dir):
    with Checkpointer(run_dir / "checkpoints") as checkpoints:
        return checkpoints.restore_latest(tiny_run.abstract_state())


@pytest.fixture
def timed(session, monkeypatch):
    """Runs under a clock on which each chunk takes 6 seconds, and each match as many as `timed.match_seconds` says."""
    now, chunks = [0.0], []
    monkeypatch.setattr(accounting.time, "perf_counter", lambda: now[0])

    def program(state):
        now[0] += CHUNK_SECONDS
        chunks.append(int(state.learner.schedule_span))
        if len(chunks) == timed.interrupt_in:
            signal.raise_signal(signal.SIGINT)
        return tiny_run.program()(state)

    def play(*arguments, **keywords):
        now[0] += timed.match_seconds
        return DRAWN

    def timed(minutes=1.0, **changes):
        return session(program, minutes=minutes, **{"optimiser": COSINE} | changes)

    monkeypatch.setattr(Arena, "play", play)
    monkeypatch.setattr(tiny_run, "SESSION", replace(tiny_run.SESSION, checkpoint_minutes=0.0))
    timed.spans, timed.directory, timed.interrupt_in, timed.match_seconds = chunks, session.directory, None, 0.0
    return timed


def test_the_span_is_what_the_budget_holds_at_the_pace_of_its_first_chunks(timed):
    """A minute is 10 chunks; all but the first make 4 updates. Three that learn are timed."""
    summary = timed().summary
    assert summary["totals"]["updates"] == 36
    assert timed.spans == [UNKNOWN_SPAN] * 4 + [36] * 6
    assert configs.load(timed.directory).optimiser.decay_updates == 36


def test_time_for_evaluations_is_left_out_of_the_span(timed):
    """Two matches of 3 s every half minute, and later three: a fifth of the time and more."""
    timed.match_seconds = 3.0
    evaluation = replace(CONFIG.evaluation, interval_minutes=0.5)
    made = timed(minutes=3.0, evaluation=evaluation).summary["totals"]["updates"]
    assert timed.spans[-1] == pytest.approx(made, rel=0.1) and made < 0.85 * 30 * 4


def test_a_run_that_is_interrupted_goes_on_with_the_span_that_it_had(timed):
    timed()
    unbroken = saved(timed.directory)
    timed.interrupt_in = len(timed.spans) + 6
    assert timed(overwrite=True).interrupted
    assert configs.load(timed.directory).optimiser.decay_updates == 36
    timed(resume=True, optimiser=configs.load(timed.directory).optimiser)
    assert timed.spans[-6:] == [36] * 6
    assert_same(saved(timed.directory)[1], unbroken[1])


def test_a_run_that_is_interrupted_before_it_was_timed_is_timed_later(timed):
    timed.interrupt_in = 2
    assert timed().interrupted
    assert configs.load(timed.directory).optimiser.decay_updates is None
    timed(resume=True)
    assert timed.spans == [UNKNOWN_SPAN] * 5 + [36] * 5


def test_chunks_beside_which_matches_compile_are_not_timed():
    metrics = {name: np.ones(2) for name in (*accounting.Totals.NAMES, "selfplay/finished_frames")}
    totals = accounting.Totals(CONFIG, {})
    totals.add(metrics, seconds=9.0, is_typical=False)
    totals.add(metrics | {"train/updates": np.zeros(2)}, seconds=9.0, is_typical=False)
    assert totals.pace.chunks == 0
    assert totals.updates == 2
    totals.add(metrics, seconds=9.0)
    assert totals.pace == accounting.Pace(1, 2.0, 9.0)


def test_another_budget_has_a_schedule_of_its_own_at_once(timed):
    """By the pace of the run so far: 36 updates a minute."""
    timed()
    stored = configs.load(timed.directory)
    longer = budget.spanning(replace(stored, minutes=2.0), stored)
    assert longer.optimiser.decay_updates is None
    timed(minutes=2.0, resume=True, optimiser=longer.optimiser)
    assert timed.spans[10:] == [72] * 10
    assert budget.spanning(stored, stored) == stored


def test_a_constant_rate_needs_no_span(timed):
    timed(optimiser=CONFIG.optimiser)
    assert set(timed.spans) == {UNKNOWN_SPAN}
    assert configs.load(timed.directory).optimiser.decay_updates is None


def test_matches_are_compiled_while_the_program_trains(timed, monkeypatch):
    """And evaluations wait for that, while chunks do not."""
    compiled = []
    monkeypatch.setattr(Arena, "compile", lambda *arguments, **keywords: compiled.append(len(timed.spans)))
    timed(evaluation=replace(CONFIG.evaluation, interval_minutes=0.5))
    assert len(compiled) == 2  # against random and itself


def test_a_match_that_cannot_be_compiled_ends_the_run_with_its_reason(timed, monkeypatch):
    def fail(*arguments, **keywords):
        raise ValueError("no such match")

    monkeypatch.setattr(Arena, "compile", fail)
    with pytest.raises(ValueError, match="no such match"):
        timed()
    assert saved(timed.directory)[0] == 20  # nothing that was learned is lost
