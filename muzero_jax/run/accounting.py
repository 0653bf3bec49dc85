"""The cost and the work of a run so far, also across resumes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from muzero_jax.run.flops import Flops
from muzero_jax.run.metrics import FLOPS, RANDOM_RETURN, RETURN, RETURNS, Record
from muzero_jax.storage.config import Config


class Clock:
    """Seconds spent by purpose, those of a resumed run's earlier sessions included.

    A run's minutes are those of training and evaluation. Compiling and the final matches are counted apart, so a slow
    start costs no learning. `last` has the seconds of each purpose's last turn.
    """

    def __init__(self, record: Record):
        purposes = "compile", "train", "evaluate", "finish"
        self.seconds: dict[str, float] = {purpose: record.get(f"time/{purpose}", 0.0) for purpose in purposes}
        self.last: dict[str, float] = dict.fromkeys(purposes, 0.0)

    @contextmanager
    def measure(self, purpose: str) -> Iterator[None]:
        """Adds the time of a `with` block to `purpose`."""
        start = time.perf_counter()
        yield
        self.last[purpose] = time.perf_counter() - start
        self.seconds[purpose] += self.last[purpose]

    @property
    def minutes(self) -> float:
        """Minutes of the run so far."""
        return (self.seconds["train"] + self.seconds["evaluate"]) / 60

    def record(self) -> Record:
        """The clock as metrics."""
        spent = {f"time/{purpose}": seconds for purpose, seconds in self.seconds.items()}
        return spent | {"time/minutes": self.minutes}


COMPARED_CHUNKS = 3
NOT_COUNTED = Flops()


class Totals:
    """The work of a run so far, as metrics `total/...`; a resumed run goes on from the last line written.

    `flops` are the floating point operations of one iteration.
    """

    NAMES = {
        "selfplay/games": "total/games",
        "selfplay/decisive_games": "total/decisive_games",
        "selfplay/frames": "total/frames",
        "train/updates": "total/updates",
    }
    """The counts of an iteration, each with the name of its total."""

    def __init__(self, config: Config, record: Record, flops: Flops = NOT_COUNTED):
        self._flops = flops
        self.plays = config.offline is None
        self._simulations = config.simulations_per_move
        self._counted = self.NAMES if self.plays else {"train/updates": "total/updates"}
        totals = (*self._counted.values(), *(["total/simulations"] if self.plays else []))
        self.counts = {name: record.get(name, 0.0) for name in (*totals, FLOPS)}
        self.self_play_share: float | None = record.get("time/self_play_share")
        self.mean_return: float | None = record.get(RETURN)  # the newest; None in a two-player game
        self.random_return: float | None = record.get(RANDOM_RETURN)
        self._filling: list[float] = []  # seconds an iteration
        self._learning: list[float] = []

    def add(self, metrics: dict[str, np.ndarray], seconds: float) -> Record:
        """One chunk's metrics (leading axis: iterations) as a record: totals so far, rates now, means of the losses."""
        chunk = {name: float(metrics[name].sum()) for name in self._counted}
        for name, total in self._counted.items():
            self.counts[total] += chunk[name]
        rates = self._play_rates(metrics, seconds) if self.plays else {}
        learned = metrics["train/updates"] > 0
        self.counts[FLOPS] += float(len(learned) * self._flops.always + learned.sum() * self._flops.at_times)
        self._estimate_share(learned, seconds / len(learned))
        losses = {
            name: float(values[learned].mean())
            for name, values in metrics.items()
            if name.startswith("train/") and name not in self.NAMES and learned.any()
        }
        rates["train/updates_per_second"] = chunk["train/updates"] / seconds
        rates["time/seconds_per_iteration"] = seconds / len(learned)
        return self.record() | losses | rates

    def _play_rates(self, metrics: dict[str, np.ndarray], seconds: float) -> Record:
        """The pace of self-play in a chunk, whose simulations are added to the total."""
        names = "games", "frames", "finished_frames"
        games, frames, finished_frames = (float(metrics[f"selfplay/{name}"].sum()) for name in names)
        simulations = frames * self._simulations
        self.counts["total/simulations"] += simulations
        rates: Record = {
            "selfplay/frames_per_second": frames / seconds,
            "selfplay/simulations_per_second": simulations / seconds,
        }
        if games:
            rates["selfplay/mean_length"] = finished_frames / games
        if games and "selfplay/finished_returns" in metrics:
            rates[RETURN] = self.mean_return = float(metrics["selfplay/finished_returns"].sum()) / games
        return rates

    @property
    def updates(self) -> int:
        """Gradient steps so far."""
        return int(self.counts["total/updates"])

    def record(self) -> Record:
        """The totals that a resumed run goes on from."""
        known = {"time/self_play_share": self.self_play_share, RANDOM_RETURN: self.random_return}
        return self.counts | {name: value for name, value in known.items() if value is not None}

    def _estimate_share(self, learned: np.ndarray, seconds: float) -> None:
        """Self-play's share of an iteration that learns, by the last that did not and the first that did.

        In one program with learning, self-play runs alone only while the buffer fills; chunks close in time are
        compared, because what else keeps the machine busy slows both. If learning seems to cost nothing all the same,
        the share is not known.
        """
        if not learned.any():
            self._filling.append(seconds)
        elif learned.all() and self._filling and len(self._learning) < COMPARED_CHUNKS:
            self._learning.append(seconds)
            filling = np.mean(self._filling[-COMPARED_CHUNKS:])
            share = float(filling / np.mean(self._learning))
            self.self_play_share = share if share < 1.0 else None

    def summary(self, seconds: float) -> dict[str, Record]:
        """Totals, mean rates over the run's `seconds` of self-play and learning, and a single-player game's returns."""
        names = ("games", "frames", "simulations", "updates") if self.plays else ("updates",)
        totals = {name: self.counts[f"total/{name}"] for name in names}
        rates = {name: total / max(seconds, 1e-9) for name, total in totals.items()}
        flops = self.counts[FLOPS]
        summary = {"totals": totals, "rates": rates, "flops": {"total": flops, "rate": flops / max(seconds, 1e-9)}}
        if self.mean_return is not None:
            summary["returns"] = {RETURNS[RETURN]: self.mean_return, RETURNS[RANDOM_RETURN]: self.random_return}
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
