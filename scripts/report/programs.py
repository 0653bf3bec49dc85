"""Search and gradient steps as a run makes them: throughput on one device and on all, and memory."""

import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from muzero_jax.arithmetic import devices
from muzero_jax.arithmetic.devices import format_bytes
from muzero_jax.storage.config import Config
from scripts.benchmarks import ours, plain_pipeline
from scripts.measuring.machine import Machine
from scripts.measuring.report import NOTHING, Section, seconds, spread, table
from scripts.measuring.timing import Variant, samples
from scripts.report.networks import describe


def search(config: Config, games: int, num_devices: int) -> dict[int, Variant]:
    """The search of fresh games on one device and on as many as divide them; the unit is a simulation."""
    asked, simulations = ours.positions(config, games, 0), config.search.num_simulations
    counts = {1, devices.largest_divisor(num_devices, games)}
    return {count: ours.search(config, asked, count)._replace(work=games * simulations) for count in sorted(counts)}


def gradient_steps(config: Config, num_devices: int) -> dict[int, Variant]:
    """An iteration's gradient steps from a filled buffer, on one device and on as many as divide the sizes."""
    counts = {1, devices.largest_divisor(num_devices, *config.shared_sizes)}
    return {count: ours.learning(config, count) for count in sorted(counts)}


def programs(configs: Mapping[str, Config], games: Mapping[str, int], num_devices: int) -> Iterator[tuple]:
    """(name, unit, variants by number of devices): the search of every network, and the gradient steps of MLPs.

    A tower's gradient takes a minute to compile.
    """
    for config in configs.values():
        as_runs_do = replace(config, network=replace(config.network, compute_dtype="auto"))
        count, simulations = games[config.network.kind], config.search.num_simulations
        name = f"search, {describe(config)}, {count} games, {simulations} simulations"
        yield name, "simulations", search(as_runs_do, count, num_devices)
        if config.network.kind == "mlp":
            size = f"{config.optimiser.batch_size} windows, {config.targets.unroll_steps} unroll steps"
            yield f"gradient steps, {describe(config)}, {size}", "updates", gradient_steps(as_runs_do, num_devices)


def programs_section(machine: Machine, configs: Mapping[str, Config], games: Mapping[str, int]) -> Section:
    """The chapter on programs, measured here."""
    text = (
        "Search of fresh games as in self-play, and gradient steps as an iteration makes them (windows from a filled "
        "buffer, symmetries, targets, gradient, optimiser), in the arithmetic that a run chooses. On several devices "
        "the same games or windows are split. Memory is that of the compiled program on each device by XLA's analysis: "
        "its arguments (parameters, buffer), its results, and what it needs in between."
    )
    rows = []
    for name, unit, variants in programs(configs, games, len(machine.devices)):
        times = samples({str(count): variant.run for count, variant in variants.items()})
        for count, variant in variants.items():
            time = times[str(count)]
            kinds = ("argument", "output", "temp")
            memory = variant.memory  # some backends give no account
            sizes = [format_bytes(getattr(memory, f"{kind}_size_in_bytes")) if memory else NOTHING for kind in kinds]
            rows.append([name, str(count), seconds(time), f"{spread(time.rate(variant.work))} {unit}", *sizes])
    header = ("program", "devices", "time", "a second", "arguments", "results", "temporary")
    stats = devices.memory_stats(machine.device)
    held = {
        "peak of this process (all chapters together)": peak_process_bytes(),
        "peak of the device": stats.get("peak_bytes_in_use"),
        "limit of the device": stats.get("bytes_limit"),
    }
    peaks = [(name, format_bytes(size) if size else NOTHING) for name, size in held.items()]
    game = plain_pipeline.PlainGame(next(iter(configs.values())))
    game.move()
    frame = frame_table(plain_pipeline.frame_bytes(game))
    tables = [table(header, rows), table(("memory", "bytes"), peaks), frame]
    return Section("Search, gradient steps and memory", text, tables)


def frame_table(sizes: Mapping[str, float]) -> str:
    """Bytes of a frame in the replay, and how much less ours takes than it would in a pipeline of plain Python."""
    rows = [(name, f"{size:,.0f}", f"{1 - sizes['ours'] / size:.1%}") for name, size in sizes.items()]
    return table(("a frame in the replay", "bytes", "ours saves"), rows)


def peak_process_bytes() -> int:
    """The most memory this process ever held (ru_maxrss: KiB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
