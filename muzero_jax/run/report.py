"""The reports of a run: records in a file and on the screen, and its present state in `summary.json`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.own.files import write_whole
from muzero_jax.run import metrics
from muzero_jax.run.accounting import Clock, Totals
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.display import ProgressDisplay
from muzero_jax.run.evaluator import Evaluator
from muzero_jax.run.memory import Meter
from muzero_jax.run.metrics import Record
from muzero_jax.storage import run_directory


class Reporter(NamedTuple):
    """Where records go, and what else is known of the run."""

    run_dir: Path
    write: Callable[[Record], None]
    say: Callable[[str], None]
    display: ProgressDisplay
    callbacks: Callbacks  # which `write` calls
    clock: Clock
    totals: Totals
    evaluator: Evaluator
    meter: Meter
    machine: dict[str, Any]  # the devices, the precision, and the bytes a device that were planned

    def report(self, record: Record) -> None:
        """Writes and shows one record, with the clock added; ValueError if the run's folder is gone."""
        record = record | self.clock.record()
        self.write(record)
        self.display.update(record)

    def spent(self, iteration: int) -> Record:
        """The work and the cost of the run so far."""
        return {"iteration": iteration} | self.totals.record() | self.clock.record()

    def conclude(self, iteration: int, found: dict[str, Any] | None = None) -> dict[str, Any]:
        """Draws the run's curves, and writes how it stands at `iteration`; returns what the summary holds.

        `found` is what the evaluator concluded with, without which the run is not finished.
        """
        machine = dict(self.machine)
        memory = {"planned": machine.pop("planned"), "peak": self.meter.peak}  # bytes a device
        summary = {"iteration": iteration, "finished": found is not None, "strength": {}} | (found or {})
        summary |= {"elo": self.evaluator.ratings(), "memory": memory} | machine
        summary |= self.totals.summary(self.clock.seconds["train"])
        summary["seconds"] = split_time(self.clock, self.totals)
        if any(self.totals.counts.values()):
            metrics.plot_curves(self.run_dir)
        # Last: it says that the run has ended, and then nothing may be missing.
        write_whole(self.run_dir / run_directory.SUMMARY, json.dumps(summary, indent=2))
        return summary


def split_time(clock: Clock, totals: Totals) -> dict[str, float]:
    """Seconds by purpose; self-play's share of the one program is an estimate (`Totals.self_play_share`)."""
    program, share = clock.seconds["train"], totals.self_play_share
    parts = {"self-play and learning": program}
    if not totals.plays:
        parts = {"learning": program}
    elif not totals.updates:
        parts = {"self-play": program}
    elif share is not None:
        parts = {"self-play": share * program, "learning": (1 - share) * program}
    seconds = parts | {"evaluation": clock.seconds["evaluate"], "compilation": clock.seconds["compile"]}
    return seconds | ({"final matches": clock.seconds["finish"]} if clock.seconds["finish"] else {})
