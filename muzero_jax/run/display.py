"""A run's display on the screen: a live table while it trains, tables at its end.

rich is imported where it is used, on a terminal alone: importing it takes a while.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muzero_jax.run import metrics

LINE_SECONDS, TABLE_SECONDS = 5.0, 0.5
"""At least between two lines away from a terminal, and between two drawings of the table: each takes some 10 ms."""

JUMP, AVERAGED_RECORDS = 1.3, 10
"""A loss jumps that exceeds its running mean, over about so many records, by this factor."""
_JUMP = "display/jump"


class ProgressDisplay:
    """Where a run stands: a line every few seconds, or a live table on a terminal; opened by `with`.

    minutes, last_iteration: where the run stops, whichever comes first, for the time left.
    say: takes a line; where it is `print` and prints to a terminal, there is a table.
    names: of the agents that are trained together, each of which has a column; or a line, the less often.
    """

    def __init__(
        self,
        minutes: float | None,
        last_iteration: int | None = None,
        *,
        say: Callable[[str], None] = print,
        names: Sequence[str] = ("",),
    ):
        self.say = say
        self._minutes, self._last_iteration = minutes, last_iteration
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

    def update(self, record: Mapping[str, Any], name: str = "") -> None:
        """Shows an agent's record, at once if it brings an evaluation; the table also what earlier ones said.

        A line has what all records of its iteration say.
        """
        before = self._records[name]
        is_kept = self._live or record.get("iteration") == before.get("iteration")
        self._records[name] = {**(before if is_kept else {}), **record, **self._jump(record, name)}
        self._unshown[name] = None
        seconds = TABLE_SECONDS if self._live else self._line_seconds
        if metrics.scores(record) or (
            time.monotonic() - self._shown_at >= seconds and len(self._unshown) == len(self._records)
        ):
            self._show()

    def drop(self, name: str, why: str) -> None:
        """Shows an agent of several no more, and says why."""
        if len(self._records) > 1:
            del self._records[name]
            self._unshown.pop(name, None)
            self.say(f"{name}: {why}")

    def _jump(self, record: Mapping[str, Any], name: str) -> metrics.Record:
        """Says by how much the loss exceeds what it lately was, if that is much."""
        loss = record.get("train/loss")
        if loss is None:
            return {}
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
            sys.stdout.flush()  # where it is a file, whoever follows that waits for the line
        self._unshown, self._shown_at = {}, time.monotonic()

    def _fields(self, record: Mapping[str, Any]) -> dict[str, str]:
        return dict(_progress(record)) | {"time": self._time(record)}

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
