"""Searches for better settings of a game: python experiments/tune.py --env hex --board-size 4 --minutes 2

Each trial is a run with other values of some fields, drawn by Optuna. The first has the preset's own. All trials get as
many frames as that one. At the end the best settings and the preset's meet the opponent with seeds that the search
never saw, because the best of many noisy scores is partly luck. All flags of train.py count for every trial: --env,
--board-size, --minutes (of the first trial), --frames, --seed and the rest.
"""

import json
import os
import shlex
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import optuna

from muzero_jax.algorithm import playing
from muzero_jax.apps.commands import parser, train
from muzero_jax.apps.commands.command_line import EXIT_INTERRUPTED, command
from muzero_jax.apps.commands.parser import Given
from muzero_jax.apps.evaluation.progress import QUICK_SIMULATIONS
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.apps.study.tuning import pictures, results, space, trial
from muzero_jax.apps.study.tuning import study as studies
from muzero_jax.apps.study.tuning.space import Row
from muzero_jax.apps.study.tuning.trial import Train
from muzero_jax.ops import devices
from muzero_jax.own.faults import shown
from muzero_jax.own.files import write_whole
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import (
    NotNegativeInt,
    PositiveInt,
    Simulations,
    decode,
    differing,
    fields_of,
    flag_of,
    names,
)

PRESET, SETTINGS, SEEDS, CURVES = "preset.json", "settings.json", "seeds", "seeds.png"


@dataclass(frozen=True)
class Arguments:
    """The flags of the search; all others are train.py's."""

    trials: PositiveInt = 30
    """trials that end in all; a larger number goes on with a study that has ended"""
    study: Path | None = None
    """folder of the study; default: runs/tune-<game>-<size>-seed<seed>. If it is there, the search goes on"""
    join: Path | None = None
    """work on the study in this folder too, with its settings; no other flag is needed"""
    seeds: NotNegativeInt = 3
    """seeds of the comparison at the end, beyond the search's own; 0: none"""
    sampler: Literal["tpe", "random", "qmc"] = "tpe"
    """tpe: near what was good so far; random; qmc: evenly over the space"""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """median: end a trial whose curve is below the median; hyperband: keep a third at each ninth and third of the
    frames; none: all trials to the end"""
    mcts_simulations: Simulations = 100
    """budget of the rollout MCTS that the agents are scored against; above 100 it is met at the end only"""
    fields: tuple[str, ...] = ()
    """the fields to vary, of those that have a range (docs/tune.md); default: all of them"""


class Request(NamedTuple):
    """The request of the flags."""

    own: Arguments
    folder: Path
    base: Config  # what the trials vary
    rows: list[Row]
    session: Session
    num_devices: int


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status, as `train.main`."""
    given = parser.split(arguments, Config, Session, Arguments)
    if parser.HELP in given or parser.HELP_ALL in given:
        print(f"{(__doc__ or '').strip()}\n\n{parser.help_text(parser.flags_of(Arguments))}")
        return 0
    own = {field.name: given.pop(field.name) for field in fields_of(Arguments) if field.name in given}
    request = read(parser.convert(Arguments, own), given)
    keep(request)
    base, opponent = request.base, f"mcts:{request.own.mcts_simulations}"
    worker = os.getpid() if request.own.join else 0
    study = studies.open_study(
        request.folder, sampler=request.own.sampler, pruner=request.own.pruner, seed=base.seed, worker=worker
    )
    studies.begin(study, space.own_values(base, request.rows), base.frames)
    introduce(request)
    runs = trial.trainer(request.session, request.num_devices)
    objective = trial.Trial(base, request.rows, request.folder, opponent, runs)
    try:
        studies.search(study, objective, request.own.trials, partial(announce, base), _say)
        if request.own.join:
            print(f"{request.own.trials} trials have ended; the command that began the study compares the best of them")
            return 0
        conclude(request, study, trial.trainer(request.session, request.num_devices, keeps_checkpoints=True))
    except KeyboardInterrupt as error:
        print(f"stopped and saved; go on with: {command('tune')} {shlex.join(arguments)}")
        return 0 if isinstance(error, Stopped) else EXIT_INTERRUPTED
    return 0


def read(own: Arguments, given: Given) -> Request:
    """The request of the flags. Raises ValueError in one sentence for what makes no study."""
    has_budget = bool(own.join) or not given.keys().isdisjoint(("minutes", "frames"))
    if own.join:
        own = _joined(own)
        given = {"config": f"{own.join}/{PRESET}"} | given
    config, session, _ = train.settle(given)
    num_devices = devices.configure_devices(session.devices)
    base = replace(config, evaluation=replace(config.evaluation, mcts_simulations=(own.mcts_simulations,)))
    _check(base, session, has_budget=has_budget)
    default = run_directory.default(base)
    folder = own.join or own.study or default.parent / f"tune-{default.name}"
    rows = space.space(base, own.fields)
    space.with_values(base, {})  # which checks it
    return Request(own, folder, base, rows, session, num_devices)


def _joined(own: Arguments) -> Arguments:
    """The flags of the study that is joined."""
    file = Path(str(own.join)) / SETTINGS
    if not file.is_file():
        raise ValueError(f"--join: there is no study in {own.join}; name the folder of one that was begun")
    if own != Arguments(join=own.join):
        raise ValueError("--join works with the study's own settings; leave the other flags of tune.py out")
    return replace(_kept(file, "name another --join"), join=own.join)


def _kept(file: Path, remedy: str) -> Arguments:
    """The flags that a study was begun with; ValueError if the file is none of ours, with the remedy."""
    try:
        return decode(Arguments, json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} does not say how a study was begun ({shown(error)}); {remedy}") from error


def _check(base: Config, session: Session, *, has_budget: bool) -> None:
    """Raises ValueError in one sentence for what no trial can be."""
    for name in names(Session, "single"):
        if getattr(session, name) != getattr(Session(), name):
            raise ValueError(f"{flag_of(name)} is for one run; leave it out (--study names the folder)")
    if not has_budget or base.updates or base.max_iterations or base.offline:
        raise ValueError(
            "trials are equal in frames: add --minutes 2 (of the first trial) or --frames, and no other budget"
        )
    if playing.build_environment(base).num_players != 2:
        raise ValueError("trials are compared by matches, and this is a game for one; try values with train.py")


def keep(request: Request) -> None:
    """Makes the study's folder with its settings; raises ValueError if a study with others lies there."""
    file, settings = request.folder / PRESET, request.folder / SETTINGS
    if file.is_file():
        begun = configs.read(file, "choose another --study")
        kept = _kept(settings, "choose another --study")
        if begun != request.base or kept.fields != request.own.fields:
            flags = " ".join(differing(request.base, begun)) or "other --fields"
            raise ValueError(f"{request.folder} was begun without {flags}; give its own flags, or another --study")
    elif request.folder.exists() and any(request.folder.iterdir()):
        raise ValueError(f"{request.folder} exists but holds no study; choose another --study")
    request.folder.mkdir(parents=True, exist_ok=True)
    if not request.own.join:
        own = {name: value for name, value in asdict(request.own).items() if name not in ("study", "join")}
        write_whole(settings, json.dumps(own, indent=2))
        write_whole(file, configs.to_json(request.base))


def introduce(request: Request) -> None:
    """Says what is searched, where, and how others join."""
    own = request.own
    print(f"study       {request.folder}: {own.trials} trials, {own.sampler}, pruning by {own.pruner}")
    print(f"score       against rollout MCTS with {own.mcts_simulations} simulations, at equal frames")
    if own.mcts_simulations > QUICK_SIMULATIONS and own.pruner != "none":
        print("pruning     none: so strong an opponent is met at the end only")
    for row in request.rows:
        print(f"varies      {row.flag} {row.low:.3g} to {row.high:.3g}")
    print(
        f"help it     {command('tune')} --join {shlex.quote(str(request.folder))}; Ctrl-C stops and saves", flush=True
    )


def announce(base: Config, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    """Says how a trial of this worker ended."""
    is_base = results.flags(base, trial) == results.BASE
    name = f"trial {trial.number}"
    _say(f"{name:<12}{results.outcome(trial)}{f', {results.BASE}' if is_base else ''}")


def conclude(request: Request, study: optuna.Study, runs: Train) -> None:
    """Prints and draws what was found, and compares the best settings with the base's."""
    base, folder = request.base, request.folder
    print(f"\n{results.table(base, study)}\n")
    results.write_table(base, request.rows, study, folder / results.TABLE)
    found = results.write_best(base, study, folder / results.BEST)
    drawn = pictures.draw_all(study, folder)
    print(f"table:    {folder / results.TABLE}\npictures: {', '.join(map(str, drawn))}")
    best = studies.best(study)
    flags = results.flags(base, best)
    print(f"best:     trial {best.number}, {flags}", flush=True)
    if flags != results.BASE and request.own.seeds:
        compare(request, found, f"trial{best.number}", runs)
    again = ["--config", str(folder / results.BEST), "--seed", str(base.seed), "--run-dir"]
    print(f"repeat:   {command('train')} {shlex.join([*again, f'runs/best-seed{base.seed}'])}")
    print(f"longer:   {command('train')} {shlex.join([*again, 'runs/best'])} --minutes ...")


def compare(request: Request, found: Config, name: str, runs: Train) -> None:
    """Trains the best settings and the base's with seeds that the search did not see, and prints their scores."""
    first = request.base.seed + 1
    seeds = range(first, first + request.own.seeds)
    base = replace(request.base, minutes=found.minutes, frames=found.frames)
    run_dirs: list[Path] = []
    for seed in seeds:
        for group, config in (("preset", base), (name, found)):
            run_dirs.append(run_dir := request.folder / SEEDS / f"{group}-seed{seed}")
            if not run_directory.has_ended(run_dir):
                print(f"seed {seed}    {group}", flush=True)
                runs(replace(config, seed=seed), run_dir, _ignore)
    points = comparison.read_runs(run_dirs)
    print(f"\n{comparison.format_table(points)}\n")
    if learning_curves.has_curves(points):
        learning_curves.plot(points, request.folder / CURVES, axes=("frames", "minutes"))


def _ignore(record: Any) -> None:
    """Takes an evaluation that nobody waits for."""


def _say(line: str) -> None:
    print(line, flush=True)
