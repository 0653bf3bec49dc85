"""A short real run, through `runner.train`: where its time goes, and how busy the machine is."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import jax

from muzero_jax.arithmetic import devices
from muzero_jax.run import runner
from muzero_jax.run.session import Session
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from scripts.measuring.markdown import BarPlot, Section, Table
from scripts.measuring.timing import Say
from scripts.measuring.words import NOTHING, three_digits
from scripts.report.networks import describe

QUIET = Session(tensorboard=False, checkpoint_minutes=0.0)
"""Saves at the end only, so that saving is no part of what is measured."""


class Run(NamedTuple):
    """The results of a short run, and how busy the machine was meanwhile."""

    config: Config
    num_devices: int
    seconds: dict[str, float]  # by purpose, as the run's own summary.json has them
    rates: dict[str, float]  # per second of self-play and learning
    cpu_busy: dict[str, float]  # CPU time of the process over that of all usable cores, by phase of the run
    gpu_busy: dict[str, float]  # mean of nvidia-smi's readings, by phase; empty where there is none


def short_run(config: Config, say: Say) -> Run:
    """Trains in a temporary folder, which is deleted afterwards, on as many devices as divide its games."""
    count = devices.largest_divisor(len(jax.devices()), *config.shared_sizes)
    phases = Phases(say)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = run_directory.prepare(Path(folder) / "run")
        try:
            result = runner.train(config, QUIET, run_dir, devices.make_mesh(count), phases.say)
        finally:
            phases.begin("")
    if result.interrupted:
        raise KeyboardInterrupt
    return Run(config, count, result.summary["seconds"], result.summary["rates"], phases.cpu_busy, phases.gpu_busy)


ANNOUNCE = ("compiling", "training")
"""How messages begin that announce a phase."""


class Phases:
    """A run's messages say when a phase of it begins; here each is passed on, and CPU and GPU are watched."""

    def __init__(self, say: Say):
        self._say = say
        self._phase, self._begun, self._cpu = "", 0.0, 0.0
        self._readings: Any = None  # of the GPU, one a second: a process
        self.cpu_busy: dict[str, float] = {}
        self.gpu_busy: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Passes a message on, and begins the phase that it announces, if it does."""
        self._say(text)
        if text.startswith(ANNOUNCE):
            self.begin(text)

    def begin(self, phase: str) -> None:
        """Ends the phase before and begins one, unless its name is empty."""
        times, now = os.times(), time.perf_counter()
        cpu = times.user + times.system
        if self._phase:
            self.cpu_busy[self._phase] = (cpu - self._cpu) / (devices.usable_cores() * (now - self._begun))
        if self._readings:
            self._readings.terminate()
            percents = busy_percents(self._readings.communicate()[0])
            self.gpu_busy |= {self._phase: mean(percents) / 100} if percents else {}
        self._phase, self._begun, self._cpu = phase, now, cpu
        self._readings = watch_gpu() if phase and jax.default_backend() == "gpu" else None


def watch_gpu() -> subprocess.Popen | None:
    """A process that prints each second how busy JAX's first GPU was; None where there is no nvidia-smi."""
    # An index or a UUID. nvidia-smi, which does not read the variable, knows either; indices differ where GPUs do.
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if not gpu or shutil.which("nvidia-smi") is None:
        return None
    query = [
        "nvidia-smi",
        "--query-gpu=utilization.gpu",
        "--format=csv,noheader,nounits",
        f"--id={gpu}",
        "-lms",
        "1000",
    ]
    return subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def busy_percents(printed: str) -> list[float]:
    """The readings, without the first, which belongs to the second before the run."""
    return [float(line) for line in printed.split("\n")[1:-1] if line.strip().isdecimal()]


def run_section(run: Run) -> Section:
    """The chapter on a short run."""
    seconds = run.seconds
    total = sum(seconds.values())
    busy = [
        (phase, f"{cpu:.0%}", f"{run.gpu_busy[phase]:.0%}" if phase in run.gpu_busy else NOTHING)
        for phase, cpu in run.cpu_busy.items()
    ]
    text = (
        f"One run of {describe(run.config)} on {run.num_devices} device{'s' if run.num_devices > 1 else ''}, by "
        "the same function as `experiments/train.py`; one run, so no spread. Self-play and learning are one program: "
        "their split is the run's own estimate, from iterations that did not learn yet. Compiling the matches counts "
        "as evaluation. Busy, by phase of the run (what it printed when the phase began): of the CPU, time of this "
        "process over that of all usable cores; of the first GPU, the share of the time in which a kernel ran, by "
        "nvidia-smi."
    )
    tables = [
        Table(("purpose", "seconds", "share"), [(name, f"{x:.1f}", f"{x / total:.0%}") for name, x in seconds.items()]),
        Table(("over self-play and learning", "a second"), [(name, three_digits(x)) for name, x in run.rates.items()]),
        Table(("busy, after this message", "CPU", "GPU"), busy),
    ]
    plot = BarPlot("time-split", "Where a short run's time goes", "seconds", seconds)
    longest = max(seconds, key=seconds.__getitem__)
    finding = f"Of a short run's {total:.0f} s, {longest} took most: {seconds[longest] / total:.0%}."
    return Section("Where a run's time goes", text, tables, [plot], headlines=[finding])
