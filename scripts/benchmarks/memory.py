"""The memory plan against what runs really hold.

Each run has a process of its own, so that none finds memory that another left. It is planned and compiled as
`runner.train` does it; then its state is made and chunks run, some of them beside the saving of a checkpoint, until all
that takes memory has happened more than once. Measured is what the process grew by at its peak (CPU) or what the device
counted; beside it stands XLA's own account of the program: arguments, results that share no argument, temporaries.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

from experiments import presets
from experiments.command_line import report_errors
from muzero_jax import assembly, devices, runner
from muzero_jax.checkpoint import Checkpointer
from muzero_jax.config import Config
from muzero_jax.memory import Plan
from muzero_jax.memory_meter import MemoryMeter
from scripts.benchmarks import workloads

ESTIMATE, PLANNED, COMPILED, MEASURED = "estimated before compiling", "planned", "compiled program", "measured"
MIB = 2**20
ROOT = Path(__file__).resolve().parent.parent.parent
CHUNKS_A_SAVE = 4

CASES: dict[str, Callable[[], Config]] = {
    "tic-tac-toe preset": presets.tic_tac_toe,
    "Hex 5x5 preset": lambda: presets.hex_any(5),
    "Connect Four preset": presets.connect_four,
    "Hex 9x9, tower 64x4": workloads.hex_tower,
}


def records(quick: bool) -> Iterator[dict[str, Any]]:
    """One record a run: MiB per device, of one device and of all."""
    counts = sorted({1, jax.device_count()})
    for case in list(CASES)[: 1 if quick else None]:
        for count in counts[-1:] if quick else counts:
            yield record(run_name(case, count), run_apart(case, count))


def run_name(case: str, num_devices: int) -> str:
    """A run in words."""
    return f"{case}, {num_devices} device{'s' * (num_devices > 1)}"


def record(name: str, found: dict[str, int]) -> dict[str, Any]:
    """The figures of one run, and how near the plan came."""
    return {
        "suite": "memory",
        "case": name,
        "unit": "MiB per device",
        "higher_is_better": False,
        "rates": {key: _exact(size / MIB) | {"judged": True} for key, size in found.items()},
        "ratios": [
            # A quotient of plan and program is no better for being higher, or lower.
            {"numerator": part, "denominator": whole, "aim": None, "judged": False} | _exact(found[part] / found[whole])
            for part, whole in ((PLANNED, MEASURED), (ESTIMATE, MEASURED), (COMPILED, MEASURED))
            if whole in found
        ],
    }


def run_apart(case: str, num_devices: int) -> dict[str, int]:
    """`measure` in a process of its own; it leaves the accelerator's memory to whoever asks for it.

    Raises ValueError with the last line that the process left on stderr, if it failed.
    """
    command = [sys.executable, "-m", "scripts.benchmarks.memory", case, str(num_devices)]
    environment = os.environ | {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_NUM_CPU_DEVICES": str(num_devices),
        "JAX_TRACEBACK_FILTERING": "off",  # else a traceback ends with a note on filtering, not with the error
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].removeprefix("error: ") or f"exit status {done.returncode}"
        raise ValueError(f"the run that measures memory failed ({run_name(case, num_devices)}): {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(config: Config, num_devices: int) -> dict[str, int]:
    """Bytes per device of one run; what nobody counts is left out."""
    mesh = devices.make_mesh(num_devices)
    run = assembly.assemble(config, mesh, lambda text: None)
    meter = MemoryMeter(mesh)
    state = run.init()
    with tempfile.TemporaryDirectory() as folder, Checkpointer(folder) as checkpoints:
        chunks_to_learn = -(-config.iterations_to_learn // config.iterations_per_chunk)
        for chunk in range(chunks_to_learn + 3 * CHUNKS_A_SAVE):
            with meter.chunk():
                state, metrics = run.program(state)
                jax.device_get(metrics)
            if chunk % CHUNKS_A_SAVE == 0:
                runner.save(checkpoints, chunk, state)
    estimate, plan = (without_matches(plan).total for plan in (run.estimate, run.plan))
    found = {ESTIMATE: estimate, PLANNED: plan, COMPILED: compiled_bytes(run.program)}
    return found | ({MEASURED: meter.peak} if meter.peak is not None else {})


def without_matches(plan: Plan) -> Plan:
    """The plan of the chunks alone: no matches are played here."""
    return plan._replace(turns={name: size for name, size in plan.turns.items() if name != "matches"})


def compiled_bytes(program: Any) -> int:
    """What a compiled program holds on a device while it runs, by XLA's own account."""
    analysis = program.memory_analysis()
    outputs = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    return analysis.argument_size_in_bytes + outputs + analysis.temp_size_in_bytes


def _exact(value: float) -> dict[str, float]:
    return {"median": value, "spread": 0.0}


def main(arguments: list[str]) -> int:
    """`measure` of a case, by its name, on a number of devices; what it found as the last line on stdout."""
    case, num_devices = arguments
    print(json.dumps(measure(CASES[case](), int(num_devices))))
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "the case needs more than this machine has"))
