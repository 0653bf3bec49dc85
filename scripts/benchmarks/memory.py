"""A frame in the replay, and the memory plan against what whole runs by `train.py` hold, with evaluations and saves."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax

from muzero_jax import presets
from muzero_jax.arithmetic import devices
from scripts.benchmarks import plain_pipeline
from scripts.benchmarks.cases import Ratio, Record
from scripts.measuring.machine import ROOT

PLANNED, MEASURED, OURS = "planned", "measured, whole process", "ours"
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
    """Outlines and what makes the records: a frame, and each run on one device and on as many as a run would use."""
    frame = outline("a frame in the replay, Hex 5x5", "bytes", OURS)
    yield frame, partial(frame_record, frame)
    for case in list(CASES)[: 1 if quick else None]:
        sizes = presets.preset(*CASES[case]).shared_sizes
        counts = sorted({1, devices.largest_divisor(jax.device_count(), *sizes)})
        for count in counts[-1:] if quick else counts:
            run = outline(f"{case}, {count} device{'s' * (count > 1)}", "MiB per device", MEASURED)
            yield run, partial(run_record, run, case, count)


def outline(case: str, unit: str, judged: str) -> Record:
    """A record without figures, of which `--compare` judges one."""
    record = {"suite": "memory", "case": case, "unit": unit, "higher_is_better": False}
    return record | {"rates": {judged: {"judged": True}}, "ratios": []}


def frame_record(outline: Record) -> Record:
    """The bytes of a frame, and how many times larger it is in a pipeline of plain Python."""
    found = plain_pipeline.frame_bytes(presets.preset("hex", 5))
    return outline | _figures(found, OURS, [(name, OURS) for name in found if name != OURS])


def run_record(outline: Record, case: str, num_devices: int) -> Record:
    """MiB per device of one run, and how near the plan came; a plan is no better for being higher, or lower."""
    found = run_apart(case, num_devices)
    sizes = {name: found[key] / MIB for name, key in ((PLANNED, "planned"), (MEASURED, "peak")) if found[key]}
    return outline | _figures(sizes, MEASURED, [(PLANNED, MEASURED)] if MEASURED in sizes else [])


def _figures(sizes: Mapping[str, float], judged: str, ratios: list[tuple[str, str]]) -> Record:
    def exact(value):
        return {"median": value, "spread": 0.0}

    questions = [Ratio(*pair, judged=False) for pair in ratios]
    return {
        "rates": {name: exact(size) | {"judged": name == judged} for name, size in sizes.items()},
        "ratios": [q._asdict() | exact(sizes[q.numerator] / sizes[q.denominator]) for q in questions],
    }


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
