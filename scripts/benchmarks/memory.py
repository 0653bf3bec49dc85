"""The memory plan against what runs really hold.

Each is a whole run, as `train.py` makes it: an evaluation, learning beside checkpoints being saved, the final matches.
It has a process of its own, so that none finds memory that another left. Measured is what the process grew by at its
peak (CPU) or what the device counted.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from experiments import presets
from experiments.command_line import report_errors
from muzero_jax.arithmetic import devices
from muzero_jax.run import memory_meter, runner
from muzero_jax.run.session import Session
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config

ESTIMATE, PLANNED, MEASURED = "estimated before compiling", "planned", "measured"
NAMES = {"estimated": ESTIMATE, "planned": PLANNED, "peak": MEASURED}
"""Of the figures in a run's summary."""
MIB = 2**20
ROOT = Path(__file__).resolve().parent.parent.parent
ITERATIONS = 60
"""That learn, at most. What takes memory has happened more than once by then, evaluations and saves among it."""

SESSION = Session(checkpoint_minutes=0.05)
"""A preset's iterations may take less than 15 seconds; without a save before the last, a run holds less."""

CASES: dict[str, Callable[[], Config]] = {
    "tic-tac-toe preset": presets.tic_tac_toe,
    "Hex 5x5 preset": lambda: presets.hex_any(5),
    "Connect Four preset": presets.connect_four,
    "Hex 7x7 preset, a tower": lambda: presets.hex_any(7),
}


def records(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Each run's outline and what makes its record: each case on one device and on as many as `train.py` would use."""
    for case in list(CASES)[: 1 if quick else None]:
        counts = sorted({1, devices.largest_divisor(jax.device_count(), *CASES[case]().shared_sizes)})
        for count in counts[-1:] if quick else counts:
            yield outline(run_name(case, count)), partial(record, case, count)


def record(case: str, num_devices: int) -> dict[str, Any]:
    """MiB per device of one run."""
    return outline(run_name(case, num_devices)) | figures(run_apart(case, num_devices))


def run_name(case: str, num_devices: int) -> str:
    """A run in words."""
    return f"{case}, {num_devices} device{'s' * (num_devices > 1)}"


def outline(name: str) -> dict[str, Any]:
    """The record of a run without its figures, of which `--compare` judges what was measured."""
    told = {"suite": "memory", "case": name, "unit": "MiB per device", "higher_is_better": False}
    return told | {"rates": {MEASURED: {"judged": True}}, "ratios": []}


def figures(found: dict[str, int]) -> dict[str, Any]:
    """What one run held, and how near the plan came."""
    return {
        "rates": {key: _exact(size / MIB) | {"judged": key == MEASURED} for key, size in found.items()},
        "ratios": [
            # A plan is no better for being higher, or lower.
            {"numerator": part, "denominator": whole, "aim": None, "judged": False} | _exact(found[part] / found[whole])
            for part, whole in ((PLANNED, MEASURED), (ESTIMATE, MEASURED))
            if whole in found
        ],
    }


def run_apart(case: str, num_devices: int) -> dict[str, int]:
    """`measure` in a process of its own; it leaves the accelerator's memory to whoever asks for it.

    Raises ValueError with the last line that the process left on stderr, if it failed.
    """
    command = [sys.executable, "-m", "scripts.benchmarks.memory", case, str(num_devices)]
    environment = os.environ | {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_NUM_CPU_DEVICES": str(num_devices),  # imports start JAX, too early for `devices.configure_devices`
        "JAX_TRACEBACK_FILTERING": "off",  # else a traceback ends with a note on filtering, not with the error
    }
    if jax.default_backend() == "cpu":  # be it for want of an accelerator that starts
        environment |= {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].removeprefix("error: ") or f"exit status {done.returncode}"
        raise ValueError(f"the run that measures memory failed ({run_name(case, num_devices)}): {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(config: Config, num_devices: int) -> dict[str, int]:
    """Bytes per device of one run; what nobody counts is left out."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir, mesh = run_directory.prepare(Path(folder) / "run"), devices.make_mesh(num_devices)
        found = runner.train(short_run(config), SESSION, run_dir, mesh, lambda text: None).summary["memory"]
    return {NAMES[name]: size for name, size in found.items() if size is not None}


def short_run(config: Config) -> Config:
    """`config` with its sizes, but over in five minutes at most and evaluated every 15 seconds."""
    evaluation = replace(config.evaluation, interval_minutes=0.25)
    iterations = config.iterations_to_learn + ITERATIONS
    return replace(config, minutes=5.0, max_iterations=iterations, evaluation=evaluation)


def _exact(value: float) -> dict[str, float]:
    return {"median": value, "spread": 0.0}


def main(arguments: list[str]) -> int:
    """`measure` of a case, by its name, on a number of devices; what it found as the last line on stdout."""
    case, num_devices = arguments
    memory_meter.keep_large_blocks_apart()
    with contextlib.redirect_stdout(sys.stderr):  # the run's own progress
        found = measure(CASES[case](), int(num_devices))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "the case needs more than this machine has"))
