"""Which StableHLO operations of a training program the plugin for Apple's GPUs lacks: python scripts/metal.py

Nobody has run muzero_jax on a Mac yet. The plugin jax-mps translates StableHLO, operation by operation, and
previewing/metal_ops.txt lists those that its source registers (github.com/tillahoffmann/jax-mps, commit 9cc6ce6 of July
2026). This traces the whole chunk of every preset as for an Apple GPU, lowers it, and prints what is not in the list.
"""

import re
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax import presets
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.games import catalogue
from muzero_jax.ops.devices import METAL, made_for
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run.program import abstract_progress, make_chunk, make_init

APPLE_GPU = SimpleNamespace(platform=METAL, memory_stats=lambda: {"bytes_limit": 16 * 2**30})
OPERATIONS = Path(__file__).parent / "previewing" / "metal_ops.txt"
DECOMPOSED = {"chlo.square"}
"""Operations that StableHLO itself turns into others."""
PRESETS = ("hex-5", "hex-9", *(name for name in catalogue.GAMES if name != "hex"), "octax:pong")


@dataclass(frozen=True)
class Arguments:
    """What to check."""

    presets: tuple[str, ...] = PRESETS
    """games, of Hex with the size behind a dash"""


def main(arguments: list[str]) -> int:
    """Runs the command; 1 if an operation is missing."""
    known = set(OPERATIONS.read_text(encoding="utf-8").split())
    is_complete = True
    for name in parser.read(Arguments, arguments, __doc__).presets:
        env, _, size = name.partition("-") if name.startswith("hex-") else (name, "", "")
        used = operations(env, int(size) if size else None)
        missing = sorted(used - known)
        is_complete = is_complete and not missing
        print(f"{name}: {len(used)} operations, not in the plugin: {', '.join(missing) or 'none'}", flush=True)
    return 0 if is_complete else 1


def operations(env: str, board_size: int | None) -> set[str]:
    """The operations of the preset's training program, with few games, which have no effect on their kinds."""
    mesh = make_mesh(1)
    with made_for(APPLE_GPU):
        config = presets.preset(env, board_size)
        play = replace(config.self_play, num_envs=8)
        optimiser = replace(config.optimiser, batch_size=8)
        algorithm = make_algorithm(replace(config, self_play=play, optimiser=optimiser))
        abstract = make_init(algorithm, config.seed, mesh).eval_shape()
        traced = make_chunk(algorithm, mesh).trace(abstract, abstract_progress(2))
    warnings.filterwarnings("ignore", "Some donated buffers")  # JAX does not donate on a platform it does not know
    text = traced.lower(lowering_platforms=(METAL,)).as_text()
    calls = {f"custom_call @{target}" for target in re.findall(r"stablehlo\.custom_call @(\w+)", text)}
    return calls | set(re.findall(r'(?:= |^ *)"?((?:stablehlo|chlo|mhlo)\.\w+)', text, re.MULTILINE)) - DECOMPOSED


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "check fewer --presets"))
