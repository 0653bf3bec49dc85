"""Suite `gpu`: the first measurements to make on an accelerator, the most important first.

Each part is a separate process, because a process keeps an accelerator's memory, and is stopped when its minutes are
over. The JSON is written after every part, so that a lost machine loses one part.
"""

import json
import shlex
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muzero_jax.own.files import write_whole
from muzero_jax.run import metrics
from muzero_jax.storage import run_directory
from scripts.benchmarks.report import ROOT, Record

MINUTES = 14
"""The default for all parts together. An H100 needed a minute to compile a program of Hex."""
ENDING = 20.0
"""Seconds that a process has to end after Ctrl-C."""


def parts(minutes: float, *, quick: bool) -> dict[str, tuple[float, str]]:
    """By name: the part's minutes and its command, in which {out} is the file or folder of its results.

    `quick` is for a CPU, with a 16th of the games and a smaller board.
    """
    one, board_size, fewer = minutes / MINUTES, 5 if quick else 9, " --quick" if quick else ""
    training = f"experiments/train.py --env hex --board-size {board_size} --evaluation.final-games 64 --profile"
    suite = "scripts/benchmark.py --out {out}.json --suite"
    return {
        "chunk": (4.5 * one, f"{suite} chunk{fewer}"),
        "search": (1.5 * one, f"{suite} search --quick"),
        "training": (4 * one, f"{training} --run-dir {{out}} --minutes {1.5 * one:.3f}"),
        "self-play": (one, f"{suite} self-play --quick"),
        "learner": (one, f"{suite} learner --quick"),
        "hardware": (2 * one, "scripts/hardware_report.py --quick --out {out}"),
    }


def measure(out: Path, minutes: float, *, quick: bool, say: Callable[[str], None]) -> Record:
    """Runs the parts, and writes all results so far to `out`; ValueError if its folder exists already."""
    folder = out.with_suffix("")
    if folder.exists():
        raise ValueError(f"{folder} exists already; name another --out")
    folder.mkdir(parents=True)
    # `results` is empty, because each part of a suite has its own report.
    record: Record = {"quick": quick, "results": [], "parts": []}
    for name, (share, command) in parts(minutes, quick=quick).items():
        seconds, path = 60 * share, folder / name
        say(f"{name}: up to {seconds:.0f} s")
        words = [sys.executable, *shlex.split(command.format(out=path))]
        record["parts"].append(
            {"name": name, "outcome": attempt(words, path.with_suffix(".txt"), seconds), **read(path)}
        )
        say(f"  {record['parts'][-1]['outcome']}; see {path}.txt")
        write_whole(out, json.dumps(record, indent=2) + "\n")
    return record


def attempt(command: list[str], log: Path, seconds: float) -> str:
    """Runs a command for at most `seconds`; returns how it ended."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    try:
        status = process.wait(seconds)
        return f"failed with status {status}" if status else "ended"
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # training then saves its state
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return "stopped"


def read(path: Path) -> dict[str, Any]:
    """A part's results so far: a suite's report, or a training's summary and its median speed while it learned."""
    found: dict[str, Any] = {}
    for file in (path.with_suffix(".json"), path / run_directory.SUMMARY):
        if file.exists():
            found["report"] = json.loads(file.read_text(encoding="utf-8"))
    learned = [record for record in metrics.read_records(path) if record.get("train/updates_per_second")]
    if learned:
        found["frames_per_second"] = statistics.median(record["selfplay/frames_per_second"] for record in learned)
    return found
