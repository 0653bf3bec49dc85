"""The host's loop, which runs chunk after chunk, with a save or an evaluation between two of them if one is due.

All processes run it. Process 0 reads the clock and the signals, and sends its decisions to the others as a few numbers
before each chunk. The compiled program gets one of them: the spent share of the budget (`budget.progress`).
"""

import math
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from muzero_jax.run import budget, metrics, processes
from muzero_jax.run.run import Run


class Timer:
    """Says when another `minutes` have passed; never if they are 0."""

    def __init__(self, minutes: float, now: float):
        self._minutes = minutes
        self._last = now

    def due(self, now: float) -> bool:
        """True once per interval."""
        if self._minutes <= 0 or now - self._last < self._minutes:
            return False
        self._last = now
        return True


class Evaluations:
    """Says when to evaluate a run before its end: after equal parts of its budget, or at intervals of its clock."""

    def __init__(self, run: Run):
        wanted = run.config.evaluation
        self._parts = wanted.parts
        # Of a resumed run, up to its last evaluation: a kill may have cut off the one after its newest checkpoint.
        records = [metrics.last_evaluation(member.folder) for member in run.members] if run.iteration else [{}]
        measured = max(records, key=lambda record: record.get("iteration", 0))
        self._passed = self._parts_passed(run, measured.get("iteration", 0), measured.get(metrics.MINUTES, 0.0))
        # The first evaluation of a new run is due as soon as the matches are compiled.
        last = run.clock.minutes if run.iteration else -math.inf
        self._timer = Timer(wanted.interval_minutes, last)

    def due(self, run: Run, are_compiled: bool) -> bool:
        """Whether an evaluation is due; at intervals of the clock, only if the matches are compiled."""
        if not self._parts:
            return are_compiled and self._timer.due(run.clock.minutes)
        before = self._passed
        self._passed = self._parts_passed(run, run.iteration, run.clock.minutes)
        return self._passed > before

    def is_behind(self, run: Run) -> bool:
        """Whether a part has passed without its evaluation, in a game that has evaluations."""
        has_matches = any(member.evaluator.has_matches for member in run.members)
        return has_matches and self._parts_passed(run, run.iteration, run.clock.minutes) > self._passed

    def _parts_passed(self, run: Run, iteration: int, minutes: float) -> int:
        share = float(budget.progress(run.config, iteration, minutes)[0])
        return int((self._parts or 0) * share + 1e-5)


def loop(run: Run, *, matches: Future, stop_requested: Callable[[], bool], save_minutes: float) -> None:
    """Trains until the budget is spent, a stop is requested, or no agent is left, and saves the state.

    Args:
      matches: the background task that compiles the matches of evaluations.
    """
    # Several processes play no matches before the end, because all others would wait for process 0.
    evaluates = run.config.evaluation.while_training and processes.count() == 1
    if run.iteration == 0 and evaluates:
        run.begin()
    evaluations = Evaluations(run)
    saves = Timer(save_minutes, run.clock.minutes)
    start = -1 if evaluations.is_behind(run) else run.iteration
    while True:
        now = run.clock.minutes
        is_over = run.is_over()
        asked = stop_requested()
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
            if not is_over:  # at its end, the runner writes the summary
                run.checkpoints.wait()  # a summary says that there is a checkpoint
                for member in run.members:
                    run.summarise(member)
            start = run.iteration  # and read the clock again, because an evaluation takes time
            continue
        run.chunk(np.array(progress, np.float32), is_typical=matches.done())
