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
from typing import Any, NamedTuple

from muzero_jax.own.files import write_whole
from scripts.measuring.machine import ROOT

COMPILING, ENDING, LEAST = 45.0, 20.0, 45.0
"""Seconds that a training takes to begin, that a process gets to end in order, and without which none begins."""
LEFT_OUT = {"outcome": "left out: too little time", "found": ""}
SHORT = (
    "experiments/train.py --env hex --board-size 5 --evaluation.interval-minutes 0 --evaluation.final-games 2 "
    "--evaluation.mcts-simulations 1 --replay.min-frames 1 --no-tensorboard --run-dir {out} --minutes {minutes:.2f}"
)
"""A training that learns as soon as there is a window, and hardly evaluates."""


class Part(NamedTuple):
    """One thing to measure."""

    name: str
    share: float  # of the minutes, as a weight
    command: str  # {out} is the file or folder of its results, {minutes} what a training may take


def parts(*, quick: bool) -> list[Part]:
    """All parts; with `quick` for a CPU, with a 16th of the games and a smaller board."""
    base, board_size = (32, 5) if quick else (512, 9)

    def games(times: int, flags: str) -> str:
        return f"{SHORT} --self-play.num-envs {base * times} --optimiser.batch-size {base * times} {flags}"

    def suite(name: str) -> Part:
        return Part(name, 1.2, f"scripts/benchmark.py --suite {name} --quick --out {{out}}.json")

    training = f"experiments/train.py --env hex --board-size {board_size} --evaluation.final-games 64 --profile"
    return [
        Part("games x 1", 1.2, games(1, "--search.engine own")),
        suite("search"),
        Part("training", 15.5, f"{training} --run-dir {{out}} --minutes {{minutes:.2f}}"),
        Part("games x 4", 1.2, games(4, "--search.engine own")),
        Part("games x 16", 1.2, games(16, "--search.engine own")),
        Part("loop_free", 1.2, games(1, "--search.engine loop_free")),
        Part("loop_free, games x 16", 1.2, games(16, "--search.engine loop_free")),
        Part("float32", 1.2, games(16, "--search.engine own --network.compute-dtype float32")),
        suite("self-play"),
        suite("learner"),
        Part("hardware", 3, "scripts/hardware_report.py --quick --out {out}"),
    ]


def measure(out: Path, minutes: float, *, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Runs the parts, and keeps all so far in `out`; ValueError if its folder exists already."""
    folder, chosen = out.with_suffix(""), parts(quick=quick)
    if folder.exists():
        raise ValueError(f"{folder} exists already; name another --out")
    folder.mkdir(parents=True)
    # `results` is empty, because nothing here is compared: each part of a suite has a report of its own.
    record = {"machine": describe_machine(), "quick": quick, "results": [], "parts": []}
    end = time.monotonic() + 60 * minutes
    for number, part in enumerate(chosen):
        left = end - time.monotonic() - ENDING
        seconds = max(LEAST, left * part.share / sum(other.share for other in chosen[number:]))
        record["parts"].append({"name": part.name} | (run(part, folder, seconds, say) if seconds <= left else LEFT_OUT))
        write_whole(out, json.dumps(record, indent=2) + "\n")
    return record


def run(part: Part, folder: Path, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Runs a part for at most so many seconds; says how it ended and what it found."""
    say(f"{part.name}: up to {seconds:.0f} s")
    path = folder / part.name.replace(" ", "-").replace(",", "")
    spent = max(0.1, (seconds - COMPILING) / 80)  # a quarter of the rest is for the final matches
    command = [sys.executable, *shlex.split(part.command.format(out=path, minutes=spent))]
    outcome = attempt(command, path.with_suffix(".txt"), seconds)
    found = read(path)
    say(f"  {outcome}: {found if isinstance(found, str) else path.with_suffix('.json').name}")
    return {"outcome": outcome, "found": found}


def describe_machine() -> dict[str, Any]:
    """The machine, as a process that ends sees it: this one must not take the accelerator."""
    code = "import json, sys; from scripts.measuring import machine; print(json.dumps(machine.describe(sys.argv[1:])))"
    asked = subprocess.run(
        [sys.executable, "-c", code, *sys.argv], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    return json.loads(asked.stdout)


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
