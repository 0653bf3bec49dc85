"""A run's display on the screen: a live table while it trains, tables at its end.

rich is imported where it is used, only on a terminal, because importing it takes time.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from muzero_jax.run import metrics

LINE_SECONDS, TABLE_SECONDS = 5.0, 0.5
"""The least time between two lines without a terminal, and between two drawings of the table, which take 10 ms each."""

JUMP, AVERAGED_RECORDS = 1.3, 10
"""A loss has jumped if it exceeds `JUMP` times its running mean over about `AVERAGED_RECORDS` records."""
_JUMP = "display/jump"


class ProgressDisplay:
    """The progress of a run: a line every few seconds, or a live table on a terminal; used in a `with` statement.

    say: prints a line. If it is `print` and stdout is a terminal, there is a table instead.
    """

    def __init__(self, say: Callable[[str], None] = print):
        self.say = say
        self._spent = 0.0
        self._record: metrics.Record = {}
        self._usual_losses: dict[Any, float] = {}
        self._live: Any = None
        self._is_unshown = False
        self._shown_at = -math.inf

    def __enter__(self) -> "ProgressDisplay":
        if self.say is print and sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False)
            self._live.start()
        return self

    def update(self, record: Mapping[str, Any], spent: float = 0.0) -> None:
        """Shows a record, immediately if it has an evaluation; the table also shows values of earlier records.

        A line combines all records of its iteration. `spent` is the spent share of the budget, for the time left.
        """
        self._spent = spent
        is_kept = self._live or record.get("iteration") == self._record.get("iteration")
        self._record = {**(self._record if is_kept else {}), **record, **self._jump(record)}
        self._is_unshown = True
        seconds = TABLE_SECONDS if self._live else LINE_SECONDS
        if metrics.scores(record) or time.monotonic() - self._shown_at >= seconds:
            self._show()

    def _jump(self, record: Mapping[str, Any]) -> metrics.Record:
        """By how much the loss exceeds its running mean, if it has jumped."""
        loss = record.get("train/loss")
        if loss is None:
            return {}
        board_size = record.get("train/board_size")  # each has its own usual loss
        usual = self._usual_losses.get(board_size, loss)
        self._usual_losses[board_size] = usual + (loss - usual) / AVERAGED_RECORDS
        return {_JUMP: loss / usual - 1 if usual and loss > JUMP * usual else None}

    def __exit__(self, *exception: object) -> None:
        if self._is_unshown:
            self._show()
        if self._live:
            self._live.stop()

    def _show(self) -> None:
        fields = self._fields(self._record)
        if self._live:
            from rich.table import Table

            grid = Table.grid(padding=(0, 2))
            for label, text in fields.items():
                grid.add_row(f"[dim]{label}[/dim]", text)
            self._live.update(grid, refresh=True)
        else:
            self.say(" | ".join(" ".join(field) for field in fields.items()))
            sys.stdout.flush()  # so that a log file has the line at once
        self._is_unshown = False
        self._shown_at = time.monotonic()

    def _fields(self, record: Mapping[str, Any]) -> dict[str, str]:
        """The record's values for the display, as text by label."""
        elapsed = record.get(metrics.MINUTES, 0.0)
        jump = record.get(_JUMP)
        scores = metrics.scores(record)
        counts = {"total/games": "games", **metrics.RATES}
        losses = ", ".join(f"{name} {record[key]:.3f}" for key, name in metrics.losses([record]).items())
        returns = (f"{record[key]:.3g} ({name})" for key, name in metrics.RETURNS.items() if key in record)
        rest = {
            "loss": losses + (f"  JUMPED by {jump:.0%}" if jump else ""),
            "score against": ", ".join(
                f"{name} {score:.0%}" for name, score in scores.items() if not metrics.is_points(name)
            ),
            "points a game against": ", ".join(
                f"{metrics.opponent_of(name)} {mean:+.3f}" for name, mean in scores.items() if metrics.is_points(name)
            ),
            "return": ", ".join(returns),
            "opening-value accuracy": f"{record[metrics.OPENINGS]:.0%}" if metrics.OPENINGS in record else "",
            "exploitability": f"{record[metrics.EXPLOITABILITY]:.4f}" if metrics.EXPLOITABILITY in record else "",
            "Elo": f"{record[metrics.ELO]:+z.0f}" if metrics.ELO in record else "",
            "time": _clock(elapsed) + (f", {_clock(elapsed * (1 / self._spent - 1))} left" if self._spent else ""),
        }
        first = {name: _short(record[key]) for key, name in counts.items() if key in record}
        fields = {"iteration": f"{record.get('iteration', 0):,}"} | first | rest
        return {label: text for label, text in fields.items() if text}


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def _clock(minutes: float) -> str:
    hours, rest = divmod(round(minutes * 60), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
