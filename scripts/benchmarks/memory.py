"""The memory plan against what XLA says the compiled program holds: arguments, results that share no argument, scratch.

Nothing runs, so there is no spread. The plan's row for evaluation is left out: matches are another program.
"""

from collections.abc import Iterator
from typing import Any

from experiments import presets
from muzero_jax import devices, memory, training
from muzero_jax.config import Config
from scripts.benchmarks import workloads

PLANNED, COMPILED = "planned", "compiled program"
MIB = 2**20


def records(quick: bool) -> Iterator[dict[str, Any]]:
    """One record a run: MiB per device on one device, planned and compiled."""
    configs = {"tic-tac-toe preset": presets.preset("tic_tac_toe", None)}
    if not quick:
        configs |= {
            "Hex 5x5 preset": presets.preset("hex", 5),
            "Connect Four preset": presets.preset("connect_four", None),
            "Hex 9x9, tower 64x4": workloads.hex_tower(),
        }
    for name, config in configs.items():
        yield record(name, config)


def record(name: str, config: Config) -> dict[str, Any]:
    """The plan's total and the compiled chunk's, and their quotient."""
    mesh = devices.make_mesh(1)
    parts = training.make_parts(config)
    rows = devices.plan_memory(memory.memory_parts(config, parts, mesh))
    planned = sum(size for part, size in rows if part != "evaluation") / MIB
    state = training.abstract_state(config, parts, mesh)
    compiled = compiled_bytes(training.make_chunk(config, parts, mesh).lower(state).compile()) / MIB
    return {
        "suite": "memory",
        "case": name,
        "unit": "MiB per device",
        "higher_is_better": False,
        "rates": {PLANNED: _exact(planned), COMPILED: _exact(compiled)},
        "ratios": [{"numerator": PLANNED, "denominator": COMPILED, "aim": None} | _exact(planned / compiled)],
    }


def compiled_bytes(program: Any) -> int:
    """What a compiled program holds on a device while it runs, by XLA's own account."""
    analysis = program.memory_analysis()
    outputs = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    return analysis.argument_size_in_bytes + outputs + analysis.temp_size_in_bytes


def _exact(value: float) -> dict[str, float]:
    return {"median": value, "spread": 0.0}
