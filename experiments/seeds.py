"""`train.py --seeds N`: the same run with N seeds, one after another, and then their scores together.

Each run is a process of its own: it gives its memory back, and what it prints and saves is what it would alone.
"""

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from muzero_jax.run import comparison
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config

PICTURE = "compare.png"


class Asked(NamedTuple):
    """What the flags say that are each run's own."""

    count: int
    first_seed: int
    run_dir: Path | None
    resume: bool
    overwrite: bool


class Run(NamedTuple):
    """One of the runs."""

    seed: int
    run_dir: Path


def read(arguments: list[str]) -> tuple[Asked, list[str]]:
    """What each run has for itself, and the flags that all of them share."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=Config.seed)
    parser.add_argument("--run-dir", "--run_dir", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    try:
        known, shared = parser.parse_known_args(arguments)
    except argparse.ArgumentError:  # the command's own parser says what is wrong
        return Asked(1, 0, None, False, False), arguments
    return Asked(known.seeds, known.seed, known.run_dir, known.resume, known.overwrite), shared


def plan(asked: Asked, config: Config) -> list[Run]:
    """The runs: in the folder that the user named, or each where it would lie alone."""
    seeds = range(asked.first_seed, asked.first_seed + asked.count)
    if asked.run_dir:
        return [Run(seed, asked.run_dir / f"seed{seed}") for seed in seeds]
    return [Run(seed, run_directory.default(replace(config, seed=seed))) for seed in seeds]


def train(asked: Asked, shared: list[str], config: Config) -> int:
    """Trains them all and draws `compare.png`; returns the exit status of the first that did not end well, or 0.

    With `resume` those that have ended are left as they are, and those that never began begin.
    """
    runs = plan(asked, config)
    for _, run_dir in runs:
        run_directory.check(
            run_dir, resume=asked.resume and run_directory.holds_run(run_dir), overwrite=asked.overwrite
        )
    for number, (seed, run_dir) in enumerate(runs, 1):
        print(f"seed {seed}, {number} of {len(runs)}", flush=True)
        if asked.resume and run_directory.strength(run_dir):
            print(f"has ended   {run_dir}", flush=True)
            continue
        goes_on = asked.resume and run_directory.holds_run(run_dir)
        own = ["--resume"] if goes_on else ["--seed", str(seed), *(["--overwrite"] if asked.overwrite else [])]
        if status := _wait([*shared, "--run-dir", str(run_dir), *own]):
            print(f"stopped at seed {seed}; go on with the same command and --resume")
            return status
    _conclude([run.run_dir for run in runs])
    return 0


def _conclude(run_dirs: list[Path]) -> None:
    """Prints the scores of all runs together, and draws their curves."""
    points = comparison.read_runs(run_dirs)
    print(f"\n{comparison.format_table(points)}")
    if any(not point.is_final for point in points):
        picture = run_dirs[0].parent / PICTURE
        comparison.plot(points, picture)
        print(f"curves: {picture}")


def _wait(arguments: list[str]) -> int:
    """The exit status of one run. Ctrl-C reaches it too: it saves and ends, and is waited for."""
    command = [sys.executable, str(Path(__file__).with_name("train.py")), *arguments]
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
