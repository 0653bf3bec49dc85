"""All that a first day with an accelerator should measure, by one command: python scripts/accelerator_day.py

It runs what is there: short trainings by number of games, engine and precision, the benchmark's suites, a trace, a
training with its strength, and the hardware report. Each part is a process of its own, with a share of --minutes; what
takes longer is ended. The folder's README.md is written after every part, so that a lost machine loses one part. Frames
a second stand beside the most that the preview allows (docs/accelerators.md). On a CPU it is a rehearsal, with a 16th
of the games and fewer minutes.
"""

import itertools
import json
import shlex
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.apps.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from muzero_jax.apps.commands import flag_reader
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.own.files import check_writable, write_whole
from muzero_jax.storage.fields import PositiveFloat, check_fields
from scripts.documentation.tables import table
from scripts.measuring import machine
from scripts.previewing import page

ROOT = Path(__file__).resolve().parent.parent
COMPILING = 45.0
"""Seconds that a training takes to begin; of what is left to it, a quarter is for its final matches."""
ENDING = 20.0
"""Seconds that a process gets to end in order."""
GAMES, REHEARSED = 512, 32
"""Games of `games x 1`, and those on a CPU."""
NOTHING = "nothing measured; see {}.txt"
"""What stands in the table for a part that was ended too soon, or failed."""
READING = """A part that takes longer than its share of the time is stopped; what it measured until then stands here.
With too little time left it is left out. Each part has files of its name. Ratios are ours over the baseline's."""
NAMES = {"T4": "T4", "H100": "H100", "A100": "A100", "v5 lite": "v5e"}
"""The preview's accelerators, by what JAX calls them."""


@dataclass(frozen=True)
class Arguments:
    """Where to, and for how long."""

    out: Path
    """a new folder, for docs/results"""
    minutes: PositiveFloat = 25.0
    """the time of all parts together"""
    only: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """this part alone; may be given several times"""


class Part(NamedTuple):
    """One thing to measure."""

    name: str
    share: float  # of the minutes, as a weight
    least: float  # seconds, without which it is left out
    script: str
    flags: str


class Done(NamedTuple):
    """What became of a part."""

    name: str
    outcome: str
    seconds: float
    found: str


def parts(board_size: int, base: int = GAMES) -> list[Part]:
    """Everything, the most telling first; `base` games are `games x 1`. `run` adds a training's minutes."""
    short = "--env hex --board-size 5 --evaluation.interval-minutes 0 --evaluation.final-games 2 --no-tensorboard"
    short += " --evaluation.mcts-simulations 1 --replay.min-frames 1"  # it learns as soon as there is a window

    def games(times: int, engine: str = "own") -> str:
        sizes = f"--self-play.num-envs {base * times} --optimiser.batch-size {base * times}"
        return f"{short} {sizes} --search.engine {engine}"

    train, bench = "experiments/train.py", "scripts/benchmark.py"
    return [
        Part("games x 1", 1.2, 45, train, games(1)),
        Part("search against mctx", 1.2, 40, bench, "--suite search --quick"),
        Part("training", 15.5, 60, train, f"--env hex --board-size {board_size} --evaluation.final-games 64 --profile"),
        Part("games x 4", 1.2, 45, train, games(4)),
        Part("games x 16", 1.2, 45, train, games(16)),
        Part("loop_free", 1.2, 45, train, games(1, "loop_free")),
        Part("loop_free, games x 16", 1.2, 45, train, games(16, "loop_free")),
        Part("float32", 1.2, 45, train, f"{games(16)} --network.compute-dtype float32"),
        Part("self-play", 1.2, 40, bench, "--suite self-play --quick"),
        Part("learner", 1.2, 40, bench, "--suite learner --quick"),
        Part("hardware", 3, 60, "scripts/hardware_report.py", "--quick"),
    ]


def run(part: Part, folder: Path, seconds: float) -> Done:
    """Runs a part for at most so many seconds; the folder has what it wrote, and its output."""
    name = file_name(part)
    outs = {
        "experiments/train.py": f"--run-dir {folder / name} --minutes {max(0.1, (seconds - COMPILING) / 80):.2f}",
        "scripts/benchmark.py": f"--out {folder / name}.json",
        "scripts/hardware_report.py": f"--out {folder / name}",
    }
    command = [sys.executable, part.script, *shlex.split(part.flags), *shlex.split(outs[part.script])]
    start = time.monotonic()
    outcome = attempt(command, folder / f"{name}.txt", seconds)
    return Done(part.name, outcome, time.monotonic() - start, tell(part, folder / name))


def file_name(part: Part) -> str:
    """What a part's files are called, without an ending."""
    return part.name.replace(" ", "-").replace(",", "")


def attempt(command: list[str], log: Path, seconds: float) -> str:
    """Runs a command for at most so many seconds; says how it ended."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        for patience, outcome in ((seconds, "ended"), (ENDING, "stopped")):
            try:
                status = process.wait(patience)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # at which training saves itself
            else:
                return f"failed with status {status}" if status and outcome == "ended" else outcome
        process.kill()
        process.wait()
    return "stopped"


def tell(part: Part, path: Path) -> str:
    """What stands in the table for a part. No file that a part left half written may end the day."""
    try:
        return found(part, path) or NOTHING.format(path.name)
    except (OSError, ValueError, KeyError) as error:
        return f"what it wrote cannot be read ({type(error).__name__}); see {path.name}.txt"


def found(part: Part, path: Path) -> str:
    """The part's main figure."""
    if part.script.endswith("hardware_report.py"):
        return f"see {path.name}" if path.exists() else ""
    if part.script.endswith("benchmark.py") and path.with_suffix(".json").exists():
        results = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["results"]
        ratios = [ratio["median"] for result in results for ratio in result["ratios"]]
        return f"{len(ratios)} ratios, from {min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
    metrics = path / "metrics.jsonl"  # a training that was ended while it compiled has none
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    records = [record for record in map(json.loads, lines) if record.get("train/updates_per_second")]
    speeds = [record["selfplay/frames_per_second"] for record in records if "selfplay/frames_per_second" in record]
    if not speeds:
        return ""
    summary = (
        json.loads((path / "summary.json").read_text(encoding="utf-8")) if (path / "summary.json").exists() else {}
    )
    strength = [f"{match['score']:.0%} against {name}" for name, match in summary.get("strength", {}).items()]
    return ", ".join([f"{statistics.median(speeds):,.0f} frames/s", *(strength if part.name == "training" else [])])


def at_best(part: Part, device: str) -> str:
    """Frames a second that the preview allows a part on this device."""
    on = next((name for known, name in NAMES.items() if known in device), "")
    record = page.read().get(f"{'Hex 9x9' if part.name == 'training' else 'Hex 5x5'}, {on}")
    if record is None or not part.script.endswith("train.py") or part.name == "float32":
        return ""
    asked: dict[str, Any] = dict(itertools.pairwise(part.flags.split()))  # a flag's value stands behind it
    games = int(asked.get("--self-play.num-envs", record["games"]))
    if asked.get("--search.engine", record["engine"]) != record["engine"]:
        return ""
    found = (size for size in record["sizes"] if size["times"] * record["games"] == games)
    return next((f"{size['frames_per_second']:,.0f}" for size in found), "")


def write(folder: Path, device: str, done: list[Done]) -> None:
    """The table of all parts so far."""
    by_name = {part.name: part for part in parts(0)}
    rows = [(d.name, d.outcome, f"{d.seconds:.0f}", d.found, at_best(by_name[d.name], device)) for d in done]
    heads = ("part", "outcome", "seconds", "found", "frames/s at best (estimated)")
    command, commit = f"python scripts/{Path(__file__).name} --out {folder.name}", machine.commit() or "of no clone"
    made = f"Made by `{command}` on {date.today()}, commit {commit}, jax {version('jax')}."
    write_whole(folder / "README.md", f"# {device}\n\n{made}\n\n{READING}\n\n{table(heads, rows)}\n")


def describe_device() -> tuple[str, bool]:
    """The device's name and whether it is a CPU, asked in another process: this one must not take its memory."""
    code = "import jax; device = jax.devices()[0]; print(device.platform, device.device_kind)"
    asked = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    platform, _, kind = asked.stdout.strip().partition(" ")
    return kind, platform == "cpu"


def choose(only: tuple[str, ...], *, rehearse: bool) -> list[Part]:
    """The parts that are asked for, smaller ones where they are rehearsed; ValueError for one that there is not."""
    known = {part.name: part for part in (parts(5, REHEARSED) if rehearse else parts(9))}
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"there is no part {unknown[0]!r}; choose of {', '.join(known)}")
    return [known[name] for name in only or known]


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = flag_reader.read(Arguments, arguments, description=__doc__)
    check_fields(a)
    device, is_cpu = describe_device()
    chosen = choose(a.only, rehearse=is_cpu)
    out = a.out.resolve()
    if out.exists():
        raise ValueError(f"{a.out} exists already; name a new folder")
    out.mkdir(parents=True)
    check_writable(out / "README.md", "--out")
    end, done = time.monotonic() + 60 * a.minutes, []
    for number, part in enumerate(chosen):
        left = end - time.monotonic() - ENDING
        share = left * part.share / sum(other.share for other in chosen[number:])
        seconds = min(left, max(share, part.least))
        if seconds < part.least:
            done.append(Done(part.name, "left out: too little time", 0.0, ""))
        else:
            print(f"{part.name}: up to {seconds:.0f} s", flush=True)
            done.append(run(part, out, seconds))
            print(f"  {done[-1].outcome} after {done[-1].seconds:.0f} s: {done[-1].found}", flush=True)
        write(out, device, done)
    print(f"written to {a.out}")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
