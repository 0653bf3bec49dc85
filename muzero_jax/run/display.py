"""A run's display on the screen: a live table while it trains, tables at its end.

rich is imported where it is used, on a terminal alone: importing it takes a while.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from muzero_jax.run import metrics
from muzero_jax.run.tables import align

LINE_SECONDS, TABLE_SECONDS = 5.0, 0.5
"""At least between two lines away from a terminal, and between two drawings of the table: each takes some 10 ms."""

JUMP, AVERAGED_RECORDS = 1.3, 10
"""A loss jumps that exceeds its running mean, over about so many records, by this factor."""
_JUMP = "display/jump"


class _Forgiving:
    """A stream of text that goes silent where writing fails."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes, or not."""
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flushes, or not."""
        self._try(self._stream.flush)

    def _try(self, function: Callable[..., object], *arguments: str) -> None:
        try:
            function(*arguments)
        except OSError:
            with suppress(OSError, ValueError):  # what is left in its buffer needs somewhere to go
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def output_may_end() -> Iterator[None]:
    """Lets a block go on whose terminal is closed, or whose output nobody reads any more (`| tee`, after Ctrl-C)."""
    with redirect_stdout(_Forgiving(sys.stdout)), redirect_stderr(_Forgiving(sys.stderr)):
        yield
        sys.stdout.flush()


class ProgressDisplay:
    """Where a run stands: a line every few seconds, or a live table on a terminal; opened by `with`.

    minutes, last_iteration: where the run stops, whichever comes first, for the time left.
    say: takes a line; where it is `print` and prints to a terminal, there is a table.
    sharers: the runs that print to one terminal, each the less often the more they are.
    """

    def __init__(
        self,
        minutes: float | None,
        last_iteration: int | None = None,
        *,
        say: Callable[[str], None] = print,
        sharers: int = 1,
    ):
        self._minutes, self._last_iteration = minutes, last_iteration
        self._say, self._line_seconds = say, LINE_SECONDS * sharers
        self._live: Any = None
        self._record: metrics.Record = {}
        self._usual_loss: float | None = None
        self._is_shown, self._shown_at = True, -math.inf

    def __enter__(self) -> "ProgressDisplay":
        if self._say is print and sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False)
            self._live.start()
        return self

    def update(self, record: Mapping[str, Any]) -> None:
        """Shows `record`, at once if it brings an evaluation; the table also what earlier ones said and it doesn't.

        A line has what all records of its iteration say.
        """
        goes_on = self._live or record.get("iteration") == self._record.get("iteration")
        self._record = {**self._record, **record} if goes_on else dict(record)
        self._record |= self._jump(record)
        self._is_shown = False
        seconds = TABLE_SECONDS if self._live else self._line_seconds
        if metrics.scores(record) or time.monotonic() - self._shown_at >= seconds:
            self._show()

    def _jump(self, record: Mapping[str, Any]) -> metrics.Record:
        """Says by how much the loss exceeds what it lately was, if that is much."""
        loss, usual = record.get("train/loss"), self._usual_loss
        if loss is None:
            return {}
        self._usual_loss = loss if usual is None else usual + (loss - usual) / AVERAGED_RECORDS
        return {_JUMP: loss / usual - 1 if usual and loss > JUMP * usual else None}

    def __exit__(self, *exception: object) -> None:
        if not self._is_shown:
            self._show()
        if self._live:
            self._live.stop()

    def _show(self) -> None:
        fields = [*_progress(self._record), ("time", self._time(self._record))]
        if self._live:
            from rich.table import Table

            grid = Table.grid(padding=(0, 2))
            for name, text in fields:
                grid.add_row(f"[dim]{name}[/dim]", text)
            self._live.update(grid, refresh=True)
        else:
            self._say(" | ".join(" ".join(field) for field in fields))
            sys.stdout.flush()  # where it is a file, whoever follows that waits for the line
        self._is_shown, self._shown_at = True, time.monotonic()

    def _time(self, record: Mapping[str, Any]) -> str:
        elapsed, iteration = record.get("time/minutes", 0.0), record.get("iteration", 0)
        left = [] if self._minutes is None else [max(0.0, self._minutes - elapsed)]
        if self._last_iteration is not None and iteration:  # at the pace so far
            left.append(elapsed * max(0, self._last_iteration - iteration) / iteration)
        return f"{_clock(elapsed)}, {_clock(min(left))} left" if left else _clock(elapsed)


def _progress(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, text) of what a person wants to know, as far as `record` knows it."""
    losses = [f"{name} {record[key]:.3f}" for key, name in metrics.losses([record]).items()]
    strengths = [f"{opponent} {score:.0%}" for opponent, score in metrics.scores(record).items()]
    counts = {"total/games": "games", **metrics.RATES}
    progress = [("iteration", f"{record.get('iteration', 0):,}")]
    progress += [(name, _short(record[key])) for key, name in counts.items() if key in record]
    if losses:
        jump = record.get(_JUMP)
        progress.append(("loss", ", ".join(losses) + (f"  JUMPED by {jump:.0%}" if jump else "")))
    if strengths:
        progress.append(("score against", ", ".join(strengths)))
    returns = [f"{record[key]:.3g} ({name})" for key, name in metrics.RETURNS.items() if key in record]
    if returns:
        progress.append(("return", ", ".join(returns)))
    if metrics.OPENINGS in record:
        progress.append(("opening-value accuracy", f"{record[metrics.OPENINGS]:.0%}"))
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


def summary_table(rows: Sequence[Mapping[str, str]], title: str) -> None:
    """Prints `rows`, whose keys are the columns, under `title`."""
    lines = align([rows[0], *(row.values() for row in rows)], "<") if rows else []
    print("\n".join([title, *lines]))
