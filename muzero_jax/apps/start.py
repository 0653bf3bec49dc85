"""The one way from a config to a run, for `experiments/train.py` and `muzero_jax.train(config, "runs/x", minutes=5)`.

`prepare` does all that comes before `runner.train`, so that neither of them can skip a step. Importing this starts no
JAX backend, so that a CPU still becomes a device for each core.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax.ops import devices, precision
from muzero_jax.own import python_file
from muzero_jax.run import budget, compilation_cache, display, metrics, processes
from muzero_jax.run import session as sessions
from muzero_jax.run.callbacks import Callbacks
from muzero_jax.run.session import Session
from muzero_jax.run.sources import offline
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import check_resumable, validate

if TYPE_CHECKING:
    from muzero_jax.algorithm import Algorithm
    from muzero_jax.run.runner import Result

MOST_CHECK_SECONDS = 3.0
"""After this time no further part of the check of somebody's own game begins."""

LARGE_BOARD = 9
"""From this size on a run is advised to begin on a smaller board: 8 minutes of 5x5, 7x7 and 9x9 won all 256 games
against 12 of 9x9 alone (docs/results/2026-11-25-agents.md)."""

Say = Callable[[str], None]


class Ready(NamedTuple):
    """A run that nothing in its flags or files speaks against."""

    config: Config  # with the sizes that its source or `--autotune` decides
    run_dir: Path  # which exists
    mesh: Mesh


@display.output_may_end()
def train(
    config: Config,
    run_dir: str | Path,
    *,
    minutes: float | None = None,
    algorithm: "Algorithm | None" = None,
    overwrite: bool = False,
    trust_code: bool = False,
    say: Say = print,
    on_metrics: Callable[[dict[str, Any]], object] | None = None,
    on_evaluation: Callable[[dict[str, Any]], object] | None = None,
) -> "Result":
    """Trains an agent in `run_dir`, on as many devices as share its games and batches evenly.

    Args:
      minutes: the budget, in place of those that the config names.
      algorithm: your own game, network or algorithm, instead of those of the config (`algorithm.make`). No file holds
        them, so that only a program can load the run again (`muzero_jax.load(..., algorithm=...)`). What lies in files
        that the config names loads by itself.
      overwrite: delete the run in `run_dir` first.
      trust_code: run the Python files that the source of `init_from` names; those that the config names run anyway.
      say: called with each line for a person; `say=lambda line: None` prints nothing.
      on_metrics, on_evaluation: called as `run.callbacks.Callbacks` says.

    Raises ValueError in one sentence, as `runner.train` does, or for a config that makes no run.
    """
    if minutes is not None:
        config = replace(config, **dict.fromkeys(budget.FIELDS) | {"minutes": minutes})
    if algorithm is not None:
        config = configs.with_record(config)
    session = Session(run_dir=os.fspath(run_dir), overwrite=overwrite, trust_code=trust_code)
    available, cores = devices.configure_devices(), devices.usable_cores()
    from muzero_jax.apps.evaluation.progress import open_versions  # only now, as pgx starts JAX when it is imported
    from muzero_jax.run import runner

    if jax.default_backend() == "cpu" and available < cores:
        first = "muzero_jax.ops.devices.configure_devices()"
        say(f"JAX has begun with {available} of {cores} cores; to use all of them, call {first} before anything else")
    ready = prepare(config, session, available, say, is_given=algorithm is not None)
    where, callbacks = (ready.run_dir, ready.mesh), Callbacks(on_metrics, on_evaluation)
    return runner.train(ready.config, session, *where, say, algorithm, callbacks, make_evaluator=open_versions)


def prepare(
    config: Config,
    session: Session,
    num_devices: int,
    say: Say,
    *,
    made_with: Config | None = None,
    is_given: bool = False,
) -> Ready:
    """Settles what a run's source and devices decide, checks it, says what will be trained, and makes its folder.

    Args:
      num_devices: those at hand, as `devices.configure_devices` says.
      made_with: the config of the run that `session.resume` goes on with.
      is_given: a program gives the algorithm in place of what the config names, which is then not checked.

    Raises ValueError in one sentence, before anything is made or deleted.
    """
    processes.check_alike("command", repr((config, session.resume, session.overwrite)))
    with processes.all_or_none():
        return _prepare(config, session, num_devices, say, made_with, is_given)


def _prepare(
    config: Config, session: Session, num_devices: int, say: Say, made_with: Config | None, is_given: bool
) -> Ready:
    config = configs.with_absolute_paths(config)
    if not session.resume:
        config = offline.fit_to_source(config, num_devices)
    run_dir = _check(config, session, made_with or config)
    if is_given and session.autotune:
        raise ValueError("--autotune measures what the config names; leave it out with a game or network of your own")
    mesh = devices.make_mesh(_count_devices(config, session, num_devices, say))
    if session.compilation_cache:
        compilation_cache.enable()
    if not is_given:
        _check_files(config, say, is_new=not session.resume)
    if session.autotune:
        from muzero_jax.run import autotune

        config = autotune.tune(config, mesh, minutes=session.autotune_minutes, say=say)
    _introduce(config, mesh.size, run_dir, say, verbose=session.verbose)
    if not session.resume and (advice := _advice(config)):
        say(f"advice      {advice}")
    if python_file.is_path(config.env) and not (session.resume or is_given):
        _examine(config, say)
    return Ready(config, run_dir, mesh)


def _check(config: Config, session: Session, made_with: Config) -> Path:
    """The run's folder, neither made nor touched; ValueError in one sentence if the flags make no run."""
    validate(config)
    sessions.validate(session)
    if session.wandb:
        metrics.check_wandb()
    run_dir = Path(session.run_dir) if session.run_dir else run_directory.default(config)
    if config.offline:
        offline.check(session)
    if processes.is_first():  # who makes the folder meanwhile
        run_directory.check(run_dir, resume=session.resume, overwrite=session.overwrite, sources=config.sources)
    if session.resume:
        check_resumable(config, made_with)
        budget.check_left(config, run_dir)
    return run_dir


def _check_files(config: Config, say: Say, *, is_new: bool) -> None:
    """Checks a network and an algorithm in files of the user's; raises ValueError for what cannot be meant."""
    network, algorithm_file = config.network.file, config.algorithm.file if is_new else None
    if not (network or algorithm_file):
        return
    from muzero_jax import algorithm as algorithms  # here, because pgx starts JAX when it is imported
    from muzero_jax.apps.check.algorithm import check_algorithm
    from muzero_jax.apps.check.model import check_model

    algorithm = algorithms.make(config)
    if network and config.model != "rules":  # the check looks at the dynamics most of all, and there are none
        for sentence in check_model(algorithm.model, algorithm.environment):
            say(f"warning     {network}: {sentence}")
    if algorithm_file:
        say(f"checking    {algorithm_file} (up to half a minute)")
        if found := check_algorithm(algorithm, config):
            raise ValueError(f"{algorithm_file}: {found[0]}")


def _count_devices(config: Config, session: Session, num_devices: int, say: Say) -> int:
    """The number of devices that share the games and the batch: as many as divide them, or what `--devices` says."""
    if session.devices is None and processes.count() == 1:
        used = devices.largest_divisor(num_devices, *config.shared_sizes)
        if used < num_devices:
            games, windows = (-(-size // num_devices) * num_devices for size in config.shared_sizes)
            say(
                f"using {used} of {num_devices} devices, because they share games and batch evenly; all would be used "
                f"with --self-play.num-envs {games} --optimiser.batch-size {windows}"
            )
        return used
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        devices.check_divisible(flag, size, num_devices)
    return num_devices


def _introduce(config: Config, num_devices: int, run_dir: Path, say: Say, *, verbose: bool) -> None:
    """Says what will be trained, on what, for how long and where; with `verbose` the whole config."""
    from muzero_jax.algorithm import playing
    from muzero_jax.games.catalogue import game_of

    if verbose:
        say(configs.describe(config))
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    compute_dtype, reason = precision.resolve(config.network.compute_dtype)
    say(f"game        {game_of(playing.build_environment(config)).title}{size}")
    say(f"device      {devices.describe_device(num_devices)}, {compute_dtype} ({reason})")
    say(f"budget      {budget.describe(config)}; compiling and the final matches come on top")
    if config.offline:
        say(f"offline     from the games of {config.offline} alone; none are played")
    say(f"directory   {run_dir}")
    if config.model == "rules" and ":" in config.env and not python_file.is_path(config.env):  # gymnax:X, X:hidden
        say("hidden      --model rules plans with the whole state, also with what the player may not see")


def _advice(config: Config) -> str:
    """Advice that would save most of the time of a run on a large board; "" where there is none."""
    begins_anew = not (config.init_from or config.offline)
    scales = config.network.kind == "fully_convolutional"  # its weights fit every board
    if begins_anew and scales and (config.board_size or 0) >= LARGE_BOARD:
        return "it learns far sooner from the weights of a smaller board, by --init-from (docs/larger-boards.md)"
    return ""


def _examine(config: Config, say: Say) -> None:
    """Plays random games of somebody's own file; raises ValueError for the first problem, and says what is odd."""
    from muzero_jax.algorithm import playing
    from muzero_jax.apps.check import environment as checks
    from muzero_jax.games import own_game

    environment, num_games = playing.build_environment(config), own_game.NUM_GAMES
    largest = config.network.support_range
    found = checks.examine(
        environment, num_games=num_games, max_moves=1000, seconds=MOST_CHECK_SECONDS, largest=largest
    )
    whole_check = f"muzero_jax.check_environment({config.env!r})"
    if found.problems:
        more = f" (and {len(found.problems) - 1} more: {whole_check} names all)" if len(found.problems) > 1 else ""
        raise ValueError(f"{config.env}: {found.problems[0]}{more}")
    for doubt in found.doubts:
        say(f"doubt       {doubt}")
    is_taken_to_alternate = environment.num_players == 2 and environment.discount is not None
    if is_taken_to_alternate and config.model != "rules" and not config.network.predict_discount:
        say(
            f"turns       alternated in all {num_games} random games; add --network.predict-discount if a player may "
            "ever move twice"
        )
    if not found.is_complete:
        say(f"check       in part, because the rules are slow; {whole_check} makes all of it")
