"""What it costs to move arrays between the host and the device, by size, beside a plain copy in the host's memory."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.arithmetic.devices import format_bytes
from scripts.report.arithmetic_section import Say
from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import by_size, seconds, spread, three_digits
from scripts.report.machine import Machine
from scripts.report.plan import Plan
from scripts.report.records import LinePlot, Section, Table
from scripts.report.timing import Candidate, Fresh, Times, measure_in_turn, rates, sweep

TO_DEVICE, TO_HOST, COPY = "device_put", "device_get", "NumPy copy"
_ADD_ONE = jax.jit(lambda x: x + 1)


def transfers_section(machine: Machine, plan: Plan, say: Say) -> Section:
    """Measures and tells."""
    times = sweep(plan.transfer_bytes, partial(_candidates, machine), work=float, limits=plan.limits, say=say)
    dispatch = _dispatch(machine)
    speed = rates(times, lambda size: size / 1e9)
    where = "" if machine.accelerator else (
        " Here host and device share one memory: JAX may hand an array over without copying it, and then the time does "
        "not grow with the size."
    )  # fmt: skip
    text = (
        "Float32 arrays between NumPy and the device, each call with an array that was not moved before, and for "
        f"comparison a copy within the host's memory.{where} An empty call (adding 1 to 8 numbers on the device) takes "
        f"{seconds(dispatch['call'])}: the price of starting any program."
    )
    tables: list[Table] = [
        by_size("size (time)", times, seconds, format_bytes),
        by_size("size (GB/s)", speed, spread, format_bytes),
    ]
    plot = LinePlot("transfers", "Moving arrays between host and device", "bytes", "GB/s", speed)
    return Section("Transfers between host and device", text, tables, [plot], (), _findings(times))


def _candidates(machine: Machine, size: int) -> Mapping[str, Candidate]:
    values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
    on_device = jax.device_put(values, machine.device)
    return {
        TO_DEVICE: Fresh(lambda fresh: jax.device_put(fresh, machine.device), values.copy),
        # JAX keeps the host's copy of an array that was once asked for, hence a new one each time.
        TO_HOST: Fresh(jax.device_get, lambda: _ADD_ONE(on_device)),
        COPY: Fresh(np.copy, values.copy),
    }


def _dispatch(machine: Machine):
    x = jax.device_put(jnp.zeros(8), machine.device)
    return measure_in_turn({"call": lambda: _ADD_ONE(x)})


def _findings(times: Times) -> list[str]:
    largest = max(times[COPY])
    cost = [f"{name} {three_digits(times[name][largest].median * 1e3)} ms" for name in times if largest in times[name]]
    summary = f"Moving {format_bytes(largest)}: {', '.join(cost)}."
    return [summary] + [
        f"Transfers, {describe_comparison(name, COPY, 'at bytes', compare(times[name], times[COPY]))}"
        for name in (TO_DEVICE, TO_HOST)
    ]
