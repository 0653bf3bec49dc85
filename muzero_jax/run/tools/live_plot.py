"""Curves that grow in a notebook while a run trains: hand its two methods to `runner.train`.

    plot = LivePlot()
    runner.train(config, session, run_dir, mesh, say, on_metrics=plot.on_metrics, on_evaluation=plot.on_evaluation)

One picture is shown at once and then replaced, at most every few seconds, for a drawing takes some tenths of one.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from muzero_jax.run import metrics
from muzero_jax.run.metrics import Record

SECONDS = 5.0
"""At least between two drawings, unless an evaluation came."""

Show = Callable[[Any], None]
"""Shows a figure in place of the last."""


def shown_in_notebook() -> Show:
    """Shows figures one after the other in the output of the cell that runs."""
    from IPython.display import display

    handle: list[Any] = []

    def show(figure: Any) -> None:
        if not handle:
            handle.append(display(figure, display_id=True))
        elif handle[0] is not None:  # there is none outside of a notebook
            handle[0].update(figure)

    return show


class LivePlot:
    """Scores and losses so far; `show` puts a figure on the screen, by default into the notebook's cell."""

    def __init__(self, show: Show | None = None, *, seconds: float = SECONDS):
        self.records: list[Record] = []
        self._show, self._seconds, self._shown_at = show or shown_in_notebook(), seconds, -math.inf

    def on_metrics(self, record: Record) -> None:
        """Remembers a record, and draws if the last drawing is old."""
        self.records.append(dict(record))
        if time.monotonic() - self._shown_at >= self._seconds:
            self.draw()

    def on_evaluation(self, record: Record) -> None:
        """Draws at once; `on_metrics` has had the record already."""
        del record
        self.draw()

    def draw(self) -> None:
        """Shows all records so far."""
        self._show(metrics.draw_progress(self.records))
        self._shown_at = time.monotonic()
