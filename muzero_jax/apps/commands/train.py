"""Trains a MuZero agent from nothing: python experiments/train.py --env hex --board-size 5 --minutes 5

The command line is read twice. First `--env`, `--board-size` and `--resume` choose a preset, or the saved config of the
run to go on with; then every flag overrides one field of it, and `--help` shows that very preset's defaults.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from muzero_jax import presets
from muzero_jax.apps.commands import flag_reader, several, train_flags, variants
from muzero_jax.apps.commands.command_line import (
    EXIT_INTERRUPTED,
    ask_command,
    command,
    play_command,
    report_errors,
)
from muzero_jax.apps.commands.train_flags import Command
from muzero_jax.ops import devices
from muzero_jax.own import python_file, trust
from muzero_jax.own.trust import Trust
from muzero_jax.run import budget, display, metrics, processes, profiling, tables
from muzero_jax.run import session as sessions
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.processes import Cluster
from muzero_jax.run.session import Session
from muzero_jax.run.sources import offline
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config


def choose_default(arguments: list[str]) -> tuple[Command, int]:
    """The config that the flags override (a preset, or the config of the run to resume), and the devices at hand.

    `--device`, `--devices` and `--profile` are read before JAX starts, because they cannot change afterwards.
    """
    known = read_ahead(arguments)
    if known.profile:
        profiling.disable_command_buffers()
    if known.distributed:
        processes.join(Cluster(known.coordinator, known.num_processes, known.process_id))
    num_devices = devices.configure_devices(known.devices, known.device)
    processes.check_devices()
    if known.resume_if_any:
        if known.run_dir is None:
            raise ValueError("--resume-if-any needs the folder of the run; add --run-dir")
        known.resume = run_directory.holds_run(known.run_dir)
    if known.resume:
        run_dir = known.run_dir or run_directory.newest(known.env, known.board_size, known.seed)
        if not known.run_dir:
            print(f"going on with {run_dir}")
        config, session = (
            configs.inspect(run_dir),
            Session(run_dir=str(run_dir), resume=known.resume_if_any),
        )  # `check_code` follows
    else:
        config, session = choose_preset(known), Session()
    given = [field for field in budget.FIELDS if getattr(known, field) is not None]
    if given:  # whoever gives a budget means that one
        config = replace(config, **{field: None for field in budget.FIELDS if field not in given})
    return Command(config, session), num_devices


def read_config(file: Path) -> Config:
    """The settings of another run, for a new one."""
    if not file.is_file():
        raise ValueError(f"--config: there is no file {file}; name the config.json in a run's folder")
    return configs.read(file, "name the config.json in a run's folder")


def choose_preset(known: argparse.Namespace) -> Config:
    """The settings of `--config`, or the game's preset; of a run that learns from another run's games, of that game."""
    if known.config:
        return read_config(known.config)
    if not known.offline:
        return presets.preset(known.env or Config.env, known.board_size)
    env, board_size = known.env, known.board_size
    source = offline.place(known.offline)
    if run_directory.holds_run(source):
        made_with = configs.inspect(source)
        if not env and python_file.is_path(made_with.env):  # the one file of that run which is built again
            trust.check([made_with.env], known.offline, Trust(known.trust_code))
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
    parser.add_argument("--config", type=Path)
    parser.add_argument("--offline", type=configs.absolute)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--resume-if-any", "--resume_if_any", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    parser.add_argument("--coordinator")
    parser.add_argument("--watchdog-minutes", "--watchdog_minutes", type=float, default=Session.watchdog_minutes)
    parser.add_argument("--trust-code", "--trust_code", action="store_true")
    for name in ("devices", "seed", "frames", "updates", "board-size", "max-iterations", "num-processes", "process-id"):
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


def parse(arguments: list[str]) -> tuple[Config, Session, Config, int] | None:
    """The run's config, the session, what the flags overrode, and the devices at hand; None after printing help."""
    arguments = train_flags.spelled_out(arguments)
    default, num_devices = choose_default([word for word in arguments if word not in train_flags.HELP])
    if not set(arguments).isdisjoint((*train_flags.HELP, train_flags.HELP_ALL)):
        print(f"{(__doc__ or '').splitlines()[0]}\n")
        print(train_flags.help_text(default, everything=train_flags.HELP_ALL in arguments))
        return None
    train_flags.check_names(arguments, default)
    config, session = flag_reader.read(Command, arguments, default=default, add_help=False)
    session = replace(session, resume=session.resume or default.session.resume)  # by --resume-if-any
    train_flags.check_network(arguments, config)
    config = configs.with_absolute_paths(config)
    check_code(config, session, arguments)
    return config, session, default.config, num_devices


def check_code(config: Config, session: Session, arguments: list[str]) -> None:
    """Raises ValueError for a Python file that a run's config names, not the flags, and that must not run."""
    if session.resume or session.config:
        typed = set(map(train_flags.name_of, arguments))
        own = {"--env": config.env, "--network.file": config.network.file, "--algorithm.file": config.algorithm.file}
        named = frozenset(file for flag, file in own.items() if file and flag in typed)
        where = f"{session.run_dir}/{configs.FILE}" if session.resume else str(session.config)
        trust.check(config.own_files, where, Trust(session.trust_code, named))


def main(arguments: list[str], build: Callable[[Config], Any] | None = None) -> int:
    """Runs the command; returns its exit status: 0 if the run has ended, or was saved because of SIGTERM or SIGHUP.

    `build` makes a game, a network or an algorithm of one's own, as `algorithm.make` makes the configured one.
    """
    distributed = is_distributed(arguments)
    if not distributed and (request := variants.read(arguments)):
        several.spare_accelerator()
        with suppress(Stopped):  # the run that was under way is saved
            return variants.train(request, parse, build)
        return 0
    parsed = parse(arguments)
    if parsed is None:
        return 0
    config, session, default, num_devices = parsed
    if distributed and (session.seeds > 1 or session.vary):
        raise ValueError("--seeds and --vary train several runs; with --distributed train one")
    if not processes.is_first():
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            return train(config, session, default, num_devices, build)
    return train(config, session, default, num_devices, build)


def train(
    config: Config,
    session: Session,
    default: Config,
    num_devices: int,
    build: Callable[[Config], Any] | None,
) -> int:
    """Trains one run; returns the exit status of `main`."""
    from muzero_jax.apps import start  # here, because pgx starts JAX when it is imported

    ready = start.prepare(config, session, num_devices, print, made_with=default, build=build)
    run_dir, environment = ready.run_dir, ready.algorithm.environment
    before = None if session.resume else run_directory.begun(run_dir)  # what --overwrite would delete
    try:
        result = start.train(ready, session, print)
        by_system = 75 if session.distributed else 0  # so that a scheduler starts it again
        status = (by_system if result.by_system else EXIT_INTERRUPTED) if result.interrupted else 0
    except KeyboardInterrupt as error:  # no chunk ran, or it was the second Ctrl-C: what was saved before is whole
        result, status = None, 0 if isinstance(error, Stopped) else EXIT_INTERRUPTED
    if not processes.is_first():
        return status
    if result is not None and not result.interrupted:
        show(result.summary)
    elif session.distributed and result is not None:
        print("stopped and saved; the same commands with --resume-if-any go on")
    elif result is not None or run_directory.begun(run_dir) not in (None, before):
        flags = f"--run-dir {shlex.quote(str(run_dir))} {sessions.flags_to_resume(session)}"
        print(f"stopped and saved; go on with: {command('train')} {flags}")
    else:
        print("interrupted before there was anything to save; the same command begins again", file=sys.stderr)
        return status
    print_what_next(run_dir, environment.num_players)
    return status


def show(summary: dict[str, Any]) -> None:
    """Prints how strong the agent has become and what the run cost."""
    if summary["strength"]:
        print(f"\n{tables.strength(summary['strength'])}")
    if openings := summary.get("openings"):
        print(f"opening-value accuracy: {openings['right']} of {openings['solved']}")
    if returns := summary.get("returns"):
        shown = [f"{value:.3g} ({name})" for name, value in returns.items() if value is not None]
        print(f"\nMean return: {', '.join(shown)}")
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
    print(f"network: {total:.2e} FLOPs in self-play and learning, {rate:.1e} a second")


def print_what_next(run_dir: Path, num_players: int) -> None:
    """Prints where the curves are, and how to play the agent, or to ask it where the game is for one."""
    if (run_dir / metrics.CURVES).exists():
        print(f"curves: {run_dir / metrics.CURVES}")
    if num_players == 2:
        print(f"play:   {play_command(run_dir)}")
        return
    print(f"returns: {command('evaluate')} returns --run {shlex.quote(str(run_dir))}")
    print(f"ask:    {ask_command(run_dir)}")


def run(arguments: list[str]) -> int:
    """`main`, with a mistake as one sentence; returns the exit status. One of several processes gets a watchdog."""
    status = report_errors(main, arguments)
    if is_distributed(arguments) and status:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # or JAX would wait for the other processes
    return status


def is_distributed(arguments: list[str]) -> bool:
    """Whether this is one of several processes, and not a call for help."""
    return "--distributed" in arguments and set(arguments).isdisjoint((*train_flags.HELP, train_flags.HELP_ALL))
