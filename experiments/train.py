"""Trains a MuZero agent from nothing: python experiments/train.py --env hex --board-size 5 --minutes 5

The command line is read twice. First `--env`, `--board-size` and `--resume` choose a preset, or the saved config of the
run to go on with; then every flag overrides one field of it, and `--help` shows that very preset's defaults.
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from experiments import grow, presets, seeds, several, train_flags
from experiments.command_line import EXIT_INTERRUPTED, command, play_command, report_errors
from experiments.train_flags import Command
from muzero_jax.arithmetic import compilation_cache, devices, precision
from muzero_jax.evaluation import tables
from muzero_jax.run import budget, display, metrics, offline, profiling
from muzero_jax.run import session as sessions
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import python_file, run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import check_resumable, validate

MOST_CHECK_SECONDS = 3.0
"""After this time no further part of the check of somebody's own game begins."""


def choose_default(arguments: list[str]) -> tuple[Command, int]:
    """What the flags override (a preset, or the config of the run to resume), and the devices at hand.

    `--device`, `--devices` and `--profile` are read before JAX starts, because they cannot change afterwards.
    """
    known = read_ahead(arguments)
    if known.profile:
        profiling.disable_command_buffers()
    num_devices = devices.configure_devices(known.devices, known.device)
    if known.resume:
        run_dir = known.run_dir or run_directory.newest(known.env, known.board_size, known.seed)
        if not known.run_dir:
            print(f"going on with {run_dir}")
        config, session = configs.load(run_dir), Session(run_dir=str(run_dir))
    else:
        config, session = choose_preset(known), Session()
    given = [field for field in budget.FIELDS if getattr(known, field) is not None]
    if given:  # whoever gives a budget means that one
        config = replace(config, **{field: None for field in budget.FIELDS if field not in given})
    return Command(config, session), num_devices


def choose_preset(known: argparse.Namespace) -> Config:
    """The game's preset; of a run that learns from another run's games, the preset of that game."""
    if not known.offline:
        return presets.preset(known.env or Config.env, known.board_size)
    env, board_size = known.env, known.board_size
    if run_directory.holds_run(Path(known.offline)):
        made_with = configs.load(Path(known.offline))
        env = env or made_with.env
        board_size = board_size or (made_with.board_size if env == made_with.env else None)
    elif not env:
        raise ValueError(f"--env must say which game was played in {known.offline}; add --env NAME")
    return offline.begin(replace(presets.preset(env, board_size), offline=known.offline))


def read_ahead(arguments: list[str]) -> argparse.Namespace:
    """The flags that decide what the others override."""
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--env", type=configs.absolute_env)
    parser.add_argument("--minutes")
    parser.add_argument("--run-dir", "--run_dir", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--offline", type=configs.absolute)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--profile", action="store_true")
    for name in ("devices", "seed", "frames", "updates", "board-size", "max-iterations"):
        spellings = dict.fromkeys([f"--{name}", f"--{name.replace('-', '_')}"])
        parser.add_argument(*spellings, type=whole_number)
    return parser.parse_known_args(arguments)[0]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str):
        """Raises ValueError."""
        raise ValueError(message.removeprefix("argument "))


def whole_number(text: str) -> int | None:
    """The values of a flag that may be a whole number or None."""
    try:
        return None if text == "None" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; write all its digits") from None


def check(config: Config, session: Session, default: Config) -> Path:
    """The run's folder, neither made nor touched; ValueError in one sentence if the flags make no run."""
    validate(config)
    sessions.validate(session)
    if session.wandb:
        metrics.check_wandb()
    run_dir = Path(session.run_dir) if session.run_dir else run_directory.default(config)
    if config.offline:
        offline.check(session)
    run_directory.check(run_dir, resume=session.resume, overwrite=session.overwrite, sources=config.sources)
    if session.resume:
        check_resumable(config, default)
        budget.check_left(config, run_dir)
    return run_dir


def share_out(config: Config, session: Session, num_devices: int) -> int:
    """How many devices share the games and the batch: as many as divide them, or what `--devices` says."""
    if session.devices is None:
        used = devices.largest_divisor(num_devices, *config.shared_sizes)
        if used < num_devices:
            games, windows = (-(-size // num_devices) * num_devices for size in config.shared_sizes)
            print(
                f"using {used} of {num_devices} devices, because they share games and batch evenly; all would be used "
                f"with --self-play.num-envs {games} --optimiser.batch-size {windows}"
            )
        return used
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        devices.check_divisible(flag, size, num_devices)
    return num_devices


def parse(arguments: list[str]) -> tuple[Config, Session, Config, int] | None:
    """The run's config, the session, what the flags overrode, and the devices at hand; None after printing help."""
    arguments = train_flags.spelled_out(arguments)
    default, num_devices = choose_default([word for word in arguments if word not in train_flags.HELP])
    if not set(arguments).isdisjoint((*train_flags.HELP, train_flags.HELP_ALL)):
        print(f"{(__doc__ or '').splitlines()[0]}\n")
        print(train_flags.help_text(default, everything=train_flags.HELP_ALL in arguments))
        return None
    train_flags.check_names(arguments, default)
    config, session = tyro.cli(Command, default=default, args=arguments, add_help=False)
    sets_span = "--optimiser.decay-updates" in map(train_flags.name_of, arguments)
    if session.resume and not sets_span:
        config = budget.spanning(config, default.config)
    train_flags.check_network(arguments, config)
    config = configs.with_absolute_paths(config)
    if config.offline and not session.resume:
        config = offline.settle(config, num_devices)
    return config, session, default.config, num_devices


@display.output_may_end()
def main(arguments: list[str], make_parts: Callable[[Config], Any] | None = None) -> int:
    """Runs the command; returns its exit status: 0 if the run has ended, or was saved because of SIGTERM or SIGHUP.

    `make_parts` builds a game, a network or an algorithm of one's own, as `building.make_parts` builds the configured.
    """
    for driver in (grow, seeds):
        if asked := driver.read(arguments):
            several.spare_accelerator()
            with suppress(Stopped):  # the run that was under way is saved
                return driver.train(asked, parse, make_parts)
            return 0
    parsed = parse(arguments)
    if parsed is None:
        return 0
    config, session, default, num_devices = parsed
    run_dir = check(config, session, default)
    if make_parts and session.autotune:
        raise ValueError("--autotune measures the configured game and network; leave it out with parts of your own")
    from muzero_jax.run import autotune, runner

    mesh = devices.make_mesh(share_out(config, session, num_devices))
    if session.compilation_cache:
        compilation_cache.enable()
    if config.network.file and not make_parts:
        check_network(config)
    if session.autotune:
        config = autotune.tune(config, mesh, minutes=session.autotune_minutes, say=print)
    introduce(config, mesh.size, run_dir, verbose=session.verbose)
    if python_file.is_path(config.env) and not (session.resume or make_parts):
        examine(config)
    run_directory.prepare(run_dir, resume=session.resume, overwrite=session.overwrite)
    parts = make_parts(config) if make_parts else None
    before = None if session.resume else run_directory.begun(run_dir)  # what --overwrite would delete
    try:
        result = runner.train(config, session, run_dir, mesh, print, parts)
        status = 0 if result.by_system or not result.interrupted else EXIT_INTERRUPTED
    except KeyboardInterrupt as error:  # no chunk ran, or it was the second Ctrl-C: what was saved before is whole
        result, status = None, 0 if isinstance(error, Stopped) else EXIT_INTERRUPTED
    if result is not None and not result.interrupted:
        show(result.summary)
    elif result is not None or run_directory.begun(run_dir) not in (None, before):
        flags = f"--run-dir {shlex.quote(str(run_dir))} {sessions.flags_to_resume(session)}"
        print(f"stopped and saved; go on with: {command('train')} {flags}")
    else:
        print("interrupted before there was anything to save; the same command begins again", file=sys.stderr)
        return status
    print_what_next(run_dir)
    return status


def check_network(config: Config) -> None:
    """Prints what `check_model` finds in the user's own network; ValueError where it is no network at all."""
    from muzero_jax import building, check_model

    environment = building.build_environment(config)
    model = building.build_model(config, environment)
    if config.model == "rules":
        return  # `check_model` looks at the dynamics most of all, and there are none
    for sentence in check_model(model, environment):
        print(f"warning     {config.network.file}: {sentence}")


def introduce(config: Config, num_devices: int, run_dir: Path, *, verbose: bool) -> None:
    """Prints what will be trained, on what, for how long and where; with `verbose` the whole config."""
    from muzero_jax import building  # here, because pgx starts JAX when it is imported
    from muzero_jax.games.catalogue import game_of

    if verbose:
        print(configs.describe(config))
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    compute_dtype, reason = precision.resolve(config.network.compute_dtype)
    print(f"game        {game_of(building.build_environment(config)).title}{size}")
    print(f"device      {devices.describe_device(num_devices)}, {compute_dtype} ({reason})")
    print(f"budget      {budget.describe(config)}; compiling and the final matches come on top")
    if config.offline:
        print(f"offline     from the games of {config.offline} alone; none are played")
    print(f"directory   {run_dir}")


def examine(config: Config) -> None:
    """Plays random games of somebody's own file; raises ValueError for the first problem, and prints what is odd."""
    from muzero_jax import building
    from muzero_jax.games import check, own_game

    found = check.examine(
        building.build_environment(config), num_games=own_game.NUM_GAMES, max_moves=1000, seconds=MOST_CHECK_SECONDS
    )
    whole_check = f"muzero_jax.check_environment({config.env!r})"
    if found.problems:
        more = f" (and {len(found.problems) - 1} more: {whole_check} names all)" if len(found.problems) > 1 else ""
        raise ValueError(f"{config.env}: {found.problems[0]}{more}")
    for doubt in found.doubts:
        print(f"doubt       {doubt}")
    if not found.is_complete:
        print(f"check       in part, for the rules are slow; {whole_check} makes all of it")


def show(summary: dict[str, Any]) -> None:
    """Prints how strong the agent has become and what the run cost."""
    if summary["strength"]:
        print(f"\n{tables.strength(summary['strength'])}")
    if openings := summary.get("openings"):
        print(f"opening verdicts: {openings['right']} of {openings['solved']} right")
    seconds, rates = summary["seconds"], summary["rates"]
    cost = [
        {"": name, "total": f"{total:,.0f}", "per second": f"{rates[name]:,.1f}"}
        for name, total in summary["totals"].items()
    ]
    together = " (rates are those of self-play and learning together)" if "frames" in rates else ""
    display.summary_table(cost, f"\nWork{together}")
    spent = [
        {"": purpose, "seconds": f"{time:.0f}", "share": f"{time / sum(seconds.values()):.0%}"}
        for purpose, time in seconds.items()
    ]
    display.summary_table(spent, "\nTime")
    memory = (f"{devices.format_bytes(size)} {name}" for name, size in summary["memory"].items() if size is not None)
    print("\nmemory per device: " + ", ".join(memory))
    total, rate = summary["flops"]["total"], summary["flops"]["rate"]
    print(f"network: {total:.2e} floating point operations in self-play and learning, {rate:.1e} a second")


def print_what_next(run_dir: Path) -> None:
    """Prints where the curves are, and how to play the agent."""
    if (run_dir / metrics.CURVES).exists():
        print(f"curves: {run_dir / metrics.CURVES}")
    print(f"play:   {play_command(run_dir)}")


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
