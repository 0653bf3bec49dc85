"""A run's display on the screen: a live table while it trains, tables at its end.

rich is imported where it is used, only on a terminal, because importing it takes time.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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
    names: of the agents that are trained together. Each has a column of the table, or its own, less frequent lines.
    """

    def __init__(self, say: Callable[[str], None] = print, names: Sequence[str] = ("",)):
        self.say = say
        self._spent = 0.0
        self._line_seconds = LINE_SECONDS * len(names)
        self._records: dict[str, metrics.Record] = {name: {} for name in names}
        self._usual_losses: dict[str, float] = {}
        self._live: Any = None
        self._unshown: dict[str, None] = {}  # names, in the order of their records
        self._shown_at = -math.inf

    def __enter__(self) -> "ProgressDisplay":
        if self.say is print and sys.stdout.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False)
            self._live.start()
        return self

    def update(self, record: Mapping[str, Any], name: str = "", spent: float = 0.0) -> None:
        """Shows an agent's record, immediately if it has an evaluation; the table also shows values of earlier records.

        A line combines all records of its iteration. `spent` is the spent share of the budget, for the time left.
        """
        before = self._records[name]
        self._spent = spent
        is_kept = self._live or record.get("iteration") == before.get("iteration")
        self._records[name] = {**(before if is_kept else {}), **record, **self._jump(record, name)}
        self._unshown[name] = None
        seconds = TABLE_SECONDS if self._live else self._line_seconds
        if metrics.scores(record) or (
            time.monotonic() - self._shown_at >= seconds and len(self._unshown) == len(self._records)
        ):
            self._show()

    def drop(self, name: str, why: str) -> None:
        """Stops showing one of several agents, and says why."""
        if len(self._records) > 1:
            del self._records[name]
            self._unshown.pop(name, None)
            self.say(f"{name}: {why}")

    def _jump(self, record: Mapping[str, Any], name: str) -> metrics.Record:
        """By how much the loss exceeds its running mean, if it has jumped."""
        loss = record.get("train/loss")
        if loss is None:
            return {}
        name = f"{name} {record.get('train/board_size')}"  # each board size has its own usual loss
        usual = self._usual_losses.get(name, loss)
        self._usual_losses[name] = usual + (loss - usual) / AVERAGED_RECORDS
        return {_JUMP: loss / usual - 1 if usual and loss > JUMP * usual else None}

    def __exit__(self, *exception: object) -> None:
        if self._unshown:
            self._show()
        if self._live:
            self._live.stop()

    def _show(self) -> None:
        shown = {name: self._fields(self._records[name]) for name in (self._records if self._live else self._unshown)}
        if self._live:
            from rich.table import Table

            grid = Table.grid(padding=(0, 2))
            if len(shown) > 1:
                grid.add_row("", *(f"[bold]{name}[/bold]" for name in shown))
            for label in dict.fromkeys(label for fields in shown.values() for label in fields):
                grid.add_row(f"[dim]{label}[/dim]", *(fields.get(label, "") for fields in shown.values()))
            self._live.update(grid, refresh=True)
        else:
            for name, fields in shown.items():
                line = " | ".join(" ".join(field) for field in fields.items())
                self.say(f"{name}: {line}" if name else line)
            sys.stdout.flush()  # so that a log file has the line at once
        self._unshown = {}
        self._shown_at = time.monotonic()

    def _fields(self, record: Mapping[str, Any]) -> dict[str, str]:
        """The record's values for the display, as text by label."""
        elapsed = record.get("time/minutes", 0.0)
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
