"""A short real run, through `runner.train`: where its time goes, how busy the machine is, how much memory it takes."""

import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import jax

from muzero_jax.arithmetic import devices
from muzero_jax.arithmetic.devices import format_bytes
from muzero_jax.run import runner
from muzero_jax.run.session import Session
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from scripts.report.arithmetic_section import Say
from scripts.report.formatting import NOTHING, three_digits
from scripts.report.machine import Machine, gpu_busy_percent
from scripts.report.records import BarPlot, Section, Table
from scripts.report.throughput import describe


class Run(NamedTuple):
    """What a short run told, and what was seen of the machine meanwhile."""

    config: Config
    num_devices: int
    seconds: dict[str, float]  # by purpose, as the run's own summary.json has them
    rates: dict[str, float]  # per second of self-play and learning
    cpu_busy: dict[str, float]  # CPU time of the process over that of all usable cores, by phase of the run
    gpu_busy: dict[str, float]  # mean of nvidia-smi's readings, by phase; empty where there is none


class Reading(NamedTuple):
    """What nvidia-smi said, and when."""

    asked: float
    answered: float
    busy: float


READING_SECONDS = 1.0
"""Between two readings, and the longest time before one that nvidia-smi takes its mean over."""


def short_run(config: Config, say: Say) -> Run:
    """Trains in a temporary folder, which is deleted afterwards, on as many devices as divide its games."""
    count = devices.largest_divisor(len(jax.devices()), *config.shared_sizes)
    phases = Phases(say)
    readings = GpuReadings()
    watching = readings if jax.default_backend() == "gpu" else nullcontext()  # else a GPU may idle beside
    with tempfile.TemporaryDirectory() as folder, watching:
        run_dir = run_directory.prepare(Path(folder) / "run")
        session = Session(tensorboard=False, checkpoint_minutes=0.0)
        summary = runner.train(config, session, run_dir, devices.make_mesh(count), phases.say).summary
        phases.end()
    if not summary:
        raise KeyboardInterrupt
    seconds, rates = summary["seconds"], summary["rates"]
    return Run(config, count, seconds, rates, phases.cpu_busy(), phases.gpu_busy(readings.values))


class Phases:
    """A run's messages say when a phase of it begins; here each is passed on, and both clocks are read."""

    def __init__(self, say: Say):
        self._say = say
        self._marks: list[tuple[str, float, float]] = []

    def say(self, text: str) -> None:
        self._say(text)
        if "\n" not in text:  # the memory plan begins no phase
            self._mark(text)

    def end(self) -> None:
        """Says that the last phase is over."""
        self._mark("end")

    def _mark(self, text: str) -> None:
        times = os.times()
        self._marks.append((text, time.perf_counter(), times.user + times.system))

    def cpu_busy(self) -> dict[str, float]:
        """Share of all usable cores' time that this process used in each phase."""
        cores = devices.usable_cores()
        phases = pairwise(self._marks)
        return {text: (cpu - cpu_0) / (cores * (wall - wall_0)) for (text, wall_0, cpu_0), (_, wall, cpu) in phases}

    def gpu_busy(self, readings: Sequence[Reading]) -> dict[str, float]:
        """Mean of the readings that are of one phase alone: all that they tell of lies in it. A phase may have none."""
        of_phase = {
            text: [r.busy for r in readings if begin <= r.asked - READING_SECONDS and r.answered <= end]
            for (text, begin, _), (_, end, _) in pairwise(self._marks)
        }
        return {text: mean(values) for text, values in of_phase.items() if values}


class GpuReadings:
    """Reads nvidia-smi once a second while a `with` block runs; `values` stays empty where there is none."""

    def __init__(self):
        self.values: list[Reading] = []
        self._over = threading.Event()

    def __enter__(self) -> "GpuReadings":
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def _read(self) -> None:
        asked = time.perf_counter()
        while (percent := gpu_busy_percent()) is not None:
            self.values.append(Reading(asked, time.perf_counter(), percent / 100))
            if self._over.wait(READING_SECONDS):
                return
            asked = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()


def run_section(machine: Machine, run: Run) -> Section:
    """Chapter from a run."""
    seconds = told_apart(run.seconds)
    total = sum(seconds.values())
    split = [(name, f"{value:.1f}", f"{value / total:.0%}") for name, value in seconds.items()]
    busy = [(f'CPU, after "{phase}"', f"{share:.0%}") for phase, share in run.cpu_busy.items()]
    busy += _gpu_rows(run)
    rates = [(f"{name}/s", three_digits(value)) for name, value in run.rates.items()]
    text = (
        f"One run of {describe(run.config)} on {run.num_devices} device{'s' if run.num_devices > 1 else ''}, by "
        "the same function as `experiments/train.py`; one run, so no spread. Self-play and learning are one program: "
        "their split is the run's own estimate, from iterations that did not learn yet. Compiling the matches counts "
        "as evaluation. Busy, by phase of the run (what it printed when the phase began): of the CPU, time of this "
        "process over that of all usable cores; of the GPU, the first if there are several, the share of the time in "
        f"which a kernel ran, the mean of nvidia-smi's readings. One tells of up to {READING_SECONDS:g} s before it, "
        "and counts only if all that lies in one phase."
    )
    tables = [
        Table(("purpose", "seconds", "share"), split),
        Table(("rate, over self-play and learning", "value"), rates),
        Table(("busy share", "value"), busy),
    ]
    plot = BarPlot("time-split", "Where a short run's time goes", "seconds", seconds)
    longest = max(seconds, key=seconds.__getitem__)
    finding = f"Of a short run's {total:.0f} s, {longest} took most: {seconds[longest] / total:.0%}."
    return Section("Where a run's time goes", text, tables, [plot], headlines=[finding])


def _gpu_rows(run: Run) -> list[tuple[str, str]]:
    """One for each phase, if there are readings at all."""
    if not run.gpu_busy:
        return [("GPU (nvidia-smi)", NOTHING)]
    shares = {phase: f"{run.gpu_busy[phase]:.0%}" if phase in run.gpu_busy else NOTHING for phase in run.cpu_busy}
    return [(f'GPU, after "{phase}"', share) for phase, share in shares.items()]


def told_apart(seconds: dict[str, float]) -> dict[str, float]:
    """The same, self-play and learning as one where the run was too short to tell them apart (self-play is 0 then)."""
    if seconds["self-play"] > 0:
        return seconds
    rest = {name: value for name, value in seconds.items() if name not in ("self-play", "learning")}
    return {"self-play and learning, not told apart": seconds["learning"]} | rest


def peak_process_bytes() -> int:
    """The most memory this process ever held (ru_maxrss: KiB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def device_memory_rows(machine: Machine) -> list[tuple[str, str]]:
    """Peak and limit as the device tells them; the CPU tells nothing."""
    stats = devices.memory_stats(machine.device)
    names = {"peak_bytes_in_use": "peak of the device", "bytes_limit": "limit of the device"}
    return [(text, format_bytes(stats[name]) if name in stats else NOTHING) for name, text in names.items()]
