"""Trains a MuZero agent from nothing: python experiments/train.py --env hex --board-size 5 --minutes 5

The command line is read twice. First `--env`, `--board-size` and `--resume` choose a preset, or the saved config of the
run to go on with; then every flag overrides one field of it, and `--help` shows that very preset's defaults.
"""

import argparse
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import tyro

from experiments import presets
from experiments.command_line import EXIT_INTERRUPTED, report_errors
from muzero_jax.arithmetic import devices, precision
from muzero_jax.evaluation import tables
from muzero_jax.run import display, metrics, profiling
from muzero_jax.run import session as sessions
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import validate


class Command(NamedTuple):
    """All flags: what a run is, and how it is held this time."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    session: Annotated[Session, tyro.conf.arg(name="")]


def choose_default(arguments: list[str]) -> tuple[Command, int]:
    """What the flags override (a preset, or the config of the run to resume), and the devices at hand.

    `--device`, `--devices` and `--profile` are read before JAX starts, because they cannot change afterwards.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--env", default="hex")
    parser.add_argument("--board-size", "--board_size", type=optional_int)
    parser.add_argument("--run-dir", "--run_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--devices", type=optional_int)
    parser.add_argument("--profile", action="store_true")
    known, _ = parser.parse_known_args(arguments)
    if known.profile:
        profiling.disable_command_buffers()
    num_devices = devices.configure_devices(known.devices, known.device)
    if known.resume:
        run_dir = known.run_dir or run_directory.find_default(known.env, known.board_size, known.seed)
        return Command(configs.load(run_dir), Session(run_dir=str(run_dir))), num_devices
    return Command(presets.preset(known.env, known.board_size), Session()), num_devices


def optional_int(text: str) -> int | None:
    """The values of a flag that `--help` calls {None}|INT."""
    return None if text == "None" else int(text)


def check(config: Config, session: Session, default: Config) -> Path:
    """The run's folder, neither made nor touched; ValueError in one sentence if the flags make no run."""
    validate(config)
    sessions.validate(session)
    if session.resume and config.seed != default.seed:
        raise ValueError(f"the run to resume was made with --seed {default.seed}; leave --seed out")
    if session.wandb:
        metrics.check_wandb()
    run_dir = Path(session.run_dir) if session.run_dir else run_directory.default(config)
    run_directory.check(run_dir, resume=session.resume, overwrite=session.overwrite)
    return run_dir


def share_out(config: Config, session: Session, num_devices: int) -> int:
    """How many devices share the games and the batch: as many as divide them, or what `--devices` says."""
    if session.devices is None:
        return devices.largest_divisor(num_devices, *config.shared_sizes)
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        devices.check_divisible(flag, size, num_devices)
    return num_devices


def main(arguments: list[str], make_parts: Callable[[Config], Any] | None = None) -> int:
    """Runs the command; returns its exit status.

    `make_parts` builds a game, a network or an algorithm of one's own, as `building.make_parts` builds the configured.
    """
    default, num_devices = choose_default(arguments)
    config, session = tyro.cli(Command, default=default, args=arguments, description=__doc__)
    run_dir = check(config, session, default.config)
    if make_parts and session.autotune:
        raise ValueError("--autotune measures the configured game and network; leave it out with parts of your own")
    from muzero_jax.run import autotune, runner

    mesh = devices.make_mesh(share_out(config, session, num_devices))
    if session.compilation_cache:
        devices.enable_compilation_cache(session.compilation_cache)
    if session.autotune:
        config = autotune.tune(config, mesh, minutes=session.autotune_minutes, say=print)
    introduce(config, mesh.size)
    run_directory.prepare(run_dir, resume=session.resume, overwrite=session.overwrite)
    print(f"run directory: {run_dir}")
    parts = make_parts(config) if make_parts else None
    result = runner.train(config, session, run_dir, mesh, print, parts)
    if result.interrupted:
        flags = f"--run-dir {shlex.quote(str(run_dir))} {sessions.flags_to_resume(session)}"
        print(f"stopped and saved; go on with: {command('train')} {flags}")
        return EXIT_INTERRUPTED
    show(result.summary, run_dir)
    return 0


def introduce(config: Config, num_devices: int) -> None:
    """Prints what will be trained, and on what."""
    print(configs.describe(config))
    print(f"device: {devices.describe_device(num_devices)}")
    compute_dtype, reason = precision.resolve(config.network.compute_dtype)
    print(f"precision: {compute_dtype} ({reason})")


def command(script: str) -> str:
    """A command that works as it is printed, whether or not the virtual environment is active."""
    return f"{shlex.quote(sys.executable)} experiments/{script}.py"


def show(summary: dict[str, Any], run_dir: Path) -> None:
    """Prints how strong the agent has become and what the run cost, and draws its curves."""
    if summary["strength"]:
        print(f"\n{tables.strength(summary['strength'])}")
    seconds, rates = summary["seconds"], summary["rates"]
    cost = [
        {"": name, "total": f"{total:,.0f}", "per second": f"{rates[name]:,.1f}"}
        for name, total in summary["totals"].items()
    ]
    display.summary_table(cost, "\nWork (rates are those of self-play and learning together)")
    spent = [
        {"": purpose, "seconds": f"{time:.0f}", "share": f"{time / sum(seconds.values()):.0%}"}
        for purpose, time in seconds.items()
    ]
    display.summary_table(spent, "\nTime")
    memory = (f"{devices.format_bytes(size)} {name}" for name, size in summary["memory"].items() if size is not None)
    print("\nmemory per device: " + ", ".join(memory))
    print(f"curves: {metrics.plot_curves(run_dir)}")
    print(f"next:   {command('play')} --run {shlex.quote(str(run_dir))}")


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
