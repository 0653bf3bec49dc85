"""Live learning curves in a notebook: pass the two methods of `LivePlot` to `muzero_jax.train`.

    plot = LivePlot()
    muzero_jax.train(config, run_dir, on_metrics=plot.on_metrics, on_evaluation=plot.on_evaluation)

The picture is replaced at most every few seconds, because drawing takes some tenths of a second.
"""

import io
import math
import time
from typing import Any

from muzero_jax.run import charts
from muzero_jax.run.metrics import Record

SECONDS = 5.0  # the least time between two drawings, except after an evaluation


class LivePlot:
    """Scores and losses so far, in the output of the notebook's cell that runs."""

    def __init__(self):
        self.records: list[Record] = []
        self._picture: Any = None  # IPython's display handle; None outside of a notebook
        self._shown_at = -math.inf

    def on_metrics(self, record: Record) -> None:
        """Stores a record, and draws if the last drawing is older than `SECONDS`."""
        self.records.append(dict(record))
        if time.monotonic() - self._shown_at >= SECONDS:
            self.draw()

    def on_evaluation(self, record: Record) -> None:
        """Draws at once; `on_metrics` has already stored the record."""
        del record
        self.draw()

    def draw(self) -> None:
        """Draws all records so far, and replaces the last picture."""
        from IPython.display import Image, display

        charts.draw_progress(self.records).savefig(png := io.BytesIO(), format="png")
        if self._picture is None:
            self._picture = display(Image(png.getvalue()), display_id=True)
        else:
            self._picture.update(Image(png.getvalue()))
        self._shown_at = time.monotonic()
