"""`train.py --seeds N --vary FIELD VALUE ...`: runs that differ in seed or settings, and then their scores together.

They are trained one after another, each as a process of its own. With `--together` those that differ only in the seed
and in numbers that the program takes as inputs are trained as one program (`apps.study.together`).
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.apps.commands import several
from muzero_jax.apps.commands.command_line import EXIT_ERROR, EXIT_INTERRUPTED
from muzero_jax.apps.commands.several import Folders, Parse, Run
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.own import python_file
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.session import Session
from muzero_jax.run.sources import offline
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config

TOGETHER = "--together"


class Request(NamedTuple):
    """The request of the flags."""

    seeds: range
    varied: dict[str, list[str]]  # the values of each flag that varies, as typed
    together: bool
    folders: Folders
    shared: list[str]  # all other flags


def read(arguments: list[str]) -> Request | None:
    """The request of the flags; None where that is one run, or where a flag has no value that it can have.

    Raises ValueError in one sentence for a `--vary` that names no values.
    """
    found = several.read(arguments, "--seeds", "--seed", lists=["--vary"])
    if found is None:
        return None
    known, folders, shared = found
    try:
        count, first_seed = int(known.seeds or 1), int(known.seed or Config.seed)
    except ValueError:  # the command's own parser says what is wrong
        return None
    varied = {_flag(words): words[1:] for words in known.vary or []}
    if count == 1 and not varied:
        return None
    others = [word for word in shared if word != TOGETHER]
    return Request(range(first_seed, first_seed + count), varied, TOGETHER in shared, folders, others)


def _flag(words: Sequence[str]) -> str:
    """The flag that the words of a `--vary` vary."""
    name = words[0].replace("_", "-") if words else "FIELD"
    if len(words) < 2:
        raise ValueError(
            f"--vary {name} names no values; give them behind it: --vary optimiser.learning-rate 1e-3 2e-3"
        )
    if name in ("seed", "seeds", "run-dir"):
        raise ValueError(f"--vary cannot vary {name}; --seeds N trains N seeds of each setting")
    return f"--{name}"


def plan(request: Request, parse: Parse, config: Config, num_devices: int) -> list[Run]:
    """The runs, by setting and then by seed: in the folder that the user named, or beside each other in `runs`."""
    around, runs = request.folders.run_dir, []
    for values in product(*request.varied.values()):
        flags = [word for pair in zip(request.varied, values, strict=True) for word in pair]
        names = [_name(flag, value) for flag, value in zip(request.varied, values, strict=True)]
        varied = _parsed(parse, [*request.shared, *flags])[0] if flags else config
        for seed in request.seeds:
            one = offline.fit_to_source(replace(varied, seed=seed), num_devices)
            folder = "-".join([*names, f"seed{seed}"])
            default = run_directory.default(one)
            run_dir = around / folder if around else default.with_name("-".join([default.name, *names]))
            runs.append(Run(" ".join([*names, f"seed {seed}"]), run_dir, one, [*flags, "--seed", str(seed)]))
    return runs


def _name(flag: str, value: str) -> str:
    """The part of a run's name that tells one of its values; of a path that is the last part, of code its stem."""
    path = Path(value)
    return f"{flag.rpartition('.')[2].lstrip('-')}-{path.stem if python_file.is_path(value) else path.name or value}"


def _parsed(parse: Parse, arguments: list[str]) -> tuple[Config, Session, Config, int]:
    found = parse(arguments)
    assert found is not None, "help was printed before"
    return found


def train(request: Request, parse: Parse, build: Any) -> int:
    """Trains them all and compares them; returns the exit status of the first that did not end well, or 0."""
    parsed = parse(request.shared)
    if parsed is None:
        return 0
    config, session, _, num_devices = parsed
    runs = plan(request, parse, config, num_devices)
    asked = replace(session, seeds=len(runs), together=request.together)
    several.check_flags([run.config for run in runs], asked, build)
    if request.together:
        status = train_together(runs, request, parse)
    else:
        status = several.train(runs, request.folders, request.shared)
    if not status:
        _conclude([run.run_dir for run in runs], Path(f"{request.folders.run_dir or runs[0].run_dir}-compare.png"))
    return status


def train_together(runs: Sequence[Run], request: Request, parse: Parse) -> int:
    """Trains as one program what one program can train; says why, where it takes several."""
    from muzero_jax.apps.study import population, together  # here, because pgx starts JAX when it is imported

    several.check_folders(runs, request.folders)
    if request.folders.overwrite:
        run_directory.make_room_for_all(run.run_dir for run in runs)
    groups: dict[tuple[Config, bool, bool], list[Run]] = {}
    for run in runs:
        has_begun = run_directory.holds_run(run.run_dir)
        kind = together.alike(run.config), has_begun, has_begun and several.has_spent(run)
        groups.setdefault(kind, []).append(run)
    if len(groups) > 1:
        varied = comparison.differing([run.config for run in runs])
        names = [name for name in varied if name not in population.NUMBERS]
        why = (
            f"{' and '.join(names)} changes what is compiled, or the matches"
            if names
            else "the runs did not begin together"
        )
        print(f"{why}: {len(groups)} programs, one after another")
    for group in groups.values():
        if status := _train_group(group, request, parse):
            return status
    return 0


def _train_group(group: Sequence[Run], request: Request, parse: Parse) -> int:
    """Trains runs as one program; returns the exit status."""
    from muzero_jax.apps import start
    from muzero_jax.apps.study import together

    if request.folders.resume and all(map(several.has_spent, group)):
        print(f"has ended   {', '.join(str(run.run_dir) for run in group)}")
        return 0
    planned, ready, session = [], None, Session()
    further = ["--resume-if-any"] if run_directory.holds_run(group[0].run_dir) else []
    for run in group:
        config, session, made_with, num_devices = _parsed(
            parse, [*request.shared, "--run-dir", str(run.run_dir), *run.flags, *further]
        )
        checked: Any = {"given": ("world",)} if ready else {}  # its files are those of the first
        say = (lambda line: None) if ready else print
        made = start.prepare(config, session, num_devices, say, made_with=made_with, **checked)
        ready = ready or made
        planned.append(together.Planned(run.name, made.config, made.run_dir))
    assert ready is not None
    try:
        ends = together.train(planned, session, ready.mesh, print)
    except KeyboardInterrupt as error:  # no chunk ran, or it was the second Ctrl-C: what was saved before is whole
        has_begun = any(run_directory.begun(run.run_dir) for run in planned)
        print(f"stopped; go on with the same command{' and --resume' if has_begun else ''}")
        if isinstance(error, Stopped):
            raise
        return EXIT_INTERRUPTED
    for run, end in zip(planned, ends, strict=True):
        if isinstance(end, ValueError):
            print(f"error: {run.name}: {end}", file=sys.stderr)
    ended = [end for end in ends if not isinstance(end, ValueError)]
    if any(end.interrupted for end in ended):
        print("stopped and saved; go on with the same command and --resume (in place of --overwrite)")
        if any(end.by_system for end in ended):
            raise Stopped
        return EXIT_INTERRUPTED
    return EXIT_ERROR if any(isinstance(end, ValueError) for end in ends) else 0


def _conclude(run_dirs: list[Path], picture: Path) -> None:
    """Prints the scores of all runs together, and draws their curves; games for one player have none."""
    points = comparison.read_runs(run_dirs)
    if points:
        print(f"\n{comparison.format_table(points)}")
    if learning_curves.has_curves(points):
        learning_curves.plot(points, picture)
        print(f"curves: {picture}")
