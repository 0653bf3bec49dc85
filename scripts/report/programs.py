"""Search and gradient steps as a run makes them: throughput, share of the machine's best arithmetic, memory."""

import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muzero_jax.arithmetic import bfloat16_products, devices, precision
from muzero_jax.arithmetic.devices import format_bytes
from muzero_jax.storage.config import Config
from scripts.benchmarks import ours, plain_pipeline
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Compared, Section, Table
from scripts.measuring.timing import Sample, Say, Times, Variant, in_time, samples
from scripts.measuring.words import NOTHING, three_digits
from scripts.report.networks import InDtypes, describe, flops, product_flops
from scripts.report.short_run import Run
from scripts.report.sizes import Sizes

ONE, ALL, NETWORK_ALONE = "one device", "all devices", "network alone"
BACKWARD = 2
"""A gradient costs about twice its forward pass: one product for the inputs' gradient, one for the weights'."""


class Measured(NamedTuple):
    """A program at work."""

    name: str
    config: Config
    units: float  # simulations, or updates, of one call
    flops: float  # of one call
    times: Mapping[str, Sample]
    memory: Any  # XLA's analysis of the one-device program


def search_flops(config: Config, games: float) -> float:
    """Operations of one move of each game."""
    initial, recurrent = flops(config)
    return games * (initial + config.search.num_simulations * recurrent)


def update_flops(config: Config, updates: float) -> float:
    """Operations of gradient steps of the config's batch, forward and backward."""
    initial, recurrent = flops(config)
    forward = initial + config.targets.unroll_steps * recurrent
    return updates * config.optimiser.batch_size * (1 + BACKWARD) * forward


def measure_search(config: Config, games: int, num_devices: int) -> Measured:
    """The search of fresh games on one device and on all that divide them, and the network's part of it on one."""
    asked = ours.positions(config, games, 0)
    count, simulations = devices.largest_divisor(num_devices, games), config.search.num_simulations
    variants = {ONE: ours.search(config, asked), NETWORK_ALONE: ours.bare_network(config, asked)}
    if count > 1:
        variants[ALL] = ours.search(config, asked, count)
    name = f"search, {describe(config)}, {games} games, {simulations} simulations"
    return _measured(name, config, games * simulations, search_flops(config, games), variants)


def measure_learner(config: Config, num_devices: int) -> Measured:
    """One iteration's gradient steps from a filled buffer, on one device and on all that divide the sizes."""
    count, updates = devices.largest_divisor(num_devices, *config.shared_sizes), config.optimiser.updates_per_iteration
    variants = {ONE: ours.learning(config, 1)} | ({ALL: ours.learning(config, count)} if count > 1 else {})
    size = f"{config.optimiser.batch_size} windows, {config.targets.unroll_steps} unroll steps"
    name = f"gradient steps, {describe(config)}, {size}"
    return _measured(name, config, updates, update_flops(config, updates), variants)


def _measured(name: str, config: Config, units: float, flops: float, variants: Mapping[str, Variant]) -> Measured:
    times = samples({where: variant.run for where, variant in variants.items()})
    return Measured(name, config, units, flops, times, variants[ONE].memory)


def measure_programs(plan: Sizes, num_devices: int, say: Say) -> Iterator[Measured]:
    """The plan's searches, then its learners, either as far as its time reaches."""
    count = num_devices if plan.all_devices else 1
    for config, games in in_time(plan.searches, plan.limits, say):
        say(f"search, {describe(config)}, {games} games")
        yield measure_search(config, games, count)
    for config in in_time(plan.learners, plan.limits, say):
        say(f"gradient steps, {describe(config)}")
        yield measure_learner(config, count)


def throughput_section(measured: Sequence[Measured]) -> Section:
    """The chapter on throughput, from `measure_programs`."""
    text = (
        "Search of fresh games in self-play's own configuration, in simulations a second, and gradient steps as an "
        "iteration makes them (drawing windows from a filled buffer, symmetries, targets, gradient, optimiser), in "
        "updates a second. On all devices the same games or windows are split over as many as divide them. The network "
        "alone is one initial and as many recurrent inferences as the search makes, in a loop on one device: its share "
        "of the search's time says how little the tree costs."
    )
    times = {where: {m.name: m.times[where] for m in measured if where in m.times} for where in (ONE, ALL)}
    if not times[ALL]:
        del times[ALL]
    units = {m.name: m.units for m in measured}
    shares = [
        f"The network takes {m.times[NETWORK_ALONE].median / m.times[ONE].median:.0%} of the {m.name}, on one device."
        for m in measured
        if NETWORK_ALONE in m.times
    ]
    compared = Compared(
        "Programs", times, "for", "program", "a second", units.__getitem__, "time and rate", size_name=str
    )
    return compared.section("Search and training-step throughput", text, headlines=shares)


def at_work(
    machine: Machine, plan: Sizes, networks: Mapping[str, Times], measured: Sequence[Measured], run: Run
) -> Iterator[tuple[str, str, float]]:
    """(program, dtype of its products, operations a second) of all measured; a network at its best batch size."""
    for name, config in plan.networks.items():
        row = networks[name][machine.label]
        batch = min(row, key=lambda batch: row[batch].median / batch)
        yield f"{name} network, batch {batch:,}", "float32", batch * sum(flops(config)) / row[batch].median
    for m in measured:
        for where in (where for where in (ONE, ALL) if where in m.times):
            yield f"{m.name}, {where}", _dtype(m.config), m.flops / m.times[where].median
    total = search_flops(run.config, run.rates["frames"]) + update_flops(run.config, run.rates["updates"])
    yield f"short run on {run.num_devices}, self-play and learning", _dtype(run.config), total


def _dtype(config: Config) -> str:
    """The dtype of the products in the config's networks on this machine."""
    dtype, product_dtype = bfloat16_products.dtypes(precision.resolve(config.network.compute_dtype).compute_dtype)
    return (product_dtype or dtype).name


def utilisation_section(
    machine: Machine, matrices: Times, product: InDtypes, programs: Sequence[tuple[str, str, float]]
) -> Section:
    """Shares of the best product: of `matrices`, float32 by library and size, and of `product`, JAX's by dtype."""
    peaks = _peak_flops(machine, matrices, product)
    shares = {name: speed / peaks[dtype][0] for name, dtype, speed in programs}
    rows = [(name, dtype, three_digits(speed / 1e9), f"{shares[name]:.0%}") for name, dtype, speed in programs]
    used = dict.fromkeys(dtype for _, dtype, _ in programs)
    best = ", ".join(f"{dtype} {three_digits(peaks[dtype][0] / 1e9)} ({peaks[dtype][1]})" for dtype in used)
    text = (
        "GFLOP/s over those of the best matrix product measured above in the dtype of what the program multiplies, "
        f"from medians. The best products reach, in GFLOP/s: {best}. Operations are counted directly: two a weight and "
        "use, a gradient as three forward passes; what Winograd's convolutions save is not subtracted, so a share may "
        "exceed 100%. On a CPU a product uses all cores; of all devices the others use as many as divide their sizes."
    )
    highest = max(shares, key=shares.__getitem__)
    finding = f"The highest share of the best matrix product of its dtype, {shares[highest]:.0%}, has: {highest}."
    header = ("program", "dtype", "GFLOP/s", "share of the dtype's best product")
    return Section("Utilisation", text, [Table(header, rows)], headlines=[finding])


def _peak_flops(machine: Machine, matrices: Times, product: InDtypes) -> dict[str, tuple[float, str]]:
    """By dtype, operations per second of the best matrix product on the device that runs use, and whose it was."""
    elsewhere = {"JAX CPU", "NumPy"} if machine.has_accelerator else set()
    best = {dtype: (product.flops / sample.median, machine.label) for dtype, sample in product.times.items()}
    for name in matrices.keys() - elsewhere:
        for size, sample in matrices[name].items():
            best["float32"] = max(best["float32"], (product_flops(size) / sample.median, name))
    return best


def memory_section(machine: Machine, measured: Sequence[Measured], frame: dict[str, float]) -> Section:
    """XLA's account of the programs, the peaks of device and process, and the `saved_bytes` of a frame."""
    parts = ("argument", "output", "temp")
    rows = [
        (m.name, *(format_bytes(getattr(m.memory, f"{part}_size_in_bytes")) for part in parts))
        for m in measured
        if m.memory is not None  # some backends give no account
    ]
    stats = devices.memory_stats(machine.device)
    held = {
        "peak of this process (all chapters together)": peak_process_bytes(),
        "peak of the device": stats.get("peak_bytes_in_use"),
        "limit of the device": stats.get("bytes_limit"),
    }
    text = (
        "Of each compiled program on one device: its arguments (parameters, buffer), its results, and what it needs in "
        "between, by XLA's analysis. These are exact sizes of buffers, not measurements, and have no spread. A frame "
        "is one move of the short run's game, as a pipeline in plain Python keeps it and as our replay buffer does."
    )
    tables = [
        Table(("program", "arguments", "results", "temporary"), rows),
        Table(("memory", "bytes"), [(name, format_bytes(size) if size else NOTHING) for name, size in held.items()]),
        plain_pipeline.bytes_table(frame),
    ]
    saved = f"A frame in our replay takes {frame['saved']:.1%} less than its bare numbers in float32"
    headlines = [f"{saved}, and {frame['saved_of_objects']:.1%} less than as Python objects."]
    return Section("Peak memory", text, tables, headlines=headlines)


def peak_process_bytes() -> int:
    """The most memory this process ever held (ru_maxrss: KiB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
