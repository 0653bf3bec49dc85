"""What each step away from a plain MuZero pipeline gave: python scripts/ablation.py

The same game, network and search budget throughout (Hex 5x5, MLP of width 64, PUCT), each rung measured in turn with
all others: a Python tree and one game; our search; many games; one program; every device; bfloat16 where the
hardware has units for it (with AMX, for products alone). A second table says what a frame costs in the replay.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing
from muzero_jax.arithmetic import devices, precision
from muzero_jax.commands.command_line import report_errors
from scripts.measuring import machine, markdown, timing

PLAIN = "Python tree, one game"
ONE_GAME = "+ our search, one game"
MANY_GAMES = "+ many games at once"
FUSED = "+ one program for the whole rollout"
ALL_DEVICES = "+ every device"
BFLOAT16 = "+ bfloat16"
AIM = 100.0


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=512, help="games at once, where there are many (default: 512)")
    parser.add_argument("--num-simulations", type=int, default=32, help="of every search (default: 32)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    options = parser.parse_args(arguments)
    for flag, value in {"--games": options.games, "--num-simulations": options.num_simulations}.items():
        if value < 1:
            raise ValueError(f"{flag} is {value}, but must be positive")
    return options


def has_bfloat16() -> bool:
    """Whether the hardware has units for bfloat16, of any kind."""
    return "bfloat16" in precision.resolve("auto").compute_dtype


def rungs(config: Any) -> tuple[dict[str, Any], Any]:
    """Every rung as something to measure, from the bottom up, and the plain game, whose replay is looked at later."""
    import jax

    from scripts.benchmarks import ours, plain_pipeline

    game = plain_pipeline.PlainGame(config)
    alone = replace(config, self_play=replace(config.self_play, num_envs=1))
    ladder = {
        PLAIN: timing.Variant(lambda: [game.move() for _ in range(4)], 4),
        ONE_GAME: ours.host_driven_self_play(alone),
        MANY_GAMES: ours.host_driven_self_play(config),
        FUSED: ours.self_play(config, num_devices=1),
    }
    available = jax.device_count()
    count = devices.largest_divisor(available, config.self_play.num_envs)
    if count > 1:
        every = ALL_DEVICES if count == available else f"+ {count} of {available} devices"
        ladder[every] = ours.self_play(config, num_devices=count)
    if has_bfloat16():
        automatic = replace(config, network=replace(config.network, compute_dtype="auto"))
        ladder[BFLOAT16] = ours.self_play(automatic, num_devices=count)
    return ladder, game


def ladder(config: Any) -> dict[str, Any]:
    """Moves a second of every rung, its ratio to the one below and to the plain pipeline, and bytes a frame."""
    from scripts.benchmarks.cases import figure
    from scripts.benchmarks.plain_pipeline import saved_bytes

    variants, game = rungs(config)
    rates = timing.rates(variants, timing.FULL)
    names = list(rates)
    steps = [
        {
            "step": name,
            "moves_per_second": figure(timing.summarise(rates[name])),
            "to_step_before": figure(timing.ratio(rates[name], rates[below])),
            "to_plain": figure(timing.ratio(rates[name], rates[names[0]])),
        }
        for below, name in zip([names[0], *names], names, strict=False)
    ]
    return {"steps": steps, "replay_bytes_per_frame": saved_bytes(game.replay, config)}


def tables(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    from scripts.benchmarks.plain_pipeline import bytes_table

    header = ("step", "moves/s", "to the step before", "to the plain pipeline")
    rows = []
    for step in report["steps"]:
        rate, before, plain = (step[key]["median"] for key in ("moves_per_second", "to_step_before", "to_plain"))
        rows.append((step["step"], f"{rate:,.0f}", f"{before:.2f}x", f"**{plain:,.1f}x**"))
    parts = [markdown.table(markdown.Table(header, rows))]
    if report["devices"] > 1 and not any("device" in step["step"] for step in report["steps"]):
        parts.append(f"No rung for several of the {report['devices']} devices: --games splits over none of them.")
    if not report["has_bfloat16"]:
        parts.append("No rung for bfloat16: this hardware has no units for it.")
    return "\n\n".join([*parts, markdown.table(bytes_table(report["replay_bytes_per_frame"]))])


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    options = read_arguments(arguments)
    count = devices.configure_devices()
    from scripts.benchmarks import workloads

    sizes = {"num_envs": options.games, "num_simulations": options.num_simulations, "board_size": 5}
    config = workloads.workload("hex", workloads.MLP, rollout_length=4, **sizes)
    config = workloads.with_engine(config, "own", "puct")
    about = machine.describe(sys.argv)
    report = {"machine": about, "aim": AIM, "has_bfloat16": has_bfloat16(), "devices": count} | ladder(config)
    print(json.dumps(report, indent=2) if options.json else tables(report))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --games or --num-simulations"))
