"""Trains a MuZero agent from nothing: python experiments/train.py --env hex --board-size 5 --minutes 5

The command line is read twice. First `--env`, `--board-size` and `--resume` choose a preset, or the saved config of the
run to go on with; then every flag overrides one field of it, and `--help` shows that very preset's defaults.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments import presets
from experiments.command_line import EXIT_INTERRUPTED, report_errors
from muzero_jax.arithmetic import devices, precision
from muzero_jax.run import display, metrics, profiling
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config


def choose_default(arguments: list[str]) -> tuple[Config, int]:
    """The config that the flags override (a preset, or that of the run to resume), and the devices at hand.

    A run's own config is read before JAX starts, because it may say how many devices to start it with; so is
    `--profile`, because XLA reads its flags once.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--env", default="hex")
    parser.add_argument("--board-size", "--board_size", type=optional_int)
    parser.add_argument("--run-dir", "--run_dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--devices", type=optional_int)
    parser.add_argument("--profile", action="store_true")
    known, _ = parser.parse_known_args(arguments)
    if known.profile:
        profiling.disable_command_buffers()
    if known.resume:
        run_dir = known.run_dir or run_directory.find_default(known.env, known.board_size, known.seed)
        saved = replace(configs.load(run_dir), run_dir=str(run_dir))
        return saved, devices.configure_devices(known.devices or saved.devices, known.device or saved.device)
    num_devices = devices.configure_devices(known.devices, known.device or "auto")
    return presets.preset(known.env, known.board_size), num_devices


def optional_int(text: str) -> int | None:
    """The values of a flag that `--help` calls {None}|INT."""
    return None if text == "None" else int(text)


def share_out(config: Config, num_devices: int) -> int:
    """How many devices share the games and the batch: as many as divide them, or what `--devices` says."""
    if config.devices is None:
        return devices.largest_divisor(num_devices, *config.shared_sizes)
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        devices.check_divisible(flag, size, num_devices)
    return num_devices


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    default, num_devices = choose_default(arguments)
    config = configs.validate(tyro.cli(Config, default=default, args=arguments, description=__doc__))
    if config.resume and config.seed != default.seed:
        raise ValueError(f"the run to resume was made with --seed {default.seed}; leave --seed out")
    if config.wandb:
        metrics.check_wandb()
    from muzero_jax.run import autotune, runner

    run_directory.check(config)
    num_devices = share_out(config, num_devices)
    if config.compilation_cache:
        devices.enable_compilation_cache(config.compilation_cache)
    mesh = devices.make_mesh(num_devices)
    if config.autotune:
        cache = autotune.default_cache()
        config = replace(config, autotune=False)
        config = autotune.tune(config, mesh, minutes=config.autotune_minutes, cache=cache, say=print)
    print(configs.describe(config))
    print(f"device: {devices.describe_device(num_devices)}")
    compute_dtype, reason = precision.resolve(config.network.compute_dtype)
    print(f"precision: {compute_dtype} ({reason})")
    run_dir = run_directory.prepare(config)
    print(f"run directory: {run_dir}")
    result = runner.train(config, run_dir, mesh, print)
    if result.interrupted:
        print(f"stopped and saved; go on with: {command('train')} --run-dir {shlex.quote(str(run_dir))} --resume")
        return EXIT_INTERRUPTED
    show(result.summary, run_dir)
    return 0


def command(script: str) -> str:
    """A command that works as it is printed, whether or not the virtual environment is active."""
    return f"{shlex.quote(sys.executable)} experiments/{script}.py"


def show(summary: dict[str, Any], run_dir: Path) -> None:
    """Prints how strong the agent has become and what the run cost, and draws its curves."""
    strength = [
        {
            "opponent": opponent,
            "score": f"{match['score']:.1%}",
            "95% interval": f"{match['ci95'][0]:.1%} to {match['ci95'][1]:.1%}",
            "won / drawn / lost": f"{match['wins']} / {match['draws']} / {match['losses']}",
        }
        for opponent, match in summary["strength"].items()
    ]
    display.summary_table(strength, "\nStrength (colours balanced, every opening played from both sides)")
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
    told = (f"{devices.format_bytes(size)} {name}" for name, size in summary["memory"].items() if size is not None)
    print("\nmemory per device: " + ", ".join(told))
    print(f"curves: {metrics.plot_curves(run_dir)}")
    print(f"next:   {command('play')} --run {shlex.quote(str(run_dir))}")


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
