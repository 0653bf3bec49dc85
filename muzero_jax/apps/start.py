"""Starts a run from its config; `experiments/train.py` and `muzero_jax.train` both come through here."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.apps.check import algorithm_checks, environment_checks, model_checks
from muzero_jax.apps.evaluation.progress import open_versions
from muzero_jax.apps.sources import offline, warm_start
from muzero_jax.config.config import IN_PYTHON, Config, describe, with_record, without_record
from muzero_jax.config.paths import with_absolute_paths
from muzero_jax.config.session import Session, validate_session
from muzero_jax.config.validation import check_resumable, validate
from muzero_jax.games import own_game
from muzero_jax.games.catalogue import check_players, game_of
from muzero_jax.ops import precision
from muzero_jax.ops.mesh import largest_divisor, make_mesh
from muzero_jax.own import python_file
from muzero_jax.run import autotune, budget, compilation_cache, metrics, processes, runner
from muzero_jax.run.compiled import Compiled, check_shares, compile_agent
from muzero_jax.run.machine import describe_device
from muzero_jax.run.metrics import Callbacks
from muzero_jax.run.run import Result
from muzero_jax.run.sizes import compile_sizes
from muzero_jax.storage import run_directory
from muzero_jax.types import Environment, Params, TrainState

LARGE_BOARD = 9
"""From this size on, the advice is to begin on a smaller board: an agent trained for 8 minutes on 5x5, 7x7 and then 9x9
won all 256 games against one trained for 12 minutes on 9x9 only (docs/results/2026-11-25-agents.md)."""

Say = Callable[[str], None]


class Ready(NamedTuple):
    """A run whose flags and files have been checked."""

    config: Config  # with the sizes that the source or `--autotune` found
    run_dir: Path  # locked while `prepare` is open
    mesh: Mesh
    algorithm: Algorithm


@contextmanager
def prepare(
    config: Config,
    session: Session,
    num_devices: int,
    say: Say,
    *,
    made_with: Config | None = None,
    build: Callable[[Config], Algorithm] | None = None,
) -> Iterator[Ready]:
    """Checks a run, takes sizes from its source or `--autotune`, locks its folder and says what will be trained.

    Args:
      num_devices: the available devices, as `devices.configure_devices` returns.
      made_with: the config of the run that `session.resume` continues.
      build: makes the caller's own algorithm instead of the one that the config names; it is not checked.

    Raises ValueError, before anything is deleted, if the run cannot be made.
    """
    processes.check_alike("command", repr((config, session.resume, session.overwrite)))
    config = with_absolute_paths(config)
    if not session.resume:
        config = offline.fit_to_source(config, num_devices)
    run_dir = check(config, session, made_with or config)
    if build and session.autotune:
        raise ValueError("--autotune cannot measure parts that your program passed; leave it out")
    if config.board_sizes and (build or session.autotune or session.profile):
        raise ValueError(
            "--board-sizes compiles a program for each board from the config and cannot be combined with parts that "
            "your program passed, with --autotune or with --profile; leave one out"
        )
    mesh = make_mesh(_count_devices(config, session, num_devices, say))
    if session.compilation_cache:
        compilation_cache.enable()
    with ExitStack() as opened:
        if processes.is_first():
            wanted = {"resume": session.resume, "overwrite": session.overwrite, "sources": config.sources}
            opened.enter_context(run_directory.opened(run_dir, **wanted))
        algorithm = build(without_record(config)) if build else make_algorithm(config)
        if build:
            check_players(algorithm.environment)
            config = with_record(config)
        else:
            _check_files(config, algorithm, say, is_new=not session.resume)
        if session.autotune:
            config = autotune.tune(config, mesh, minutes=session.autotune_minutes, say=say)
            algorithm = make_algorithm(config, algorithm.environment)
        _introduce(config, algorithm.environment, mesh.size, run_dir, say, verbose=session.verbose)
        if not session.resume and (advice := _advice(config)):
            say(f"advice      {advice}")
        if python_file.is_path(config.env) and not (session.resume or build):
            _examine(config, algorithm.environment, say)
        yield Ready(config, run_dir, mesh, algorithm)


def train(ready: Ready, session: Session, say: Say, callbacks: Callbacks | None = None) -> Result:
    """Trains a run and plays its final matches; raises ValueError as `runner.train` does."""
    config, run_dir, mesh, algorithm = ready
    if session.resume and run_directory.shared(run_dir):
        raise ValueError(f"{run_dir} was trained together with others; continue all of them with --together --resume")

    def compile_run(is_new: bool) -> Compiled:
        fill, weights = _open_sources(config, algorithm, session, say) if is_new else (None, None)
        compile_any = compile_sizes if config.board_sizes else compile_agent
        found = compile_any(config, algorithm, mesh, session, say)
        return found._replace(init=lambda: _first_state(found.init, found.abstract, fill, weights))

    agent = runner.Planned(config, run_dir)
    (result,) = runner.train([agent], compile_run, session, run_dir, mesh, say, callbacks, open_versions)
    if isinstance(result, ValueError):
        raise result
    return result


def _open_sources(
    config: Config, algorithm: Algorithm, session: Session, say: Say
) -> tuple[offline.Fill | None, Params | None]:
    """What a new run begins with: the function that fills its buffer (`--offline`), and weights (`--init-from`).

    Raises ValueError if a source cannot be read or does not fit.
    """
    fill = offline.open_source(config, algorithm.environment, say) if config.offline else None
    if not config.init_from:
        return fill, None
    given = algorithm if config.algorithm.file == IN_PYTHON else None  # the config cannot rebuild it
    return fill, warm_start.open_source(config, algorithm.model, say, given=given, trust_code=session.trust_code)


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


def check(config: Config, session: Session, made_with: Config) -> Path:
    """The path of the run's folder, which is not opened yet; raises ValueError if the flags make no run."""
    validate(config)
    validate_session(session)
    if session.wandb:
        metrics.check_wandb()
    run_dir = Path(session.run_dir) if session.run_dir else run_directory.default(config)
    if config.offline and session.autotune:
        raise ValueError("--autotune finds sizes for self-play, and --offline plays no games; leave it out")
    if session.resume:
        check_resumable(config, made_with)
        budget.check_left(config, run_dir)
    return run_dir


def _check_files(config: Config, algorithm: Algorithm, say: Say, *, is_new: bool) -> None:
    """Checks the user's own network file (warns) and own algorithm file (raises ValueError for the first fault)."""
    network = config.network.file
    algorithm_file = config.algorithm.file if is_new else None
    if network and config.model != "rules":  # the ground-truth model has no dynamics to check
        for sentence in model_checks.examine(algorithm.model, algorithm.environment):
            say(f"warning     {network}: {sentence}")
    if algorithm_file:
        say(f"checking    {algorithm_file} (up to half a minute)")
        for sentence in algorithm_checks.examine(algorithm):
            if not sentence.startswith("doubt: "):
                raise ValueError(f"{algorithm_file}: {sentence}")
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
    if is_taken_to_alternate and config.model != "rules" and not config.network.predict_discount:
        say(
            f"turns       alternated in all {own_game.NUM_GAMES} random games; add --network.predict-discount if a "
            "player may ever move twice"
        )
