"""The cost and the work of a run so far, also across resumes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from muzero_jax.config.config import Config
from muzero_jax.run.flops import Flops
from muzero_jax.run.metrics import FLOPS, MINUTES, RANDOM_RETURN, RETURN, RETURNS, Record


class Clock:
    """Seconds spent by purpose, including those of a resumed run's earlier sessions.

    A run's minutes are those of training and evaluation. Compiling and the final matches are counted separately, so
    that a slow start does not shorten the training.
    """

    def __init__(self, record: Record):
        purposes = "compile", "train", "evaluate", "finish"
        self.seconds: dict[str, float] = {purpose: record.get(f"time/{purpose}", 0.0) for purpose in purposes}

    @contextmanager
    def measure(self, purpose: str) -> Iterator[None]:
        """Adds the time of a `with` block to `purpose`."""
        start = time.perf_counter()
        yield
        self.seconds[purpose] += time.perf_counter() - start

    @property
    def minutes(self) -> float:
        """Minutes of the run so far."""
        return (self.seconds["train"] + self.seconds["evaluate"]) / 60

    def record(self) -> Record:
        """The clock as metrics."""
        spent = {f"time/{purpose}": seconds for purpose, seconds in self.seconds.items()}
        return spent | {MINUTES: self.minutes}


COUNTED = {
    "selfplay/games": "total/games",
    "selfplay/decisive_games": "total/decisive_games",
    "selfplay/frames": "total/frames",
    "train/updates": "total/updates",
}
"""The counts of an iteration, and the metrics that are their sums."""
SIMULATIONS = "total/simulations"


class Totals:
    """The work of an agent so far, as metrics `total/...`; a resumed run continues from its last record."""

    def __init__(self, config: Config, record: Record, flops: Flops):
        self.plays = config.offline is None
        self._flops = flops  # of an iteration
        self._counted = COUNTED if self.plays else {"train/updates": COUNTED["train/updates"]}
        totals = [*self._counted.values(), FLOPS]
        kept = {name: record[name] for name in (*totals, SIMULATIONS, RANDOM_RETURN) if name in record}
        self.record: Record = dict.fromkeys(totals, 0.0) | kept
        """The part of every record from which a resumed run continues."""
        self.mean_return: float | None = record.get(RETURN)  # the newest; None in a two-player game

    def add(self, metrics: dict[str, np.ndarray], seconds: float) -> Record:
        """A chunk's metrics (leading axis: iterations) as a record: totals so far, current rates, mean losses."""
        for name, total in self._counted.items():
            self.record[total] += float(metrics[name].sum())
        rates = self._play_rates(metrics, seconds) if self.plays else {}
        learned = metrics["train/updates"] > 0
        self.record[FLOPS] += float(len(learned) * self._flops.always + learned.sum() * self._flops.at_times)
        losses = {
            name: float(values[learned].mean())
            for name, values in metrics.items()
            if name.startswith("train/") and name not in COUNTED and learned.any()
        }
        rates["train/updates_per_second"] = float(metrics["train/updates"].sum()) / seconds
        rates["time/seconds_per_iteration"] = seconds / len(learned)
        return self.record | losses | rates

    def _play_rates(self, metrics: dict[str, np.ndarray], seconds: float) -> Record:
        """The rates of self-play in a chunk, lengths those of whole games; also adds its simulations to the total."""
        frames, finished_frames = (float(metrics[f"selfplay/{name}"].sum()) for name in ("frames", "finished_frames"))
        rates: Record = {"selfplay/frames_per_second": frames / seconds}
        if "selfplay/simulations" in metrics:
            simulations = float(metrics["selfplay/simulations"].sum())
            self.record[SIMULATIONS] = self.record.get(SIMULATIONS, 0.0) + simulations
            rates["selfplay/simulations_per_second"] = simulations / seconds
        whole = float(metrics.get("selfplay/whole_games", metrics["selfplay/games"]).sum())
        if whole:
            rates["selfplay/mean_length"] = finished_frames / whole
        if whole and "selfplay/finished_returns" in metrics:
            rates[RETURN] = self.mean_return = float(metrics["selfplay/finished_returns"].sum()) / whole
        return rates

    def summary(self, seconds: float) -> dict[str, Record]:
        """Totals, mean rates over the run's `seconds` of training, and a single-player game's returns."""
        names = ("games", "frames", "simulations", "updates") if self.plays else ("updates",)
        totals = {name: self.record[f"total/{name}"] for name in names if f"total/{name}" in self.record}
        flops = self.record[FLOPS]
        seconds = max(seconds, 1e-9)
        rates = {name: total / seconds for name, total in totals.items()}
        summary = {"totals": totals, "rates": rates, "flops": {"total": flops, "rate": flops / seconds}}
        if self.mean_return is not None:
            summary["returns"] = {
                RETURNS[RETURN]: self.mean_return,
                RETURNS[RANDOM_RETURN]: self.record.get(RANDOM_RETURN),
            }
        return summary


def split_time(clock: Clock, totals: Totals) -> dict[str, float]:
    """Seconds by purpose. Self-play and learning are one program, so only `--profile` tells them apart."""
    if not totals.plays:
        purpose = "learning"
    elif not totals.record["total/updates"]:
        purpose = "self-play"
    else:
        purpose = "self-play and learning"
    seconds = {
        purpose: clock.seconds["train"],
        "evaluation": clock.seconds["evaluate"],
        "compilation": clock.seconds["compile"],
    }
    return seconds | ({"final matches": clock.seconds["finish"]} if clock.seconds["finish"] else {})
