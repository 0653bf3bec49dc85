"""`train.py --seeds N`: the same run with N seeds, one after another, and then their scores together."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.commands import several
from muzero_jax.commands.several import Folders, Parse, Run
from muzero_jax.run.sources import offline
from muzero_jax.run.tools import comparison, learning_curves
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config


class Request(NamedTuple):
    """The request of the flags."""

    count: int
    first_seed: int
    folders: Folders
    shared: list[str]  # all other flags


def read(arguments: list[str]) -> Request | None:
    """The request of the flags; None where that is one run, or where a flag has no value that it can have."""
    found = several.read(arguments, "--seeds", "--seed")
    if found is None:
        return None
    known, folders, shared = found
    try:
        count, first_seed = int(known.seeds or 1), int(known.seed or Config.seed)
    except ValueError:  # the command's own parser says what is wrong
        return None
    return Request(count, first_seed, folders, shared) if count > 1 else None


def plan(request: Request, config: Config) -> list[Run]:
    """The runs: in the folder that the user named, or each where it would lie alone."""
    seeds, around = range(request.first_seed, request.first_seed + request.count), request.folders.run_dir
    each = [replace(config, seed=seed) for seed in seeds]
    folders = [around / f"seed{one.seed}" if around else run_directory.default(one) for one in each]
    return [
        Run(f"seed {one.seed}", run_dir, one, ["--seed", str(one.seed)])
        for one, run_dir in zip(each, folders, strict=True)
    ]


def train(request: Request, parse: Parse, build: Any) -> int:
    """Trains them all and compares them; returns the exit status of the first that did not end well, or 0."""
    parsed = parse(request.shared)
    if parsed is None:
        return 0
    config, session, _, num_devices = parsed
    config = offline.fit_to_source(config, num_devices)
    several.check_flags(config, session, build, flag="--seeds", each="seed")
    runs = plan(request, config)
    status = several.train(runs, request.folders, request.shared, several.has_spent)
    if not status:
        _conclude([run.run_dir for run in runs], Path(f"{request.folders.run_dir or runs[0].run_dir}-compare.png"))
    return status


def _conclude(run_dirs: list[Path], picture: Path) -> None:
    """Prints the scores of all runs together, and draws their curves; games for one player have none."""
    points = comparison.read_runs(run_dirs)
    if points:
        print(f"\n{comparison.format_table(points)}")
    if learning_curves.has_curves(points):
        learning_curves.plot(points, picture)
        print(f"curves: {picture}")
