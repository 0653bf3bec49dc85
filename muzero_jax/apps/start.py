"""Starts a run from its config; `experiments/train.py` and `muzero_jax.train` both come through here."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.apps.check import algorithm_checks, environment_checks, model_checks
from muzero_jax.apps.evaluation.progress import open_versions
from muzero_jax.apps.sources import offline, warm_start
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, describe, with_record, without_record
from muzero_jax.config.session import Session, validate_session
from muzero_jax.config.validation import check_resumable, validate
from muzero_jax.games import own_game
from muzero_jax.games.catalogue import check_players, game_of
from muzero_jax.ops import precision
from muzero_jax.ops.mesh import largest_divisor, local_mesh, make_mesh
from muzero_jax.own import python_file
from muzero_jax.run import autotune, budget, compilation_cache, metrics, processes
from muzero_jax.run.compiled import check_shares
from muzero_jax.run.interrupt import Interrupt, Stopped
from muzero_jax.run.loop import train_to_end
from muzero_jax.run.machine import describe_device
from muzero_jax.run.metrics import Callbacks
from muzero_jax.run.run import Result, Run, Say
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import Environment, Params, TrainState

LARGE_BOARD = 9
"""From this size on, the advice is to begin on a smaller board: an agent trained for 8 minutes on 5x5, 7x7 and then 9x9
won all 256 games against one trained for 12 minutes on 9x9 only (docs/results/2026-11-25-agents.md)."""


@contextmanager
def prepare(
    config: Config,
    session: Session,
    num_devices: int,
    say: Say,
    *,
    made_with: Config | None = None,
    build: Callable[[Config], Algorithm] | None = None,
) -> Iterator[Run]:
    """Checks a run, takes sizes from its source or `--autotune`, locks its folder and says what will be trained.

    Args:
      config: with absolute paths.
      num_devices: the available devices (`machine.count_devices`).
      made_with: the config of the run that `session.resume` continues.
      build: makes the caller's own algorithm instead of the one that the config names; it is not checked.

    Raises ValueError, before anything is deleted, if the run cannot be made.
    """
    processes.check_alike("command", repr((config, session.resume, session.overwrite)))
    if not session.resume:
        config = offline.fit_to_source(config, num_devices)
    check(config, session, made_with or config, has_own_parts=build is not None)
    folder = folder_of(config, session)
    mesh = make_mesh(_count_devices(config, session, num_devices, say))
    if session.compilation_cache:
        compilation_cache.enable()
    with _locked(folder, config, session):
        config, algorithm = _built(config, session, build, mesh, say)
        _introduce(config, algorithm.environment, mesh.size, folder, say, verbose=session.verbose)
        if not session.resume and (advice := _advice(config)):
            say(f"advice      {advice}")
        if python_file.is_path(config.env) and not (session.resume or build):
            _examine(config, algorithm.environment, say)
        yield Run(config=config, folder=folder, algorithm=algorithm, mesh=mesh, session=session, say=say)


def train(run: Run, callbacks: Callbacks | None = None) -> Result:
    """Trains a run until its budget is spent or a signal asks for a stop, and plays its final matches.

    A signal saves the run at the end of the chunk. In the final matches, all but Ctrl-C raise `interrupt.Stopped`.

    Args:
      run: as `prepare` gives it.
      callbacks: a user's functions, called with every record after it is written. An exception in one ends the run like
        Ctrl-C, and is raised after the run is saved.

    Raises ValueError if the budget ends before the first update, the run diverges, the disk is full, or the checkpoint
    is of another configuration. The last good checkpoint is kept.
    """
    callbacks = callbacks or Callbacks()
    with (
        Interrupt() as interrupt,
        Checkpointer(run.folder / run_directory.CHECKPOINTS) as checkpoints,
        ExitStack() as opened,
    ):
        started = time.perf_counter()
        newest = run.newest_checkpoint()
        fill, weights = _open_sources(run) if newest is None else (None, None)
        init = run.compile()
        abstract = init.eval_shape()
        is_new = newest is None
        state = _first_state(init, abstract, fill, weights) if is_new else checkpoints.restore(newest, abstract)
        del init, fill, weights  # its compiled program of 20 MiB and more, and the sources' data
        if processes.is_first():
            if run.session.overwrite:
                if interrupt.requested:  # keep the old run
                    raise Stopped
                run_directory.make_room(run.folder)
            run.write_files()  # only now, because flags that do not fit the checkpoint must not replace its config
        processes.check_shared(run.folder / config_file.FILE)
        iteration = newest or 0
        params = abstract.learner.params
        where = local_mesh(run.mesh)
        evaluator = open_versions(run.config, run.algorithm, where, run.folder, params, iteration)
        write = opened.enter_context(run.open_records(iteration, callbacks))
        run.begin(state, iteration, checkpoints, evaluator, write, started=started)
        del state
        begun = "training" if is_new else f"continuing from iteration {iteration}"
        run.say(f"{begun}; Ctrl-C saves and stops")
        return train_to_end(run, interrupt, callbacks)


def _open_sources(run: Run) -> tuple[offline.Fill | None, Params | None]:
    """What a new run begins with: the function that fills its buffer (`--offline`), and weights (`--init-from`).

    Raises ValueError if a source cannot be read or does not fit.
    """
    config = run.config
    algorithm = run.algorithm
    fill = offline.open_source(config, algorithm.environment, run.say) if config.offline else None
    if not config.init_from:
        return fill, None
    given = algorithm if config.algorithm.is_record else None  # the config cannot rebuild it
    trust_code = run.session.trust_code
    return fill, warm_start.open_source(config, algorithm.model, run.say, given=given, trust_code=trust_code)


def _first_state(
    init: Callable[[], TrainState], abstract: TrainState, fill: offline.Fill | None, weights: Params | None
) -> TrainState:
    """The first state of a run, with the source's buffer (`fill`) and `weights` if given."""
    state = init()
    if weights is not None:
        state = state._replace(learner=warm_start.place(state.learner, weights, abstract.learner))
    if fill is None:
        return state
    state = state._replace(replay=None)  # type: ignore  # frees the memory of the empty buffer
    return state._replace(replay=fill(abstract.replay))


def folder_of(config: Config, session: Session) -> Path:
    """The run's folder: the one that the flags name, or the default."""
    return Path(session.run_dir) if session.run_dir else run_directory.default(config)


def check(config: Config, session: Session, made_with: Config, *, has_own_parts: bool = False) -> None:
    """Raises ValueError if the flags make no run.

    Args:
      made_with: the config of the run that is resumed. has_own_parts: a program passed its own algorithm.
    """
    validate(config)
    validate_session(session)
    if session.wandb:
        metrics.check_wandb()
    if config.offline and session.autotune:
        raise ValueError("--autotune finds sizes for self-play, and --offline plays no games; leave it out")
    if session.resume:
        check_resumable(config, made_with)
        budget.check_left(config, folder_of(config, session))
    if has_own_parts and session.autotune:
        raise ValueError("--autotune cannot measure parts that your program passed; leave it out")
    if config.board_sizes and (has_own_parts or session.autotune or session.profile):
        raise ValueError(
            "--board-sizes compiles a program for each board from the config and cannot be combined with parts that "
            "your program passed, with --autotune or with --profile; leave one out"
        )


def _locked(folder: Path, config: Config, session: Session) -> AbstractContextManager[None]:
    """The run's folder, checked and locked, by process 0 only."""
    if not processes.is_first():
        return nullcontext()
    return run_directory.opened(folder, resume=session.resume, overwrite=session.overwrite, sources=config.sources)


def _built(
    config: Config, session: Session, build: Callable[[Config], Algorithm] | None, mesh: Mesh, say: Say
) -> tuple[Config, Algorithm]:
    """The algorithm, checked, and the config with the sizes that `--autotune` found."""
    if build:
        algorithm = build(without_record(config))
        check_players(algorithm.environment)
        return with_record(config), algorithm
    algorithm = make_algorithm(config)
    _check_files(config, algorithm, say, is_new=not session.resume)
    if session.autotune and not session.resume:
        config = autotune.tune(config, mesh, session, say)
        algorithm = make_algorithm(config, algorithm.environment)
    return config, algorithm


def _check_files(config: Config, algorithm: Algorithm, say: Say, *, is_new: bool) -> None:
    """Checks the user's own network file (warns) and own algorithm file (raises ValueError for the first fault)."""
    network = config.network.file
    if network and config.learns_dynamics:
        for sentence in model_checks.examine(algorithm.model, algorithm.environment):
            say(f"warning     {network}: {sentence}")
    if is_new and (files := " ".join(config.algorithm.files)):
        say(f"checking    {files} (up to half a minute)")
        for sentence in algorithm_checks.examine(algorithm):
            if not sentence.startswith("doubt: "):
                raise ValueError(f"{files}: {sentence}")
            say(f"doubt       {sentence.removeprefix('doubt: ')}")


def _count_devices(config: Config, session: Session, num_devices: int, say: Say) -> int:
    """The number of devices to use: `--devices`, or by default the most that divide the games and the batch evenly."""
    if session.devices is None and processes.count() == 1:
        used = largest_divisor(num_devices, *config.shared_sizes)
        if used < num_devices:
            games, windows = (-(-size // num_devices) * num_devices for size in config.shared_sizes)
            say(
                f"using {used} of {num_devices} devices, because they share games and batch evenly; all would be used "
                f"with --self-play.num-envs {games} --optimiser.batch-size {windows}"
            )
        return used
    check_shares(config, num_devices)
    return num_devices


def _introduce(
    config: Config, environment: Environment, num_devices: int, run_dir: Path, say: Say, *, verbose: bool
) -> None:
    """Says what will be trained, on what, for how long and where; with `verbose` the whole config."""
    if verbose:
        say(describe(config))
    size = f" {', '.join(f'{side}x{side}' for side in config.boards)}" if config.boards else ""
    compute_dtype, reason = precision.resolve(config.network.compute_dtype)
    say(f"game        {game_of(environment).title}{size}")
    say(f"device      {describe_device(num_devices)}, {compute_dtype} ({reason})")
    on_top = "compiling and the final matches come" if environment.num_players == 2 else "compiling comes"
    say(f"budget      {budget.describe(config)}; {on_top} on top")
    if config.offline:
        say(f"offline     from the games of {config.offline} alone; none are played")
    say(f"directory   {run_dir}")
    if config.model == "rules" and python_file.is_path(config.env):
        say("hidden      --model rules searches the whole state, so it also sees what your game may hide from a player")
    elif config.model == "rules" and ":" in config.env:  # gymnax:X, minatar-X:hidden
        say("hidden      --model rules searches the whole state, so it also sees what the game hides from the player")


def _advice(config: Config) -> str:
    """Advice that saves most of the training time on a large board; "" if there is none to give."""
    begins_anew = not (config.init_from or config.offline or config.board_sizes)
    scales = config.network.kind == "fully_convolutional"  # the weights fit every board size
    if begins_anew and scales and (config.board_size or 0) >= LARGE_BOARD:
        return "it learns far sooner from the weights of a smaller board, by --init-from (docs/larger-boards.md)"
    return ""


def _examine(config: Config, environment: Environment, say: Say) -> None:
    """Checks a game file of the user's by random games; raises ValueError for the first problem, prints doubts."""
    found = environment_checks.examine(environment, largest=config.network.support_range)
    if found.problems:
        whole_check = f"muzero_jax.check({config.env!r})"
        more = f" (and {len(found.problems) - 1} more: {whole_check} names all)" if len(found.problems) > 1 else ""
        raise ValueError(f"{config.env}: {found.problems[0]}{more}")
    for doubt in found.doubts:
        say(f"doubt       {doubt}")
    is_taken_to_alternate = environment.num_players == 2 and environment.discount is not None
    if is_taken_to_alternate and config.learns_dynamics and not config.network.predict_discount:
        say(
            f"turns       alternated in all {own_game.NUM_GAMES} random games; add --network.predict-discount if a "
            "player may ever move twice"
        )
