"""What a run has cost and done so far, also across resumes; and Ctrl-C as a flag."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from muzero_jax.run.metrics import Record
from muzero_jax.storage.config import Config


class Clock:
    """Seconds spent by purpose, those of a resumed run's earlier sessions included."""

    def __init__(self, record: Record):
        self.seconds = {purpose: record.get(f"time/{purpose}", 0.0) for purpose in ("compile", "train", "evaluate")}

    @contextmanager
    def measure(self, purpose: str) -> Iterator[None]:
        """Adds the time of a `with` block to `purpose`."""
        start = time.perf_counter()
        yield
        self.seconds[purpose] += time.perf_counter() - start

    @property
    def minutes(self) -> float:
        """Minutes of the run so far."""
        return sum(self.seconds.values()) / 60

    def record(self) -> Record:
        """The clock as metrics."""
        spent = {f"time/{purpose}": seconds for purpose, seconds in self.seconds.items()}
        return spent | {"time/minutes": self.minutes}


class Interrupt:
    """Turns the first Ctrl-C into a flag that the loop reads between chunks; a second one stops at once."""

    def __init__(self):
        self.requested = False

    def __enter__(self) -> "Interrupt":
        self._previous = signal.signal(signal.SIGINT, self._request)
        return self

    def _request(self, signum, frame):
        del signum, frame
        self.requested = True
        signal.signal(signal.SIGINT, self._previous)

    def __exit__(self, *exception):
        signal.signal(signal.SIGINT, self._previous)


class Totals:
    """What a run has done so far, as metrics; a resumed run goes on from the last line written."""

    COUNTED = ("selfplay/games", "selfplay/frames", "selfplay/decisive_games", "train/updates")

    def __init__(self, config: Config, record: Record):
        self._simulations = config.search.num_simulations
        self.counts = {name: record.get(name, 0.0) for name in self.COUNTED}
        self.self_play_seconds_per_iteration = record.get("time/self_play_per_iteration", 0.0)

    def add(self, metrics: dict[str, np.ndarray], seconds: float) -> Record:
        """One chunk's metrics (leading axis: iterations) as a record: counts so far, rates now, means of the losses."""
        chunk = {name: float(metrics[name].sum()) for name in self.COUNTED}
        self.counts = {name: self.counts[name] + chunk[name] for name in self.COUNTED}
        learned = metrics["train/updates"] > 0
        if not learned.any():  # in one program with learning, self-play can be timed alone only while the ring fills
            self.self_play_seconds_per_iteration = seconds / len(learned)
        losses = {
            name: float(values[learned].mean())
            for name, values in metrics.items()
            if name.startswith("train/") and name not in self.counts and learned.any()
        }
        rates: Record = {
            "selfplay/frames_per_second": chunk["selfplay/frames"] / seconds,
            "selfplay/simulations_per_second": chunk["selfplay/frames"] * self._simulations / seconds,
            "selfplay/mean_length": chunk["selfplay/frames"] / max(chunk["selfplay/games"], 1.0),
            "train/updates_per_second": chunk["train/updates"] / seconds,
            "time/seconds_per_iteration": seconds / len(learned),
        }
        return self.record() | losses | rates

    def record(self) -> Record:
        """What a resumed run goes on from."""
        return self.counts | {"time/self_play_per_iteration": self.self_play_seconds_per_iteration}

    def summary(self, seconds: float) -> dict[str, Record]:
        """Totals and mean rates over the run's `seconds` of self-play and learning."""
        totals = {
            "games": self.counts["selfplay/games"],
            "frames": self.counts["selfplay/frames"],
            "simulations": self.counts["selfplay/frames"] * self._simulations,
            "updates": self.counts["train/updates"],
        }
        return {"totals": totals, "rates": {name: total / max(seconds, 1e-9) for name, total in totals.items()}}
