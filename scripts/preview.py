"""What an accelerator that is not here would do with a run: python scripts/preview.py --target t4 --env hex

XLA compiles the whole training program for a T4, L4, A100, H100 or TPU v5e on a CPU. From the compiled program follow
its memory, kernels, host waits and bytes, and from the traced one its FLOPs; from these and the accelerator's figures
the least time that an iteration takes. Further flags are those of train.py: --search.engine loop_free. Needs the extra
`preview`, in a virtual environment of its own. --page makes the figures of docs/accelerators.md.
"""

import argparse
import json
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.previewing import targets

if __name__ == "__main__":
    targets.prepare()

import muzero_jax.apps.commands.requirements  # noqa: F401  # says what to do where packages are missing

# isort: split
import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax import algorithm as algorithms
from muzero_jax import presets
from muzero_jax.apps.commands import flag_reader
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import devices, precision
from muzero_jax.run import flops, memory
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import validate
from scripts.measuring import machine
from scripts.previewing import bounds, page, program
from scripts.previewing.bounds import Work
from scripts.previewing.program import Loop
from scripts.previewing.targets import TARGETS, Target

Record = dict[str, Any]
HOW = {"counted": ["loops", "memory", "iteration.flops"], "estimated": ["levels", "per", "iteration", "sizes"]}
"""What of a record was counted in the program, and what also needs the depth of trees or the accelerator's figures."""
SOFTMAX = "triton-softmax-rewriter"
TIMES = (1, 4, 16, 64)
"""How many times the preset's games and windows."""


def read_arguments(arguments: list[str]) -> tuple[argparse.Namespace, Config]:
    """The command's own flags, and the run's settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=TARGETS, default="t4", help="the accelerator")
    parser.add_argument("--devices", type=int, default=1, help="how many of it share the games, on one mesh")
    parser.add_argument("--env", default="hex", help="the game, whose preset is taken")
    parser.add_argument("--board-size", type=int, help="of Hex")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--page", action="store_true", help="preview what the figures of docs/accelerators.md lack")
    known, flags = parser.parse_known_args(arguments)
    if not 1 <= known.devices <= 4:
        raise ValueError(f"--devices is {known.devices}, but a preview has 1 to 4")
    with redirect_stdout(sys.stderr), devices.made_for(TARGETS[known.target]):
        config = presets.preset(known.env, known.board_size)
        config = validate(flag_reader.read(Config, flags, default=config))
    if config.offline:
        raise ValueError("a preview is of a run that plays; leave out --offline")
    for flag, size in zip(("--self-play.num-envs", "--optimiser.batch-size"), config.shared_sizes, strict=True):
        devices.check_divisible(flag, size, known.devices)
    return known, config


def preview(config: Config, target: Target, num_devices: int) -> Record:
    """Compiles the program of one iteration and says what follows from it, for each of the devices."""
    start = time.monotonic()
    with devices.made_for(target):
        found = targets.devices(target, num_devices)
        mesh, algorithm = Mesh(np.array(found), (devices.AXIS,)), algorithms.make(config)
        abstract = make_init(algorithm, config.seed, mesh).eval_shape()
        traced = make_chunk(algorithm, mesh).trace(abstract, abstract_progress(1))
        dtype = precision.resolve(config.network.compute_dtype).compute_dtype
        compiled, left_out = compile_for(traced.lower())
    plan = memory.make_plan(abstract, compiled, copied_by_saves=False)
    counted = sum(flops.count(traced.jaxpr, config.self_play.full_search_share)) / num_devices
    loop = program.read(compiled.as_text())
    levels = bounds.levels(config.search.num_simulations)
    done = bounds.work(loop, levels)._replace(flops=counted)
    frames = config.self_play.num_envs * config.self_play.rollout_length
    return {
        "target": target.title,
        "devices": num_devices,
        "env": config.env,
        "board_size": config.board_size,
        "engine": config.search.engine,
        "games": config.self_play.num_envs,
        "batch": config.optimiser.batch_size,
        "dtype": dtype,
        "left_out": left_out,
        "levels": levels,
        "loops": [{**one._asdict(), "inner": [inner.name for inner in one.inner]} for one in loop.walk()],
        "per": per(loop, levels),
        "iteration": done._asdict() | {"frames": frames, "seconds": bounds.seconds(done, target, dtype)},
        "memory": plan.parts,
        "sizes": [at(times, done, plan.parts, frames, target, dtype) for times in TIMES],
        "how": HOW,
        "compiled": f"{time.monotonic() - start:.0f} s",
    }


def compile_for(lowered: Any) -> tuple[Any, str]:
    """The compiled program, and the pass of XLA that had to be left out, if any.

    Where a softmax follows a concatenation, the kernel that XLA of jaxlib 0.10.2 has Triton write, from compute
    capability 8 on, can fail to compile. Without it the softmax takes a few kernels more.
    """
    try:
        return lowered.compile(), ""
    except jax.errors.JaxRuntimeError as error:
        if "scf.if" not in str(error):
            raise
    return lowered.compile({"xla_disable_hlo_passes": SOFTMAX}), SOFTMAX


def per(loop: Loop, levels: float) -> Record:
    """Kernels and waits of a turn of each named loop, all turns of the loops in it included."""
    return {found.name: bounds.work(found, levels)._asdict() for found in reversed(list(loop.walk()))}


def at(times: int, done: Work, parts: dict[str, int], frames: int, target: Target, dtype: str) -> Record:
    """What so many times the games and windows give; weights and their optimiser's state stay as large."""
    grown = sum(size * (1 if name in ("parameters", "optimiser") else times) for name, size in parts.items())
    found = bounds.bound(done.times(times), times * frames, target, dtype)
    return {"times": times, "memory": grown, "fits": grown <= target.available} | found._asdict()


def describe(record: Record, target: Target) -> str:
    """The record as text; each figure says whether it was counted or estimated."""
    whole, has_host = record["iteration"], target.wait > 0
    rows: list[tuple[str, str, str]] = []

    def say(name: str, value: str, how: str) -> None:
        rows.append((name, value, how))

    for name in ("level down", "level up", "simulation", "move", "update", "iteration"):
        if (found := record["per"].get(name)) is not None:
            has_levels = name in ("simulation", "move", "iteration") and "level down" in record["per"]
            how = "estimated" if has_levels else "counted"
            waits = f", {found['waits']:,.0f} waits of the host" if has_host else ""
            say(name, f"{found['kernels']:,.0f} {'kernels' if has_host else 'operations'}{waits}", how)
    say("FLOPs of an iteration", f"{whole['flops']:.3g}", "counted")
    say("bytes of an iteration", f"{whole['size']:.3g}", "estimated")
    for name, seconds in whole["seconds"].items():
        without = " without CUDA graphs" if name == "launches" else ""
        say(f"an iteration by {name}{without}", f"at least {1e3 * seconds:,.2f} ms", "estimated")
    say(
        "memory",
        " + ".join(f"{name} {devices.format_bytes(size)}" for name, size in record["memory"].items()),
        "counted",
    )
    for size in record["sizes"]:
        how = "counted" if size["times"] == 1 else "estimated"
        fits = "fits" if size["fits"] else "does not fit"
        needs = f"{devices.format_bytes(size['memory'])} of {devices.format_bytes(target.available)}: {fits}"
        say(f"{size['times'] * record['games']:,} games", needs, how)
        busy = f"{size['limit']}, the device is {size['busy']:.0%} busy"
        best = f"at best {size['frames_per_second']:,.0f} frames/s; {busy}"
        say("", best, "estimated")
    width, middle = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = [f"{name:<{width}}  {value:<{middle}}  {how}" for name, value, how in rows]
    title = f"{record['devices']} x {target.title}, {record['env']} {record['board_size'] or ''}, {record['dtype']}"
    without = f" without XLA's pass {record['left_out']}" if record.get("left_out") else ""
    return "\n".join([f"{title} (compiled{without} in {record['compiled']})", *lines])


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    known, config = read_arguments(arguments)
    if known.page:
        return page.make(__file__)
    target = TARGETS[known.target]
    targets.check_installed(target)
    record = preview(config, target, known.devices)
    about = machine.describe([__file__, *arguments])
    record |= {key: about[key] for key in ("date", "commit", "versions", "command")}
    print(json.dumps(record, indent=1) if known.json else describe(record, target))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --self-play.num-envs"))
