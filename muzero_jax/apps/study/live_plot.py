"""Curves that grow in a notebook while a run trains: hand its two methods to `muzero_jax.train`.

    plot = LivePlot()
    muzero_jax.train(config, run_dir, on_metrics=plot.on_metrics, on_evaluation=plot.on_evaluation)

One picture is shown at once and then replaced, at most every few seconds, for a drawing takes some tenths of one.
"""

import io
import math
import time
from collections.abc import Callable
from typing import Any

from muzero_jax.run import charts
from muzero_jax.run.metrics import Record

SECONDS = 5.0  # at least between two drawings, unless an evaluation came

Show = Callable[[Any], None]  # shows a figure instead of the last


def shown_in_notebook() -> Show:
    """Shows figures one after the other in the output of the cell that runs; Jupyter alone would need pyplot for it."""
    from IPython.display import Image, display

    handle: list[Any] = []

    def show(figure: Any) -> None:
        figure.savefig(png := io.BytesIO(), format="png")
        if not handle:
            handle.append(display(Image(png.getvalue()), display_id=True))
        elif handle[0] is not None:  # there is none outside of a notebook
            handle[0].update(Image(png.getvalue()))

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
        self._show(charts.draw_progress(self.records))
        self._shown_at = time.monotonic()
