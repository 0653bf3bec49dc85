"""Suite `gpu`: the first measurements to make on an accelerator, the most important first.

Each part is a separate process, because a process keeps an accelerator's memory, and is stopped when its minutes are
over. The JSON is written after every part, and a training saves its weights every minute or at its end, so that a lost
machine loses one part.
"""

import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.own.files import write_whole
from muzero_jax.run import metrics
from muzero_jax.storage import run_directory
from scripts.benchmarks.report import ROOT, Record

MINUTES = 14
"""The default for all parts together. An H100 needed a minute to compile a program of Hex."""
CONV_FUSION = "--xla_gpu_experimental_enable_conv_fusion=true"
"""Turns convolutions into fusions of cuDNN, which XLA's own CUDA graphs may contain; jaxlib 0.7.2 lacks it."""
ENDING = 20.0
"""Seconds that a process has to end after Ctrl-C."""


class Part(NamedTuple):
    """A command with its time."""

    minutes: float
    command: str  # in which {out} is the file or folder of its results
    xla_flags: str = ""
    checkout: Path = ROOT


def parts(minutes: float, *, quick: bool, before: Path | None = None) -> dict[str, Part]:
    """By name, of `minutes` in all; `quick` is for a CPU, with small boards.

    First where the time of Hex 5x5 goes and what one graph gains, then whether fused convolutions are faster (one graph
    for the whole chunk is not tried with them), then an agent of Hex 11x11 whose weights are saved every minute, then
    the suites. An older checkout `before` trains Hex 5x5 right after this one, in the time of suite `chunk`.
    """
    one = minutes / MINUTES
    fewer = " --quick" if quick else ""
    small, large, largest = (3, 3, 3) if quick else (5, 9, 11)

    def training(board_size: int, minutes_: float, flags: str = "") -> str:
        evaluation = "--evaluation.interval-minutes 0 --evaluation.final-games 64 --evaluation.mcts-simulations 100"
        run = f"experiments/train.py --env hex --board-size {board_size} --minutes {minutes_ * one:.3f} {evaluation}"
        return f"{run} --run-dir {{out}} {flags}"

    begins = "" if quick else "--init-from agent:hex"
    older = {"before": Part(1.5 * one, training(small, 0.6), checkout=before)} if before else {}
    suite = "scripts/benchmark.py --out {out}.json --suite"
    chunk = {} if before else {"chunk": Part(1.5 * one, f"{suite} chunk{fewer}")}
    return {
        "profile": Part(2 * one, training(small, 0.6, "--profile")),
        "one graph": Part(1.5 * one, training(small, 0.6)),
        **older,
        "xla's graphs": Part(1.5 * one, training(small, 0.6, "--no-cuda-graphs")),
        "convolutions": Part(1.5 * one, training(large, 0.5)),
        "convolutions fused": Part(1.5 * one, training(large, 0.5), CONV_FUSION),
        "agent": Part(4 * one, training(largest, 2.5, f"{begins} --checkpoint-minutes 1")),
        **chunk,
        "search": Part(0.5 * one, f"{suite} search --quick"),
    }


def measure(
    out: Path, minutes: float, *, quick: bool, say: Callable[[str], None], before: Path | None = None
) -> Record:
    """Runs the parts, and writes all results so far to `out`.

    ValueError if its folder exists already, or if `before` is no checkout.
    """
    if before and not (before / "experiments" / "train.py").exists():
        raise ValueError(f"--before {before} is no checkout of muzero_jax")
    folder = out.with_suffix("")
    if folder.exists():
        raise ValueError(f"{folder} exists already; name another --out")
    folder.mkdir(parents=True)
    # `results` is empty, because each part of a suite has its own report.
    record: Record = {"quick": quick, "results": [], "parts": []}
    for name, part in parts(minutes, quick=quick, before=before).items():
        seconds = 60 * part.minutes
        path = folder / name.replace(" ", "-").replace("'", "")
        say(f"{name}: up to {seconds:.0f} s")
        words = [sys.executable, *shlex.split(part.command.format(out=shlex.quote(str(path))))]
        outcome = attempt(words, path.with_suffix(".txt"), seconds, part)
        record["parts"].append({"name": name, "outcome": outcome, **read(path)})
        say(f"  {record['parts'][-1]['outcome']}; see {path}.txt")
        write_whole(out, json.dumps(record, indent=2) + "\n")
    return record


def attempt(command: list[str], log: Path, seconds: float, part: Part) -> str:
    """Runs a part's command for at most `seconds`, its flags of XLA after the user's; returns how it ended."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {part.xla_flags}".strip()
    with log.open("w", encoding="utf-8") as file:
        environment = os.environ | ({"XLA_FLAGS": flags} if flags else {})
        process = subprocess.Popen(command, cwd=part.checkout, stdout=file, stderr=subprocess.STDOUT, env=environment)
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
