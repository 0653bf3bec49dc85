"""Suite `gpu`: all that a first day with an accelerator should measure, the most telling first.

Each part is a process of its own, because a process keeps an accelerator's memory, and has a share of the minutes.
What takes longer is stopped. The JSON is written after every part, so that a lost machine loses one part.
"""

import json
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muzero_jax.own.files import write_whole
from scripts.benchmarks.report import ROOT

COMPILING, ENDING, LEAST = 45.0, 20.0, 45.0
"""Seconds that a training takes to begin, that a process gets to end in order, and without which none begins."""
SHORT = (
    "experiments/train.py --env hex --board-size 5 --evaluation.interval-minutes 0 --evaluation.final-games 2 "
    "--evaluation.mcts-simulations 1 --replay.min-frames 1 --no-tensorboard --run-dir {out} --minutes {minutes:.2f}"
)
"""A training that learns as soon as there is a window, and hardly evaluates."""


def parts(*, quick: bool) -> dict[str, tuple[float, str]]:
    """By name: the share of the minutes, and the command, of which {out} is the file or folder of its results.

    With `quick` for a CPU, with a 16th of the games and a smaller board. {minutes} are those that a training may take.
    """
    base, board_size = (32, 5) if quick else (512, 9)

    def games(times: int, flags: str) -> tuple[float, str]:
        return 1.2, f"{SHORT} --self-play.num-envs {base * times} --optimiser.batch-size {base * times} {flags}"

    def suite(name: str) -> tuple[float, str]:
        return 1.2, f"scripts/benchmark.py --suite {name} --quick --out {{out}}.json"

    training = f"experiments/train.py --env hex --board-size {board_size} --evaluation.final-games 64 --profile"
    return {
        "passes": games(1, "--search.engine passes"),
        "search": suite("search"),
        "training": (15.5, f"{training} --run-dir {{out}} --minutes {{minutes:.2f}}"),
        "passes, games x 16": games(16, "--search.engine passes"),
        "own": games(1, "--search.engine own"),
        "own, games x 16": games(16, "--search.engine own"),
        "passes, graphs by XLA": games(1, "--search.engine passes --no-cuda-graphs"),
        "own, graphs by XLA": games(1, "--search.engine own --no-cuda-graphs"),
        "passes, games x 4": games(4, "--search.engine passes"),
        "float32": games(16, "--search.engine passes --network.compute-dtype float32"),
        "self-play": suite("self-play"),
        "learner": suite("learner"),
        "hardware": (3.0, "scripts/hardware_report.py --quick --out {out}"),
    }


def measure(out: Path, minutes: float, *, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Runs the parts, and keeps all so far in `out`; ValueError if its folder exists already."""
    folder, chosen = out.with_suffix(""), parts(quick=quick)
    if folder.exists():
        raise ValueError(f"{folder} exists already; name another --out")
    folder.mkdir(parents=True)
    # `results` is empty, because nothing here is compared: each part of a suite has a report of its own.
    record = {"machine": describe_machine(), "quick": quick, "results": [], "parts": []}
    end, shares = time.monotonic() + 60 * minutes, [share for share, _ in chosen.values()]
    for number, (name, (share, command)) in enumerate(chosen.items()):
        left = end - time.monotonic() - ENDING
        seconds = max(LEAST, left * share / sum(shares[number:]))
        found = {"outcome": "left out: too little time", "found": ""}
        if seconds <= left:
            say(f"{name}: up to {seconds:.0f} s")
            path = folder / name.replace(" ", "-").replace(",", "")
            spent = max(0.1, (seconds - COMPILING) / 80)  # a quarter of the rest is for the final matches
            words = [sys.executable, *shlex.split(command.format(out=path, minutes=spent))]
            found = {"outcome": attempt(words, path.with_suffix(".txt"), seconds), "found": read(path)}
            say(f"  {found['outcome']}: {found['found'] if isinstance(found['found'], str) else path.name + '.json'}")
        record["parts"].append({"name": name} | found)
        write_whole(out, json.dumps(record, indent=2) + "\n")
    return record


def describe_machine() -> dict[str, Any]:
    """The machine, as a process that ends sees it: this one must not take the accelerator."""
    code = "import json, sys; from scripts.benchmarks import report; print(json.dumps(report.describe(sys.argv[1:])))"
    command = [sys.executable, "-c", code, *sys.argv]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout)


def attempt(command: list[str], log: Path, seconds: float) -> str:
    """Runs a command for at most so many seconds; says how it ended."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    try:
        status = process.wait(seconds)
        return f"failed with status {status}" if status else "ended"
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # at which training saves itself
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return "stopped"


def read(path: Path) -> Any:
    """What a part has found so far: a suite's report, or in words a training's speed and strength, or a folder."""
    report, metrics, summary = path.with_suffix(".json"), path / "metrics.jsonl", path / "summary.json"
    try:
        if report.exists():
            return json.loads(report.read_text(encoding="utf-8"))
        if not metrics.exists():
            return f"see {path.name}" if path.exists() else f"nothing; see {path.name}.txt"
        lines = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        learned = [line for line in lines if line.get("train/updates_per_second")]
        speed = statistics.median(line["selfplay/frames_per_second"] for line in learned)
        strength = json.loads(summary.read_text(encoding="utf-8"))["strength"] if summary.exists() else {}
        scores = [f"{match['score']:.0%} against {name}" for name, match in strength.items()]
        return ", ".join([f"{speed:,.0f} frames/s", *scores])
    except (OSError, ValueError, KeyError) as error:  # half written, or stopped before it learned
        return f"nothing that can be read ({type(error).__name__}); see {path.name}.txt"
