"""The host's loop: chunk after chunk of the one program, and between two of them a save or an evaluation if it is due.

All processes run it. Process 0 reads the clock and the signals; what it decides reaches the others as a few numbers
before each chunk. The program learns one thing from it: how much of the budget is spent (`budget.progress`).
"""

import math
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from muzero_jax.run import budget, processes
from muzero_jax.run.run import Run


class Timer:
    """Says when the clock has gone on by another `minutes`; never, if that is 0."""

    def __init__(self, minutes: float, now: float):
        self._minutes, self._last = minutes, now

    def due(self, now: float) -> bool:
        """True once per interval."""
        if self._minutes <= 0 or now - self._last < self._minutes:
            return False
        self._last = now
        return True


class Evaluations:
    """Says when a run is evaluated before its end: after equal parts of its budget, or at intervals of its clock."""

    def __init__(self, run: Run):
        wanted = run.config.evaluation
        self._parts = wanted.parts
        self._passed = self._parts_passed(run)
        # A new run is evaluated as soon as the matches are compiled: early on, and then at every interval.
        last = run.clock.minutes if run.iteration else -math.inf
        self._timer = Timer(wanted.interval_minutes, last)

    def due(self, run: Run, are_compiled: bool) -> bool:
        """Whether one is due; at an interval only if the matches are compiled."""
        if not self._parts:
            return are_compiled and self._timer.due(run.clock.minutes)
        before, self._passed = self._passed, self._parts_passed(run)
        return self._passed > before

    def _parts_passed(self, run: Run) -> int:
        share = float(budget.progress(run.config, run.iteration, run.clock.minutes)[0])
        return int((self._parts or 0) * share + 1e-5)


def loop(run: Run, *, matches: Future, stop_requested: Callable[[], bool], save_minutes: float) -> None:
    """Trains until the budget is spent, a stop is requested, or no agent is left; the state is saved then.

    Args:
      matches: compiles what evaluations need, beside the training.
    """
    # Where process 0 plays, the others would wait; so several processes play no matches before the end.
    evaluates = run.config.evaluation.while_training and processes.count() == 1
    if run.iteration == 0 and evaluates:
        run.begin()
    evaluations, saves = Evaluations(run), Timer(save_minutes, run.clock.minutes)
    start = run.iteration
    while True:
        now, is_over, asked = run.clock.minutes, run.is_over(), stop_requested()
        may_evaluate = evaluates and run.iteration > start and not asked
        evaluate = may_evaluate and (evaluations.due(run, matches.done()) or is_over)
        stop, save, *progress = processes.from_first(
            np.array(
                [is_over or asked, saves.due(now) or evaluate, *budget.progress(run.config, run.iteration, now)],
                np.float32,
            )
        )
        if run.failure:
            raise run.failure
        if (save or stop) and not run.saved:  # before an evaluation, which could fail
            run.save()
        if evaluate:
            if not matches.done():
                run.display.say("waiting for the matches to compile")
            with run.clock.measure("compile"):
                matches.result()
            run.evaluate()
        if stop:
            return
        if evaluate:
            if not is_over:  # else the runner sums it up, also what was not evaluated
                run.checkpoints.wait()  # a summary says that there is a checkpoint
                for member in run.members:
                    run.summarise(member)
            start = run.iteration  # and look at the clock again, which an evaluation takes on
            continue
        run.chunk(np.array(progress, np.float32), is_typical=matches.done())
