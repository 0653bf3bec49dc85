"""The memory plan against what runs really hold: whole runs by `train.py`, evaluations and saves among them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax

from muzero_jax import presets
from muzero_jax.arithmetic import devices
from scripts.benchmarks.cases import Record
from scripts.measuring.machine import ROOT

PLANNED, MEASURED = "planned", "measured, whole process"
MIB = 2**20
ITERATIONS = 60
"""That learn, at most. What takes memory has happened more than once by then."""
CASES = {
    "tic-tac-toe preset": ("tic_tac_toe", None),
    "Hex 5x5 preset": ("hex", 5),
    "Connect Four preset": ("connect_four", None),
    "Othello preset, a tower": ("othello", None),
}


def records(quick: bool) -> Iterator[tuple[Record, Callable[[], Record]]]:
    """Each run's outline and what makes its record: each case on one device and on as many as `train.py` would use."""
    for case in list(CASES)[: 1 if quick else None]:
        sizes = presets.preset(*CASES[case]).shared_sizes
        counts = sorted({1, devices.largest_divisor(jax.device_count(), *sizes)})
        for count in counts[-1:] if quick else counts:
            name = f"{case}, {count} device{'s' * (count > 1)}"
            outline = {"suite": "memory", "case": name, "unit": "MiB per device", "higher_is_better": False}
            outline |= {"rates": {MEASURED: {"judged": True}}, "ratios": []}
            yield outline, partial(record, outline, case, count)


def record(outline: Record, case: str, num_devices: int) -> Record:
    """MiB per device of one run, and how near the plan came; a plan is no better for being higher, or lower."""
    found = run_apart(case, num_devices)
    sizes = {name: found[key] / MIB for name, key in ((PLANNED, "planned"), (MEASURED, "peak")) if found[key]}
    rates = {name: _exact(size) | {"judged": name == MEASURED} for name, size in sizes.items()}
    ratio = {"numerator": PLANNED, "denominator": MEASURED, "aim": None, "judged": False}
    ratios = [ratio | _exact(sizes[PLANNED] / sizes[MEASURED])] if MEASURED in sizes else []
    return outline | {"rates": rates, "ratios": ratios}


def run_apart(case: str, num_devices: int) -> dict[str, Any]:
    """Bytes per device, as the run's summary has them; in a process of its own, which finds no memory left by another.

    Raises ValueError with the last line that the process left on stderr, if it failed.
    """
    env, board_size = CASES[case]
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if jax.default_backend() == "cpu":  # be it for want of an accelerator that starts
        environment |= {"JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        iterations = presets.preset(env, board_size).iterations_to_learn + ITERATIONS
        flags = {"env": env, "run-dir": f"{folder}/run", "devices": num_devices, "minutes": 5}
        flags |= {"max-iterations": iterations, "evaluation.interval-minutes": 0.25, "checkpoint-minutes": 0.05}
        flags |= {"board-size": board_size} if board_size else {}
        command = [sys.executable, "experiments/train.py", *(str(x) for k, v in flags.items() for x in (f"--{k}", v))]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2].removeprefix("error: ") or f"status {done.returncode}"
            raise ValueError(f"the run that measures memory failed ({case}, {num_devices} devices): {reason}")
        return json.loads(Path(folder, "run/summary.json").read_text())["memory"]


def _exact(value: float) -> dict[str, float]:
    return {"median": value, "spread": 0.0}
