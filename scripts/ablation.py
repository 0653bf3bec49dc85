"""What each step away from a plain MuZero pipeline gave: python scripts/ablation.py

The same game, network and search budget throughout (Hex 5x5, MLP of width 64, PUCT), each rung measured in turn with
all others: a Python tree and one game; our search; many games; one program; every device; bfloat16 where the
hardware has units for it (with AMX, for products alone). Beside it, what a frame costs in the replay.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.command_line import report_errors
from muzero_jax.arithmetic import devices, precision

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
    """Whether the hardware has units for bfloat16, of whatever kind."""
    return "bfloat16" in precision.resolve("auto").compute_dtype


def rungs(config: Any) -> tuple[dict[str, Any], Any]:
    """Every rung as something to measure, from the bottom up, and the plain game, whose replay is looked at later."""
    import jax

    from scripts.benchmarks import ours, plain_pipeline, workloads

    parts = workloads.parts_of(config)
    plain, game = plain_pipeline.self_play(config, parts, workloads.noisy_params(parts.model), moves=4)
    alone = replace(config, self_play=replace(config.self_play, num_envs=1))
    ladder = {
        PLAIN: plain,
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


def ring_bytes(config: Any) -> float:
    """Bytes of a frame in our replay ring."""
    import jax

    from muzero_jax import building
    from muzero_jax.run.program import make_init

    ring = make_init(building.make_parts(config), config.seed, devices.make_mesh(1)).eval_shape().replay.transitions
    frames = config.replay.replay_length * config.self_play.num_envs
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring)) / frames


def ladder(config: Any, effort: Any) -> dict[str, Any]:
    """Moves a second of every rung, its ratio to the one below and to the plain pipeline, and bytes a frame."""
    from scripts.benchmarks import measuring, plain_pipeline

    variants, game = rungs(config)
    rates = measuring.in_turn(variants, effort)
    names = list(rates)
    steps = []
    for below, name in zip([names[0], *names], names, strict=False):
        to_below, to_plain = (
            measuring.summary([a / b for a, b in zip(rates[name], rates[other], strict=True)])
            for other in (below, names[0])
        )
        steps.append(
            {"step": name, "moves_per_second": measuring.summary(rates[name])}
            | {"to_step_before": to_below, "to_plain": to_plain}
        )
    payload, objects = plain_pipeline.replay_bytes(game.replay)
    own = ring_bytes(config)
    memory = {"plain": payload, "plain_as_python_objects": objects, "ours": own, "saved": 1 - own / payload}
    return {"steps": steps, "replay_bytes_per_frame": memory | {"saved_of_objects": 1 - own / objects}}


def tables(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = ["| step | moves/s | to the step before | to the plain pipeline |", "|---|---|---|---|"]
    for step in report["steps"]:
        before, plain = step["to_step_before"], step["to_plain"]
        rate = step["moves_per_second"]["median"]
        lines.append(f"| {step['step']} | {rate:,.0f} | {before['median']:.2f}x | **{plain['median']:,.1f}x** |")
    if report["devices"] > 1 and not any("device" in step["step"] for step in report["steps"]):
        lines += ["", f"No rung for several of the {report['devices']} devices: --games splits over none of them."]
    if not report["has_bfloat16"]:
        lines += ["", "No rung for bfloat16: this hardware has no units for it."]
    memory = report["replay_bytes_per_frame"]
    lines += ["", "| a frame in the replay | bytes | ours saves |", "|---|---|---|"]
    rows = {
        "float32 arrays, numbers of 4 bytes": (memory["plain"], f"**{memory['saved']:.1%}**"),
        "the same as Python objects": (memory["plain_as_python_objects"], f"**{memory['saved_of_objects']:.1%}**"),
        "our ring": (memory["ours"], ""),
    }
    lines += [f"| {name} | {size:,.0f} | {saved} |" for name, (size, saved) in rows.items()]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    options = read_arguments(arguments)
    count = devices.configure_devices()
    from scripts.benchmarks import measuring, workloads
    from scripts.benchmarks.report import machine

    config = workloads.workload(
        "hex",
        workloads.MLP,
        num_envs=options.games,
        num_simulations=options.num_simulations,
        board_size=5,
        rollout_length=4,
    )
    config = replace(config, search=replace(config.search, policy="puct"))
    report = {"machine": machine(), "aim": AIM, "has_bfloat16": has_bfloat16(), "devices": count}
    report |= ladder(config, measuring.Effort.full())
    print(json.dumps(report, indent=2) if options.json else tables(report))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --games or --num-simulations"))
