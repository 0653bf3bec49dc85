"""`train.py --seeds N`: the same run with N seeds, one after another, and then their scores together.

Each run is a process of its own: it gives its memory back, and what it prints and saves is what it would alone.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from muzero_jax.run import comparison
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


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


def spare_accelerator() -> None:
    """Keeps this process, which only starts others, from taking an accelerator's memory for itself."""
    os.environ.setdefault(PREALLOCATE, "false")


def plan(asked: Asked, config: Config) -> list[Run]:
    """The runs: in the folder that the user named, or each where it would lie alone."""
    seeds = range(asked.first_seed, asked.first_seed + asked.count)
    if asked.run_dir:
        return [Run(seed, asked.run_dir / f"seed{seed}") for seed in seeds]
    return [Run(seed, run_directory.default(replace(config, seed=seed))) for seed in seeds]


def train(asked: Asked, shared: list[str], config: Config) -> int:
    """Trains them all and compares them; returns the exit status of the first that did not end well, or 0.

    With `resume` those that have ended are left as they are, and those that never began begin. Raises ValueError in one
    sentence for folders that cannot take the runs.
    """
    runs = plan(asked, config)
    check(asked, runs, config)
    if asked.overwrite:
        for _, run_dir in runs:
            if run_dir.exists():
                run_directory.make_room(run_dir)
    for number, (seed, run_dir) in enumerate(runs, 1):
        print(f"seed {seed}, {number} of {len(runs)}", flush=True)
        if run_directory.holds_run(run_dir) and _has_ended(run_dir, config):
            print(f"has ended   {run_dir}", flush=True)
            continue
        own = ["--resume"] if run_directory.holds_run(run_dir) else ["--seed", str(seed)]
        if status := wait([*shared, "--run-dir", str(run_dir), *own]):
            print(f"stopped at seed {seed}; go on with the same command and --resume (in place of --overwrite)")
            return status
    _conclude([run.run_dir for run in runs], Path(f"{asked.run_dir or runs[0].run_dir}-compare.png"))
    return 0


def check(asked: Asked, runs: list[Run], config: Config) -> None:
    """Raises ValueError in one sentence for folders that cannot take the runs, before any of them is trained."""
    if asked.resume and asked.overwrite:
        raise ValueError("--overwrite begins anew and --resume goes on; give one of them")
    if asked.resume and not any(run_directory.holds_run(run_dir) for _, run_dir in runs):
        raise ValueError(f"there is no run to resume in {runs[0].run_dir} and the others; leave out --resume")
    for _, run_dir in runs:
        goes_on = asked.resume and run_directory.holds_run(run_dir)
        run_directory.check(run_dir, resume=goes_on, overwrite=asked.overwrite)
        if goes_on and not comparison.are_alike(configs.load(run_dir), config, budgets=False):
            raise ValueError(f"{run_dir} was trained with other flags; give the same ones with --resume")


def _has_ended(run_dir: Path, config: Config) -> bool:
    """Whether the run has spent the budget that is asked for, and played its final matches."""
    return run_directory.has_ended(run_dir) and comparison.are_alike(configs.load(run_dir), config)


def _conclude(run_dirs: list[Path], picture: Path) -> None:
    """Prints the scores of all runs together, and draws their curves; games for one player have none."""
    points = comparison.read_runs(run_dirs)
    if points:
        print(f"\n{comparison.format_table(points)}")
    if any(not point.is_final for point in points):
        comparison.plot(points, picture)
        print(f"curves: {picture}")


def wait(arguments: list[str]) -> int:
    """The exit status of one run. Ctrl-C reaches it too: it saves and ends, and is waited for."""
    command = [sys.executable, str(Path(__file__).with_name("train.py")), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != PREALLOCATE or value != "false"}
    with subprocess.Popen(command, env=environment) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
