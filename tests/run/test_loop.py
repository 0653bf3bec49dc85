"""The host's loop alone: what it does between chunks, with a clock that is told."""

from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from muzero_jax.run import loop as loops
from muzero_jax.run import processes
from muzero_jax.run.run import Run
from tests.reference.tiny_run import CONFIG


class Told(Run):
    """A run whose chunks take a minute, and evaluations as many as they are said to; keeps what was asked of it."""

    config = failure = None

    def __init__(self, *, minutes, evaluation_minutes):
        wanted = replace(CONFIG.evaluation, interval_minutes=1.0, parts=None)
        self.config = replace(CONFIG, minutes=minutes, evaluation=wanted, iterations_per_chunk=1)
        self.saved, self.iteration, self.members = True, 1, ()
        self.done, self._evaluation_minutes = [], evaluation_minutes
        self.clock = SimpleNamespace(minutes=0.0, measure=lambda purpose: nullcontext())
        self.checkpoints = SimpleNamespace(wait=lambda: None)

    def is_over(self):
        return self.clock.minutes >= self.config.minutes

    def chunk(self, progress, *, is_typical):
        assert is_typical
        self.done.append(round(float(progress[0]), 3))
        self.clock.minutes, self.iteration, self.saved = self.clock.minutes + 1.0, self.iteration + 1, False

    def save(self):
        self.done.append("save")
        self.saved = True

    def evaluate(self):
        self.done.append("evaluate")
        self.clock.minutes += self._evaluation_minutes


def trained(run, *, stop_requested=lambda: False):
    matches = Future()
    matches.set_result(None)
    loops.loop(run, matches=matches, stop_requested=stop_requested, save_minutes=0.0)
    return run.done


def test_a_run_is_evaluated_at_intervals_and_at_its_end_and_saved_before():
    done = trained(Told(minutes=3.0, evaluation_minutes=0.0))
    assert done == [0.0, "save", "evaluate", 0.333, "save", "evaluate", 0.667, "save", "evaluate"]


def test_an_evaluation_that_spends_the_budget_is_the_last_thing_that_a_run_does():
    assert trained(Told(minutes=3.0, evaluation_minutes=2.5)) == [0.0, "save", "evaluate"]


@pytest.mark.parametrize("evaluation_minutes", [0.0, 9.0])
def test_several_processes_play_no_match_while_they_train(evaluation_minutes, monkeypatch):
    monkeypatch.setattr(processes, "count", lambda: 2)
    monkeypatch.setattr(processes, "from_first", lambda numbers: numbers)
    assert trained(Told(minutes=2.0, evaluation_minutes=evaluation_minutes)) == [0.0, 0.5, "save"]


def test_a_stop_that_is_asked_for_saves_and_evaluates_nothing():
    run = Told(minutes=9.0, evaluation_minutes=0.0)
    assert trained(run, stop_requested=lambda: run.iteration == 2) == [0.0, "save"]
