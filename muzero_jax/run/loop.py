"""The host's loop, which runs chunk after chunk, with a save or an evaluation between two of them if one is due.

All processes run it. Process 0 reads the clock and the signals, and sends its decisions to the others as a few numbers
before each chunk. The compiled program gets one of them: the spent share of the budget (`budget.progress`).
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from muzero_jax.run import budget, metrics, processes
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.metrics import Callbacks
from muzero_jax.run.run import Result, Run


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
        measured = metrics.last_evaluation(run.folder) if run.iteration else {}
        self._passed = self._parts_passed(run, measured)
        # The first evaluation of a new run is due as soon as the matches are compiled.
        last = run.clock.minutes if run.iteration else -math.inf
        self._timer = Timer(wanted.interval_minutes, last)

    def due(self, run: Run, are_compiled: bool) -> bool:
        """Whether an evaluation is due; at intervals of the clock, only if the matches are compiled."""
        if not self._parts:
            return are_compiled and self._timer.due(run.clock.minutes)
        before = self._passed
        self._passed = self._parts_passed(run, run.spent())
        return self._passed > before

    def is_behind(self, run: Run) -> bool:
        """Whether a part has passed without its evaluation, in a game that has evaluations."""
        return run.evaluator.has_matches and self._parts_passed(run, run.spent()) > self._passed

    def _parts_passed(self, run: Run, done: metrics.Record) -> int:
        share = float(budget.progress(run.config, done, run.program.flops)[0])
        return int((self._parts or 0) * share + 1e-5)


def loop(run: Run, *, matches: Future, stop_requested: Callable[[], bool], save_minutes: float) -> None:
    """Trains until the budget is spent or a stop is requested, and saves the state; raises `Diverged`.

    Args:
      matches: the background task that compiles the matches of evaluations.
    """
    # Several processes play no matches before the end, because all others would wait for process 0.
    evaluates = run.config.evaluation.while_training and processes.count() == 1
    if run.iteration == 0 and evaluates:
        run.keep_untrained()
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
                [is_over or asked, saves.due(now) or evaluate, *run.progress()],
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
            if not is_over:  # at its end, `train_to_end` writes the summary
                run.checkpoints.wait()  # a summary says that there is a checkpoint
                run.summarise()
            start = run.iteration  # and read the clock again, because an evaluation takes time
            continue
        run.chunk(np.array(progress, np.float32), is_typical=matches.done())


def train_to_end(run: Run, interrupt: Interrupt, callbacks: Callbacks) -> Result:
    """Loops until the run or the session is over, and plays the final matches if the run is."""
    tasks = run.evaluator.compilations() if processes.is_first() else []
    with in_background(tasks) as matches:
        with interrupt.by_ctrl_c(), run.display, run.profiler:
            loop(
                run,
                matches=matches,
                stop_requested=lambda: interrupt.requested or callbacks.error is not None,
                save_minutes=run.session.checkpoint_minutes,
            )
        run.checkpoints.wait()  # before the summary, which says that there is a checkpoint
        processes.part()
        if not processes.is_first():
            return Result({}, interrupted=False)
        if run.session.profile:
            run.say(run.profiler.report(run.program.text()))
        summary = run.summarise()
        callbacks.raise_error(run.folder)
        if interrupt.requested:
            return Result(summary, interrupted=True, by_system=interrupt.by_system)
        interrupt.nothing_to_save()
        budget.check_learned(run.config, run.spent())
        run.say("training is over and saved" + ("; now the final matches" if run.evaluator.has_matches else ""))
        with run.clock.measure("compile"):
            matches.result()
        summary = run.conclude()
        callbacks.raise_error(run.folder)
        return Result(summary, interrupted=False)


@contextmanager
def in_background(tasks: Sequence[Callable[[], None]]) -> Iterator[Future]:
    """Calls tasks one after another in a thread; on leaving, waits for the current task and skips the others."""
    leaving = threading.Event()

    def call_all() -> None:
        for task in tasks:
            if not leaving.is_set():
                task()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="background") as thread:
        try:
            yield thread.submit(call_all)
        finally:
            leaving.set()
