"""Curves that grow in a notebook while a run trains: hand its two methods to `muzero_jax.train`.

    plot = LivePlot()
    muzero_jax.train(config, run_dir, on_metrics=plot.on_metrics, on_evaluation=plot.on_evaluation)

One picture is shown at once and then replaced, at most every few seconds, for a drawing takes some tenths of one.
"""

import io
import math
import time
from typing import Any

from muzero_jax.run import charts
from muzero_jax.run.metrics import Record

SECONDS = 5.0  # at least between two drawings, unless an evaluation came


class LivePlot:
    """Scores and losses so far, in the output of the notebook's cell that runs."""

    def __init__(self):
        self.records: list[Record] = []
        self._picture: Any = None  # IPython's handle of what is shown; there is none outside of a notebook
        self._shown_at = -math.inf

    def on_metrics(self, record: Record) -> None:
        """Remembers a record, and draws if the last drawing is old."""
        self.records.append(dict(record))
        if time.monotonic() - self._shown_at >= SECONDS:
            self.draw()

    def on_evaluation(self, record: Record) -> None:
        """Draws at once; `on_metrics` has had the record already."""
        del record
        self.draw()

    def draw(self) -> None:
        """Shows all records so far in place of the last picture; Jupyter alone would need pyplot for it."""
        from IPython.display import Image, display

        charts.draw_progress(self.records).savefig(png := io.BytesIO(), format="png")
        if self._picture is None:
            self._picture = display(Image(png.getvalue()), display_id=True)
        else:
            self._picture.update(Image(png.getvalue()))
        self._shown_at = time.monotonic()
