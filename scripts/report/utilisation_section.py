"""Share of the machine's best arithmetic that the network, the search and the learner reach, and their peak memory.

The best is the best matrix product of the dtype that the program computes in: on a GPU with units for bfloat16, twice
float32's or more, so that a share of another dtype's would say nothing.
"""

from collections.abc import Mapping, Sequence

import jax

from muzero_jax import building
from muzero_jax.arithmetic import bfloat16_products, precision
from muzero_jax.arithmetic.devices import format_bytes
from muzero_jax.storage.config import Config
from scripts.report.arithmetic_section import labels, product_flops
from scripts.report.formatting import three_digits
from scripts.report.machine import Machine
from scripts.report.network_section import build, inference_flops
from scripts.report.plan import Network
from scripts.report.precision_section import InDtypes
from scripts.report.records import Section, Table
from scripts.report.run_section import Run, device_memory_rows, peak_process_bytes
from scripts.report.throughput import ALL, ONE, Measured, describe
from scripts.report.timing import Times

BACKWARD = 2
"""A gradient costs about twice its forward pass: one product for the inputs' gradient, one for the weights'."""


class Work:
    """Operations of a config's parts by direct count of the networks' products."""

    def __init__(self, config: Config):
        model = building.make_parts(config).model
        params = jax.eval_shape(model.init, jax.random.key(0))
        self.initial, self.recurrent = inference_flops(params, config.board_size or 0)
        self._config = config

    def search(self, games: float) -> float:
        """One move of each game."""
        return games * (self.initial + self._config.search.num_simulations * self.recurrent)

    def updates(self, count: float) -> float:
        """Gradient steps of the config's batch, forward and backward."""
        forward = self.initial + self._config.targets.unroll_steps * self.recurrent
        return count * self._config.optimiser.batch_size * (1 + BACKWARD) * forward


Program = tuple[str, str, float]
"""Its name, the dtype of its arithmetic, and operations per second."""


def peak_flops(machine: Machine, matrices: Times, product: InDtypes) -> dict[str, tuple[float, str]]:
    """By dtype, operations per second of the best matrix product on the device that runs use, and whose it was.

    Args:
      matrices: float32 products by library and size. product: one by JAX in every dtype.
    """
    label, elsewhere = _label(machine), {"JAX CPU", "NumPy"} if machine.accelerator else set()
    best = {dtype: (product.flops / sample.median, label) for dtype, sample in product.times.items()}
    for name, row in matrices.items():
        for size, sample in row.items():
            if name not in elsewhere:
                best["float32"] = max(best["float32"], (product_flops(size) / sample.median, name))
    return best


def _label(machine: Machine) -> str:
    """What the tables call JAX on the device that runs use."""
    return next(iter(labels(machine)))


def utilisation_section(
    machine: Machine,
    matrices: Times,
    product: InDtypes,
    networks: Mapping[Network, Times],
    searches: Sequence[Measured],
    learners: Sequence[Measured],
    run: Run,
) -> Section:
    """Chapter from what was measured before; `product` is the matrix product of `precision_works`."""
    peaks = peak_flops(machine, matrices, product)
    rows = [_network_row(network, times, _label(machine)) for network, times in networks.items()]
    for measured in searches:
        name = f"search, {describe(measured.config)}, {measured.size} games"
        rows += _measured_rows(name, measured, Work(measured.config).search(measured.size))
    for measured in learners:
        name = f"gradient steps, {describe(measured.config)}"
        rows += _measured_rows(name, measured, Work(measured.config).updates(measured.units))
    work = Work(run.config)
    rows.append(("short run, self-play and learning", _dtype(run.config), _run_flops(work, run)))
    shares = {name: flops / peaks[dtype][0] for name, dtype, flops in rows}
    cells = [(name, dtype, three_digits(flops / 1e9), f"{shares[name]:.0%}") for name, dtype, flops in rows]
    used = dict.fromkeys(dtype for _, dtype, _ in rows)
    best = ", ".join(f"{dtype} {three_digits(peaks[dtype][0] / 1e9)} ({peaks[dtype][1]})" for dtype in used)
    text = (
        "GFLOP/s over those of the best matrix product measured above in the dtype of what the program multiplies, "
        f"from medians. The best products reach, in GFLOP/s: {best}. Operations are counted directly: two a weight and "
        "use, a gradient as three forward passes; what Winograd's convolutions save is not subtracted, so a share may "
        "exceed 100%. On a CPU a product uses all cores; of all devices the others use as many as divide their sizes: "
        f"{run.num_devices} in the run."
    )
    tables = [Table(("program", "dtype", "GFLOP/s", "share of the dtype's best product"), cells)]
    highest = max(shares, key=shares.__getitem__)
    finding = f"The highest share of the best matrix product of its dtype, {shares[highest]:.0%}, has: {highest}."
    return Section("Utilisation", text, tables, headlines=[finding])


def _dtype(config: Config) -> str:
    """Of what the config's networks multiply on this machine."""
    dtype, product_dtype = bfloat16_products.dtypes(precision.resolve(config.network.compute_dtype).compute_dtype)
    return (product_dtype or dtype).name


def _network_row(network: Network, times: Times, label: str) -> Program:
    """At its best batch size; `network_times` measures float32."""
    params = jax.eval_shape(build(network).init, jax.random.key(0))
    flops = sum(inference_flops(params, network.board_size))
    best = min(times[label], key=lambda batch: times[label][batch].median / batch)
    return f"{network.name} network, batch {best:,}", "float32", flops * best / times[label][best].median


def _measured_rows(name: str, measured: Measured, flops: float) -> list[Program]:
    return [
        (f"{name}, {where}", _dtype(measured.config), flops / measured.times[where].median)
        for where in (ONE, ALL)
        if where in measured.times
    ]


def _run_flops(work: Work, run: Run) -> float:
    return work.search(run.rates["frames"]) + work.updates(run.rates["updates"])


def memory_section(machine: Machine, searches: Sequence[Measured], learners: Sequence[Measured]) -> Section:
    """XLA's own account of the programs above, what the device says, and the process's greatest size."""
    programs = [(f"search, {describe(m.config)}, {m.size} games", m.memory) for m in searches]
    programs += [(f"gradient steps, {describe(m.config)}", m.memory) for m in learners]
    rows = [
        (
            name,
            *(format_bytes(getattr(memory, f"{part}_size_in_bytes")) for part in ("argument", "output", "temp")),
        )
        for name, memory in programs
        if memory is not None
    ]
    process = [("peak of this process (all chapters together)", format_bytes(peak_process_bytes()))]
    text = (
        "Of each compiled program on one device: its arguments (parameters, ring), its results, and what it needs in "
        "between, by XLA's analysis. These are exact sizes of buffers, not measurements, and have no spread."
    )
    tables = [
        Table(("program", "arguments", "results", "temporary"), rows),
        Table(("memory", "bytes"), [*process, *device_memory_rows(machine)]),
    ]
    return Section("Peak memory", text, tables)
