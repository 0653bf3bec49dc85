"""Trains a MuZero agent from scratch: python experiments/train.py --env hex --board-size 5 --minutes 5

`--env` and `--board-size` choose a preset; `--resume` takes the config of the run that it continues. Every other flag
overrides one field of these settings, and `--help` shows their values as defaults.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from muzero_jax import presets
from muzero_jax.apps import start
from muzero_jax.apps.commands import parser, variants
from muzero_jax.apps.commands.command_line import command
from muzero_jax.apps.commands.constants import EXIT_INTERRUPTED, EXIT_UNFINISHED
from muzero_jax.apps.commands.parser import FlagTexts
from muzero_jax.apps.doctor.records import have_risen
from muzero_jax.apps.evaluation import tables
from muzero_jax.apps.sources import offline, warm_start
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.fields import flag_of, names
from muzero_jax.config.paths import absolute, absolute_env, with_absolute_paths
from muzero_jax.config.session import Session, flags_to_resume
from muzero_jax.own import python_file, trust
from muzero_jax.own.trust import Trust
from muzero_jax.run import metrics, processes
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.machine import count_devices, format_bytes
from muzero_jax.storage import run_directory


def settle(given: FlagTexts, session: Session) -> tuple[Config, Session, Config]:
    """The run that the flags ask for: its config and session, and what the flags overrode (a preset, or another run's).

    Raises ValueError also for code that is not trusted (`own.trust`).
    """
    if "board_sizes" in given and "board_size" not in given:
        sizes = parser.convert(Config, {"board_sizes": given["board_sizes"]}).board_sizes
        given = given | {"board_size": str(max(sizes))}
    session = resumed(given, session)
    base = base_of(given, session)
    config = with_absolute_paths(overridden(base, given))
    _check_code(config, session, given)
    return config, session, base


def resumed(given: FlagTexts, session: Session) -> Session:
    """The session, with the folder of the run that it continues if it continues one."""
    if session.resume_if_any:
        if session.run_dir is None:
            raise ValueError("--resume-if-any needs the folder of the run; add --run-dir")
        session = replace(session, resume=run_directory.holds_run(Path(session.run_dir)))
    if not session.resume or session.run_dir:
        return session
    asked = parser.convert(Config, {name: given[name] for name in ("env", "board_size", "seed") if name in given})
    known = [getattr(asked, name) if name in given else None for name in ("env", "board_size", "seed")]
    run_dir = str(run_directory.newest(known[0] and absolute_env(known[0]), *known[1:]))
    print(f"continuing {run_dir}")
    return replace(session, run_dir=run_dir)


def base_of(given: FlagTexts, session: Session) -> Config:
    """The settings that the flags override: those of the run that is continued, of a file, or of a preset."""
    if session.resume:
        return config_file.inspect(Path(str(session.run_dir)))  # `_check_code` follows
    base = choose_preset(given, session)
    if session.config or "init_from" not in given:
        return base
    source = parser.convert(Config, {"init_from": given["init_from"]}).init_from
    return replace(base, network=warm_start.network_of(source, base.network)) if source else base


def overridden(base: Config, given: FlagTexts) -> Config:
    """The settings with the typed values; a budget on the command line replaces all of the preset's."""
    budgets = names(Config, "budget")
    if not given.keys().isdisjoint(budgets):
        base = replace(base, **{name: None for name in budgets if name not in given})
    config = parser.override(base, given)
    if config.network.file and (unheard := [name for name in names(Config, "built_in") if name in given]):
        option = f"--network.options {unheard[0].partition('.')[2]}=..."
        raise ValueError(f"{flag_of(unheard[0])} has no effect on a network of your own; write {option}")
    if "network.canonical" in given and config.network.canonical and not config.network.is_canonical:
        kind = config.network.kind
        raise ValueError(
            f"--network.canonical has no effect with --network.kind {kind}; add --network.kind observation or "
            "fully_convolutional, or leave it out"
        )
    return config


def choose_preset(given: FlagTexts, session: Session) -> Config:
    """The settings of `--config`, or the preset of the game; an offline run takes the game of its source by default."""
    if session.config:
        if not Path(session.config).is_file():
            raise ValueError(f"--config: there is no file {session.config}; name the config.json in a run's folder")
        return config_file.read(Path(session.config), "name the config.json in a run's folder")
    basics = "env", "board_size", "board_sizes", "offline"
    asked = parser.convert(Config, {name: given[name] for name in basics if name in given})
    env = absolute_env(asked.env) if "env" in given else None
    board_size = asked.board_size
    if not asked.offline:
        return presets.preset(env or Config.env, board_size, fits_every_board=bool(asked.board_sizes))
    folder = absolute(asked.offline)
    source = offline.place(folder)
    if run_directory.holds_run(source):
        made_with = config_file.inspect(source)
        if not env and python_file.is_path(made_with.env):  # of that run's files only this one is loaded
            trust.check([made_with.env], folder, Trust(session.trust_code))
        env = env or made_with.env
        board_size = board_size or (made_with.board_size if env == made_with.env else None)
    elif not env:
        raise ValueError(f"--env must say which game was played in {folder}; add --env NAME")
    return offline.begin(replace(presets.preset(env, board_size), offline=folder))


def _check_code(config: Config, session: Session, given: FlagTexts) -> None:
    """Raises ValueError for an untrusted Python file that a saved config names and the flags do not."""
    if session.resume or session.config:
        named = frozenset(file for file, name in config.own_files.items() if name in given)
        where = f"{session.run_dir}/{config_file.FILE}" if session.resume else str(session.config)
        trust.check(config.own_files, where, Trust(session.trust_code, named))


def main(arguments: Sequence[str], build: Callable[[Config], Any] | None = None) -> int:
    """Runs the command; returns its exit status: 0 if the run has ended, or was saved after SIGTERM or SIGHUP.

    `build` makes your own game, network or algorithm, as `make_algorithm` makes the configured one.
    """
    given = parser.split(arguments, Config, Session)
    session = parser.convert(Session, given)
    num_devices = count_devices(session.devices)
    if parser.HELP in given or parser.HELP_ALL in given:
        _, _, base = settle(given, session)
        flags = [*parser.flags_of(base), *parser.flags_of(session)]
        title = (__doc__ or "").splitlines()[0]
        print(f"{title}\n\n{parser.help_text(flags, everything=parser.HELP_ALL in given)}")
        return 0
    if session.seeds > 1 or session.vary:
        if session.distributed:
            raise ValueError("--seeds and --vary train several runs; with --distributed train one")
        with suppress(Stopped):  # the run in progress is saved
            return variants.train(given, session, settle, num_devices, is_given=build is not None)
        return 0
    if processes.is_first():
        return train(*settle(given, session), num_devices, build)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return train(*settle(given, session), num_devices, build)


def train(
    config: Config, session: Session, base: Config, num_devices: int, build: Callable[[Config], Any] | None
) -> int:
    """Trains one run; returns the exit status of `main`. `base` is what the flags overrode."""
    with start.prepare(config, session, num_devices, print, made_with=base, build=build) as run:
        before = None if session.resume else run_directory.begun(run.folder)  # what --overwrite would delete
        by_system = EXIT_UNFINISHED if session.distributed else 0  # so that a scheduler starts it again
        try:
            result = start.train(run)
            status = (by_system if result.by_system else EXIT_INTERRUPTED) if result.interrupted else 0
        except KeyboardInterrupt as error:  # before the first chunk, or by a second Ctrl-C; earlier saves are intact
            result = None
            status = by_system if isinstance(error, Stopped) else EXIT_INTERRUPTED
    if not processes.is_first():
        return status
    if result is not None and not result.interrupted:
        show(result.summary)
    elif session.distributed and result is not None:
        print("stopped and saved; to continue, run the same commands with --resume-if-any")
    elif result is not None or run_directory.begun(run.folder) not in (None, before):
        flags = f"--run-dir {shlex.quote(str(run.folder))} {flags_to_resume(session)}"
        print(f"stopped and saved; continue with: {command('train')} {flags}")
    else:
        print("interrupted before there was anything to save; run the same command again", file=sys.stderr)
        return status
    print_what_next(run.folder, run.algorithm.environment.num_players)
    if run_directory.has_ended(run.folder) and not have_risen(metrics.read_records(run.folder)):
        print(f"its scores did not rise; this may say why: {command('doctor')} {shlex.quote(str(run.folder))}")
    return status


def show(summary: dict[str, Any]) -> None:
    """Prints the agent's final scores, and the run's work, time, memory and FLOPs."""
    if summary["strength"]:
        print(f"\n{tables.strength(summary['strength'])}")
    if openings := summary.get("openings"):
        print(f"opening-value accuracy: {openings['right']} of {openings['solved']}")
    if "exploitability" in summary:
        print(
            f"exploitability: {summary['exploitability']:.4f} points a game, which a best response wins; 0 is perfect"
        )
    if returns := summary.get("returns"):
        shown = [f"{value:.3g} ({name})" for name, value in returns.items() if value is not None]
        print(f"\nMean return: {', '.join(shown)}")
    seconds = summary["seconds"]
    rates = summary["rates"]
    cost = [
        {"": name, "total": f"{total:,.0f}", "per second": f"{rates[name]:,.1f}"}
        for name, total in summary["totals"].items()
    ]
    together = " (rates are those of self-play and learning together)" if "frames" in rates else ""
    tables.summary_table(cost, f"\nWork{together}")
    spent = [
        {"": purpose, "seconds": f"{time:.0f}", "share": f"{time / sum(seconds.values()):.0%}"}
        for purpose, time in seconds.items()
    ]
    tables.summary_table(spent, "\nTime")
    memory = (f"{format_bytes(size)} {name}" for name, size in summary["memory"].items() if size is not None)
    print("\nmemory per device: " + ", ".join(memory))
    total = summary["flops"]["total"]
    rate = summary["flops"]["rate"]
    print(f"network: {total:.2e} FLOPs in self-play and learning, {rate:.1e} a second")


def print_what_next(run_dir: Path, num_players: int) -> None:
    """Prints where the curves are, how to play against the agent, and in a single-player game how to measure it."""
    if (run_dir / metrics.CURVES).exists():
        print(f"curves: {run_dir / metrics.CURVES}")
    run = shlex.quote(str(run_dir))
    print(f"play:   {command('play')} --run {run} --web")
    if num_players == 1:
        print(f"returns: {command('evaluate')} returns --run {run}")
