"""The chapters of the hardware report: their cases, tables and texts."""

import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax import presets
from muzero_jax.algorithm import make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.ops import bfloat16_products, precision
from muzero_jax.ops.devices import memory_stats
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run.machine import available_memory_bytes, format_bytes, usable_cores
from muzero_jax.run.program import make_init
from scripts.benchmarks import programs, report, suites
from scripts.benchmarks.report import Record, Section, rates_table, table
from scripts.benchmarks.suites import Case, Ratio
from scripts.benchmarks.timing import Effort, Variant

COPIES = "JAX with copies"
NUMPY = "NumPy"
HOST = "JAX CPU"
DTYPES = ("float32", "bfloat16", "float16")
EFFORT = Effort(rounds=5, seconds=0.05)
LONG_SECONDS = 20.0
Devices = dict[str, Any]
"""JAX's devices to compare, by their name in tables: the one that runs use, and, if that is an accelerator, the CPU."""


def find_devices() -> Devices:
    """The devices; RuntimeError if JAX_PLATFORMS excludes the CPU, with which the report compares."""
    device = jax.devices()[0]
    host = jax.devices("cpu")[0]
    return {HOST: host} if device.platform == "cpu" else {f"JAX {device.platform.upper()}": device, HOST: host}


def networks() -> dict[str, Config]:
    """The networks by their name in tables, each for one initial and one recurrent inference in float32."""
    small = presets.preset("hex", 5)
    tower = replace(presets.tower("hex", num_bins=2), board_size=9)
    mlps = [replace(small, network=replace(small.network, kind="mlp", width=width)) for width in (128, 512)]
    return {
        f"{c.network.kind} {c.network.width}x{c.network.num_blocks}, {c.board_size}x{c.board_size}": computing(
            c, "float32"
        )
        for c in (*mlps, tower)
    }


def computing(config: Config, dtype: str) -> Config:
    """`config` with its network in a dtype, and with a search of one simulation."""
    network = replace(config.network, compute_dtype=dtype)
    search = replace(config.search, num_simulations=1)
    return replace(config, network=network, search=search)


def measure(about: dict[str, Any], *, quick: bool) -> Iterator[Section]:
    """All chapters, each as soon as it is measured; `about` describes the machine before the measurements."""
    found = find_devices()
    every = 3 if quick else 1
    device = next(iter(found.values()))
    accelerator = len(found) > 1
    chosen = dict([*networks().items()][: 1 if quick else None])
    yield hardware_section(about)
    sizes = (64, 128, 256, 512, 1024, 2048, 4096, *[8192] * accelerator)[::every]
    products = swept(products_of(found, sizes))
    yield Section(
        "Matrix product",
        "The product of two n x n float32 matrices on the device (2 n^3 FLOPs), at each library's default precision. "
        "For JAX that is TensorFloat-32 on NVIDIA GPUs that have it.",
        [rates_table(products)],
        {"matrix product": products},
    )
    sizes = (1, 4, 16, 64, 256, 1024, 4096, *[16384] * accelerator)[::every]
    inferences = {name: swept(inferences_of(found, name, config, sizes)) for name, config in chosen.items()}
    yield Section(
        "The MuZero network by batch size",
        "One program makes one initial and one recurrent inference of a whole batch, with networks of Hex in float32 "
        f"and with inputs and parameters on the device. With an accelerator, *{COPIES}* begins and ends on the host, "
        "which is what playing a move costs.",
        [rates_table(of_one) for of_one in inferences.values()],
        inferences,
    )
    yield precision_section(dtypes_of(device, chosen, larger=accelerator))
    yield crossover_section(found, {"matrix product (n)": products} | inferences)
    transfers = swept(transfers_of(device, tuple(2**power for power in (10, 14, 18, 22, 26))[::every]))
    yield Section(
        "Transfers between host and device",
        "Float32 arrays of these sizes in bytes, copied between NumPy and the device, and for comparison within the "
        "host's memory. Every call moves a new array. A CPU shares its memory with NumPy, so JAX may hand an array "
        "over without copying it. The smallest size shows what it costs to start a transfer.",
        [rates_table(transfers)],
        {"transfers": transfers},
    )
    yield Section(
        "Search",
        "Our search of tic-tac-toe on one device, against mctx, against only the network calls, and for one position "
        "against a tree of Python objects. `scripts/benchmark.py --suite search` measures larger games.",
        [rates_table([suites.measure(case, EFFORT)]) for case in suites.search(quick=True)],
    )
    yield memory_section(device, chosen)


def swept(cases: Iterable[Case]) -> list[Record]:
    """The records of cases of growing size, up to the first that takes longer than `LONG_SECONDS`."""
    found: list[Record] = []
    for case in cases:
        start = time.perf_counter()
        found.append(suites.measure(case, EFFORT))
        if time.perf_counter() - start > LONG_SECONDS:
            break
    return found


def hardware_section(about: dict[str, Any]) -> Section:
    """The chapter on the machine."""
    memory = available_memory_bytes()
    rows = about | {
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "arithmetic of a run's networks": "{} ({})".format(*precision.resolve("auto")),
        "usable CPU cores": usable_cores(),
        "memory available": format_bytes(memory) if memory else "unknown",
    }
    cells = [(name.replace("_", " "), str(value)) for name, value in rows.items()]
    return Section("Hardware and versions", "", [table(("", ""), cells)])


# --- cases ------------------------------------------------------------------------------------------------------------


def on_jax(found: Devices, work: float, function: Callable, *arguments: Any) -> dict[str, Variant]:
    """`function`, compiled for each device with its arguments there, by the device's name in tables.

    The arguments decide where a program runs, but the default device decides how it is traced: without it, the host's
    convolutions would be those for the accelerator.
    """
    variants: dict[str, Variant] = {}
    for label, device in found.items():
        with jax.default_device(device):
            placed = jax.device_put(arguments, device)
            variants[label] = Variant(partial(jax.jit(function).lower(*placed).compile(), *placed), work)
    return variants


def products_of(found: Devices, sizes: Iterable[int]) -> Iterator[Case]:
    """Products of two square matrices, by library."""

    def make(size):
        x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
        work = 2.0 * size**3 / 1e9
        return on_jax(found, work, jnp.matmul, x, y) | {NUMPY: Variant(lambda: x @ y, work)}

    there, *others = *found, NUMPY
    for size in sizes:
        ratios = tuple(Ratio(there, other) for other in others)
        yield Case("matrix product", f"{size:,}", "GFLOP/s", partial(make, size), ratios)


def inputs_of(config: Config, batch: int) -> tuple[Any, np.ndarray]:
    """Parameters, and random observations, which need not occur in a game."""
    algorithm = make_algorithm(config)
    shape = batch, *algorithm.environment.observation_shape
    return programs.noisy_params(algorithm.model), np.random.default_rng(batch).random(shape) < 0.3


def inferences_of(found: Devices, name: str, config: Config, batches: Iterable[int]) -> Iterator[Case]:
    """One initial and one recurrent inference, by device."""
    infer, there, *others = programs.network_calls(config), *found

    def make(batch):
        params, observation = inputs_of(config, batch)
        variants = on_jax(found, batch, infer, params, observation)
        if others:
            call = jax.jit(infer)
            params = jax.device_put(params, found[there])
            variants[COPIES] = Variant(lambda: jax.device_get(call(params, observation)), batch)
        return variants

    for batch in batches:
        ratios = tuple(Ratio(there, other) for other in others)
        yield Case(name, f"{batch:,}", "positions/s", partial(make, batch), ratios)


def dtypes_of(device: Any, chosen: dict[str, Config], *, larger: bool) -> Iterator[Case]:
    """A product of matrices, and networks, in every dtype.

    An accelerator gets `larger` sizes, because it does a CPU's millisecond of work in the microseconds that starting a
    program takes, and then no dtype is faster than another.
    """
    side = 8192 if larger else 1024
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))

    def make_product():
        factors = np.random.default_rng(0).normal(size=(2, side, side))
        return {t: Variant(partial(product, *jax.device_put(jnp.asarray(factors, t), device))) for t in DTYPES}

    def make_network(config, batch):
        placed = jax.device_put(inputs_of(config, batch), device)
        calls = {t: programs.network_calls(computing(config, t)) for t in (*DTYPES, bfloat16_products.COMPUTE_DTYPE)}
        return {t: Variant(partial(jax.jit(call), *placed)) for t, call in calls.items()}

    ratios = tuple(Ratio(dtype, DTYPES[0]) for dtype in DTYPES[1:])
    yield Case("precision", f"matrix product of n = {side:,}", "calls/s", make_product, ratios)
    ratios += (Ratio(bfloat16_products.COMPUTE_DTYPE, DTYPES[0]),)
    for name, config in chosen.items():
        batch = (64 if config.network.kind == "tower" else 1024) * (16 if larger else 1)
        yield Case("precision", f"{name}, batch {batch:,}", "calls/s", partial(make_network, config, batch), ratios)


def transfers_of(device: Any, sizes: Iterable[int]) -> Iterator[Case]:
    """Transfers of arrays, their sizes in bytes, to the device and from it."""
    renew = jax.jit(lambda x: x + 1)  # JAX keeps the host's copy of a fetched array

    def make(size):
        values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
        work = size / 1e9
        there = jax.device_put(values, device)
        return {
            "NumPy copy": Variant(np.copy, work, prepare=values.copy),
            "device_put": Variant(lambda fresh: jax.device_put(fresh, device), work, prepare=values.copy),
            "device_get": Variant(jax.device_get, work, prepare=lambda: renew(there)),
        }

    for size in sizes:
        yield Case("bytes", f"{size:,}", "GB/s", partial(make, size), ())


# --- chapters with their own tables -----------------------------------------------------------------------------------


def precision_section(cases: Iterable[Case]) -> Section:
    """The chapter on precision: rates, and errors relative to float32."""
    found = []
    errors = {}
    for case in cases:
        variants = case.make()
        found.append(suites.measure(case._replace(make=lambda variants=variants: variants), EFFORT))
        exact, *others = (np.asarray(jax.tree.leaves(variant.run())[-1]) for variant in variants.values())
        error = (f"{np.abs(other - exact).max() / np.abs(exact).max():.1e}" for other in others)
        errors[case.name] = dict(zip([*variants][1:], error, strict=True))
    return Section(
        "Precision",
        "The same work in three dtypes, and with only the factors of the products in a network's trunks in bfloat16. "
        "The network's parameters and the sums of the matrix product are always float32. The error is the largest "
        "difference from the float32 result, relative to the largest number of that result.",
        [rates_table(found), report.columns_table("error", errors)],
    )


def crossover_section(found: Devices, measured: dict[str, list[Record]]) -> Section:
    """The chapter on crossovers, computed from the tables of earlier chapters."""
    there, *others = found
    pairs = [(HOST, there), (HOST, COPIES)] if others else [(NUMPY, there)]
    alone = (
        "This machine has no accelerator, so the table shows where compiled JAX overtakes NumPy on the same cores, "
        "instead of where an accelerator overtakes the CPU. "
    )
    rows = [
        (what, one, other, report.crossover(of_one, one, other))
        for what, of_one in measured.items()
        for one, other in pairs
        if {one, other} <= of_one[0]["rates"].keys()
    ]
    return Section(
        "Crossover",
        ("" if others else alone) + "The crossover is the size from which the second is ahead of the first at every "
        "larger size that was measured, by the medians of the earlier chapters. Between two sizes it is interpolated "
        "on logarithmic axes; if the two curves lie close together, it varies by a factor of two between runs.",
        [table(("work", "first", "second", "crossover"), rows)],
    )


def memory_section(device: Any, chosen: dict[str, Config]) -> Section:
    """The chapter on memory, which is last, so that the peaks include all chapters."""
    stats = memory_stats(device)
    held = {
        "peak of this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024),
        "peak of the device": stats.get("peak_bytes_in_use"),
        "limit of the device": stats.get("bytes_limit"),
    }
    peaks = [(name, format_bytes(size) if size else report.NOTHING) for name, size in held.items()]
    frames = []
    for config in {config.board_size: config for config in chosen.values()}.values():
        plain, ours = frame_bytes(config)
        frames.append((f"{config.env} {config.board_size}", f"{plain:,.0f}", f"{ours:,.0f}", f"{1 - ours / plain:.1%}"))
    return Section(
        "Memory",
        "The first table compares a frame (one move) as float32 arrays with a frame in our replay buffer. The peaks "
        "are those of all chapters together. A run prints how much memory it needs before it begins.",
        [
            table(("bytes of a frame in the replay", "float32 arrays", "ours", "ours saves"), frames),
            table(("memory", "bytes"), peaks),
        ],
    )


def frame_bytes(config: Config) -> tuple[float, float]:
    """Bytes of one frame in the replay buffer: as float32 arrays and numbers, and in ours."""
    algorithm = make_algorithm(config)
    environment = algorithm.environment
    frames = config.replay.replay_length * config.self_play.num_envs
    leaves = jax.tree.leaves(make_init(algorithm, 0, make_mesh(1)).eval_shape().replay.transitions)
    numbers = math.prod(environment.observation_shape) + 2 * environment.num_actions + 4  # mask and policy; the scalars
    return 4.0 * numbers, sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) / frames
