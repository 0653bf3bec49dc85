"""What a run shows to whoever watches: a live table while it trains, tables at its end.

rich is imported where it is used, on a terminal alone: importing it takes a while.
"""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from muzero_jax.evaluation.tables import align
from muzero_jax.run import metrics

PLAIN_SECONDS = 5.0
"""At least between two lines away from a terminal, unless one tells how an evaluation went."""
TABLE_SECONDS = 0.5
"""At least between two drawings of the table: each takes some 10 ms, in which a short chunk of a run could be over."""


class ProgressDisplay:
    """Where a run stands: a live table on a terminal, otherwise a line every few seconds; opened by `with`.

    minutes, max_iterations: where the run stops, whichever comes first, for the time left.
    """

    def __init__(self, minutes: float, max_iterations: int | None = None, *, stream: Any = None):
        self._minutes, self._max_iterations = minutes, max_iterations
        self._stream = stream
        self._live: Any = None
        self._latest: metrics.Record = {}
        self._waiting: Mapping[str, Any] = {}  # the newest record, until there is a line of it
        self._told = -math.inf  # the minute of the last line
        self._drawn = -math.inf  # the second of the last table

    def __enter__(self) -> "ProgressDisplay":
        if (self._stream or sys.stdout).isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), auto_refresh=False)
            self._live.start()
        return self

    def update(self, record: Mapping[str, Any]) -> None:
        """Shows `record`; the table also what earlier ones said and it doesn't, as evaluations are rare."""
        if self._live is None:
            self._waiting, minutes = record, record.get("time/minutes", 0.0)
            if minutes - self._told >= PLAIN_SECONDS / 60 or metrics.scores(record):
                self._told = minutes
                self._print()
            return
        self._latest.update(record)
        if time.monotonic() - self._drawn >= TABLE_SECONDS:
            self._draw()

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            if self._latest:
                self._draw()
            self._live.stop()
        elif self._waiting:
            self._print()

    def _draw(self) -> None:
        from rich.table import Table

        grid = Table.grid(padding=(0, 2))
        for name, text in self._fields(self._latest):
            grid.add_row(f"[dim]{name}[/dim]", text)
        self._live.update(grid, refresh=True)
        self._drawn = time.monotonic()

    def _print(self) -> None:
        print(" | ".join(" ".join(field) for field in self._fields(self._waiting)), file=self._stream, flush=True)
        self._waiting = {}

    def _fields(self, record: Mapping[str, Any]) -> list[tuple[str, str]]:
        elapsed, iteration = record.get("time/minutes", 0.0), record.get("iteration", 0)
        left = max(0.0, self._minutes - elapsed)
        if self._max_iterations is not None and iteration:  # at the pace so far, compilation included
            left = min(left, elapsed * max(0, self._max_iterations - iteration) / iteration)
        return [*_progress(record), ("time", f"{_clock(elapsed)}, {_clock(left)} left")]


def _progress(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, text) of what a person wants to know, as far as `record` knows it."""
    losses = [f"{name} {record[key]:.3f}" for key, name in metrics.LOSSES.items() if key in record]
    strengths = [f"{opponent} {score:.0%}" for opponent, score in metrics.scores(record).items()]
    counts = {"selfplay/games": "games", **metrics.RATES}
    progress = [("iteration", f"{record.get('iteration', 0):,}")]
    progress += [(name, _short(record[key])) for key, name in counts.items() if key in record]
    if losses:
        progress.append(("loss", ", ".join(losses)))
    if strengths:
        progress.append(("score against", ", ".join(strengths)))
    if metrics.ELO in record:
        progress.append(("Elo", f"{record[metrics.ELO]:+z.0f}"))
    return progress


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def _clock(minutes: float) -> str:
    hours, rest = divmod(round(minutes * 60), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def summary_table(rows: Sequence[Mapping[str, Any]], title: str, *, stream: Any = None) -> None:
    """Prints `rows`, whose keys are the columns, under `title`: drawn on a terminal, plainly aligned elsewhere."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[str(row.get(name, "")) for name in columns] for row in rows]
    if (stream or sys.stdout).isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*columns, title=title, title_justify="left")
        for row in cells:
            table.add_row(*row)
        Console(file=stream).print(table)
        return
    print("\n".join([title, *align([columns, *cells], "<")]), file=stream)
