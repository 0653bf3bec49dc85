"""`train.py --seeds N --vary FIELD VALUE ...` trains runs that differ in seed or settings, and compares their scores.

Each run is trained in its own process, one after another, so that memory is freed and every run prints and saves the
usual things.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.algorithm import playing
from muzero_jax.apps.commands import child, parser
from muzero_jax.apps.commands.parser import FlagTexts
from muzero_jax.apps.sources import offline, warm_start
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.fields import differing, names
from muzero_jax.config.session import Session, validate_session
from muzero_jax.config.validation import validate
from muzero_jax.own import python_file
from muzero_jax.run.interrupt import Stopped
from muzero_jax.storage import run_directory

Settle = Callable[[FlagTexts, Session], tuple[Config, Session, Config]]
"""`train.settle`: the config of a run with these flags, its session, and what they overrode."""


class Variant(NamedTuple):
    """One of the runs."""

    name: str  # as printed
    run_dir: Path
    config: Config
    given: FlagTexts  # all of its flags except `--resume`


def plan(given: FlagTexts, session: Session, settle: Settle, num_devices: int) -> list[Variant]:
    """The runs, ordered by setting and then by seed; their folders lie in `--run-dir`, or by default in `runs`."""
    several = ("seeds", "vary", "resume", "resume_if_any", "overwrite", "run_dir")
    # All runs are evaluated after equal parts, so that their curves can be averaged.
    shared = {"evaluation.parts": "6"} if "evaluation.interval_minutes" not in given else {}
    shared |= {name: texts for name, texts in given.items() if name not in several}
    runs: list[Variant] = []
    for choice in product(*map(_values, session.vary)):
        settings = {name: texts for one in (shared, *choice) for name, texts in one.items()}
        parts = [_name(*one.popitem()) for one in map(dict, choice)]
        config, _, _ = settle(settings, replace(session, resume=False, resume_if_any=False))
        for seed in range(config.seed, config.seed + session.seeds):
            one = offline.fit_to_source(replace(config, seed=seed), num_devices)
            default = run_directory.default(one)
            beside = default.with_name("-".join([default.name, *parts]))
            run_dir = Path(session.run_dir, "-".join([*parts, f"seed{seed}"])) if session.run_dir else beside
            own = settings | {"run_dir": str(run_dir), "seed": str(seed)}
            runs.append(Variant(" ".join([*parts, f"seed {seed}"]), run_dir, one, own))
    return runs


def _values(words: Sequence[str]) -> list[FlagTexts]:
    """One `FlagTexts` for each value of a `--vary FIELD VALUE ...`."""
    name, *values = words or ["FIELD"]
    if not values:
        raise ValueError(f"--vary {name} names no values; say --vary optimiser.learning-rate 1e-3 2e-3")
    varied = [parser.of_value(Config, name, value) for value in values]
    if "seed" in varied[0]:
        raise ValueError("--vary cannot vary the seed; --seeds N trains N seeds of each setting")
    return varied


def _name(field: str, text: Any) -> str:
    """The part of a run's name for one value; a path is shortened to its last part, a Python file to its stem."""
    value = "-".join(text) if isinstance(text, list) else str(text).lower() if isinstance(text, bool) else text
    path = Path(value)
    last = field.rpartition(".")[2].replace("_", "-")
    return f"{last}-{path.stem if python_file.is_path(value) else path.name or value}"


def train(given: FlagTexts, session: Session, settle: Settle, num_devices: int, *, is_given: bool) -> int:
    """Trains all runs and compares them; returns the exit status of the first that failed or was stopped, else 0."""
    runs = plan(given, session, settle, num_devices)
    _check(runs, session, is_given)
    if session.overwrite:
        for config in {run.config.init_from: run.config for run in runs}.values():  # before anything is deleted
            _check_weights(config, trust_code=session.trust_code)
        run_directory.make_room_for_all(run.run_dir for run in runs)
    status = _train_in_turn(runs)
    if not status:
        beside = Path(f"{session.run_dir}-compare.png")
        _conclude([run.run_dir for run in runs], beside if session.run_dir else runs[0].run_dir / "compare.png")
    return status


def _check(runs: Sequence[Variant], session: Session, is_given: bool) -> None:
    """Raises ValueError for flags that several runs cannot have, before any run is trained."""
    validate_session(replace(session, config=None))
    for run in runs:
        validate(run.config)
        if missing := [file for file in run.config.own_files if not Path(file).is_file()]:
            raise ValueError(f"there is no file {missing[0]}; name a Python file of yours")
    if len(games := sorted({run.config.env_name for run in runs})) > 1:
        raise ValueError(f"runs are compared, and {games[0]} and {games[1]} are two games; vary something else")
    if session.autotune:
        raise ValueError(
            "--autotune may find other sizes for each seed; run it alone, and give the flags that it prints"
        )
    if is_given:
        raise ValueError(
            "--seeds starts new processes, which lack the parts that your program passed; train one seed at a time"
        )
    if session.run_dir and run_directory.holds_run(Path(session.run_dir)):
        raise ValueError(
            f"{session.run_dir} is the folder of one run, so it cannot hold several; choose another --run-dir"
        )
    if session.resume and not (session.resume_if_any or _have_begun(runs)):
        raise ValueError(f"there is no run to resume in {runs[0].run_dir} and the others; leave out --resume")
    run_dirs = [run.run_dir for run in runs]
    if twice := [run_dir for run_dir in run_dirs if run_dirs.count(run_dir) > 1]:
        raise ValueError(f"two of the runs would lie in {twice[0]}; give each value once, and files names of their own")
    for run in runs:
        goes_on = (session.resume or session.resume_if_any) and run_directory.holds_run(run.run_dir)
        run_directory.check(run.run_dir, resume=goes_on, overwrite=session.overwrite, sources=run.config.sources)
        if goes_on and (flags := _other_flags(run)):
            raise ValueError(f"{run.run_dir} was trained with other flags; with --resume give {' '.join(flags)} too")


def _have_begun(runs: Sequence[Variant]) -> bool:
    return any(run_directory.holds_run(run.run_dir) for run in runs)


def _other_flags(run: Variant) -> list[str]:
    """The flags with which a saved run was begun, if they differ from the present ones; budgets do not count."""
    made_with = config_file.inspect(run.run_dir)
    budgets = names(Config, "budget")
    return differing(replace(made_with, **{name: getattr(run.config, name) for name in budgets}), run.config)


def _has_spent(run: Variant) -> bool:
    """Whether a run has spent this budget and played its final matches."""
    return run_directory.has_ended(run.run_dir) and config_file.inspect(run.run_dir) == run.config


def _check_weights(config: Config, *, trust_code: bool) -> None:
    """Raises ValueError if a run cannot begin with the weights of its `--init-from`."""
    if config.init_from:
        model = playing.build_model(config, playing.build_environment(config))
        warm_start.open_source(config, model, lambda line: None, trust_code=trust_code)


def _goes_on(run: Variant) -> FlagTexts:
    """A run's flags, with `--resume-if-any` if it has begun, because that may be combined with `--config`."""
    return run.given | ({"resume_if_any": True} if run_directory.holds_run(run.run_dir) else {})


def _train_in_turn(runs: Sequence[Variant]) -> int:
    """Trains each run in its own process, except those that have ended."""
    for number, run in enumerate(runs, 1):
        print(f"{run.name}, {number} of {len(runs)}", flush=True)
        if run_directory.holds_run(run.run_dir) and _has_spent(run):
            print(f"has ended   {run.run_dir}", flush=True)
            continue
        try:
            status = child.wait(parser.typed_again(_goes_on(run)))
        except Stopped:
            _say_how_to_go_on(run, runs)
            raise
        if status:
            _say_how_to_go_on(run, runs)
            return status
    return 0


def _say_how_to_go_on(run: Variant, runs: Sequence[Variant]) -> None:
    more = " and --resume (instead of --overwrite)" if _have_begun(runs) else ""
    print(f"stopped at {run.name}; continue with the same command{more}")


def _conclude(run_dirs: list[Path], picture: Path) -> None:
    """Prints the scores of all runs in one table, and draws their curves."""
    points = comparison.read_runs(run_dirs)
    if points:
        print(f"\n{comparison.report(points)}")
    if learning_curves.has_curves(points):
        learning_curves.plot(points, picture)
        print(f"curves: {picture}")
