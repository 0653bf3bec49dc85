"""The chapters of the hardware report: what is measured in each, and what its table says."""

import math
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax import algorithm as algorithms
from muzero_jax import presets
from muzero_jax.ops import bfloat16_products, devices, precision
from muzero_jax.ops.devices import format_bytes
from muzero_jax.run.program import make_init
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, Params
from scripts import benchmark
from scripts.benchmarks import plain, report, suites, timing
from scripts.benchmarks.programs import noisy_params
from scripts.benchmarks.report import Section, seconds, table, times_table
from scripts.benchmarks.timing import Times, Variant, samples, sweep

COPIES = "JAX with copies"
DTYPES = ("float32", "bfloat16", "float16")


Devices = dict[str, Any]
"""JAX's devices to compare, by the name that tables use; a run uses the first. With an accelerator there are two."""


def find_devices() -> Devices:
    """Looks; JAX raises RuntimeError if JAX_PLATFORMS leaves out the CPU, which the report compares with."""
    device, host = jax.devices()[0], jax.devices("cpu")[0]
    both = {f"JAX {device.platform.upper()}": device, "JAX CPU": host}
    return {"JAX": host} if device.platform == "cpu" else both


def first(found: Devices) -> Any:
    """The device that runs use."""
    return next(iter(found.values()))


class Sizes(NamedTuple):
    """Sizes of every table."""

    matrices: tuple[int, ...]
    networks: dict[str, Config]  # by the name that tables use
    batches: tuple[int, ...]
    precision_matrix: int
    precision_batch: dict[str, int]  # by the network's kind
    transfers: tuple[int, ...]  # bytes


def choose(*, quick: bool, accelerator: bool) -> Sizes:
    """The sizes for a machine with or without an accelerator.

    What keeps two cores busy for a millisecond an accelerator does in the microseconds that starting a program takes,
    and then no dtype is faster than another: it gets larger sizes as well.
    """
    small, tower = presets.preset("hex", 5), replace(presets.tower("hex", num_bins=2), board_size=9)
    networks = {
        name: replace(base, network=replace(base.network, compute_dtype="float32", **changed))
        for name, base, changed in (
            ("standard", small, {"kind": "mlp", "width": 128}),
            ("512-wide", small, {"kind": "mlp", "width": 512}),
            ("tower", tower, {}),
        )[: 1 if quick else None]
    }
    larger, every = 16 if accelerator else 1, 3 if quick else 1
    return Sizes(
        matrices=(64, 128, 256, 512, 1024, 2048, 4096, *[8192] * accelerator)[::every],
        networks=networks,
        batches=(1, 4, 16, 64, 256, 1024, 4096, *[16384] * accelerator)[::every],
        precision_matrix=8192 if accelerator else 1024,
        precision_batch={"mlp": 1024 * larger, "tower": 64 * larger},
        transfers=tuple(2**power for power in (10, 14, 18, 22, 26))[::every],
    )


def measure(about: dict[str, Any], *, quick: bool) -> Iterator[Section]:
    """All chapters, each as soon as it is measured; `about` is the machine before that."""
    found = find_devices()
    sizes = choose(quick=quick, accelerator=len(found) > 1)
    yield hardware_section(about)
    times = {"matrix product (n)": product_times(found, sizes.matrices)}
    yield product_section(times["matrix product (n)"])
    for name, config in sizes.networks.items():
        times[f"{name} network (batch)"] = network_times(found, config, sizes.batches)
    yield network_section(sizes.networks, times)
    yield precision_section(found, sizes)
    yield crossover_section(found, times)
    yield transfers_section(found, sizes.transfers)
    yield search_section()
    yield memory_section(found, sizes.networks["standard"])


def hardware_section(about: dict[str, Any]) -> Section:
    """The chapter on the machine."""
    memory = devices.available_memory_bytes()
    rows = about | {
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "arithmetic of a run's networks": "{} ({})".format(*precision.resolve("auto")),
        "usable CPU cores": devices.usable_cores(),
        "memory available": format_bytes(memory) if memory else "unknown",
    }
    return Section(
        "Hardware and versions", "", [table(("", ""), [(n.replace("_", " "), str(v)) for n, v in rows.items()])]
    )


# --- matrix products --------------------------------------------------------------------------------------------------


def on_jax(found: Devices, function: Callable, *arguments: Any) -> dict[str, Variant]:
    """`function`, compiled, of arguments that lie on the device, for each device by the name that tables use.

    The arguments say where a program runs, but the default device how the library writes it: traced for an accelerator,
    a convolution on the same machine's CPU would not be the one that a CPU gets.
    """
    variants: dict[str, Variant] = {}
    for label, device in found.items():
        with jax.default_device(device):
            placed = jax.device_put(arguments, device)
            variants[label] = Variant(partial(jax.jit(function).lower(*placed).compile(), *placed))
    return variants


def rates(times: Times, work: Callable[[int], float]) -> Times:
    """Work a second, of seconds by variant and size."""
    return {name: {size: s.rate(work(size)) for size, s in row.items()} for name, row in times.items()}


def product_times(found: Devices, sizes: tuple[int, ...]) -> Times:
    """Seconds of a product of two square matrices, by library and size."""

    def variants(size):
        x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
        return on_jax(found, jnp.matmul, x, y) | {"NumPy": Variant(lambda: x @ y)}

    return sweep(sizes, variants)


def product_section(times: Times) -> Section:
    """The chapter on the matrix product."""
    text = (
        "Time of the product of two n x n float32 matrices that lie on the device already, at each library's default "
        "precision (on NVIDIA GPUs that have it, that is TensorFloat-32 for JAX). The plot has 2 n^3 FLOPs a call."
    )
    plot = "n", "GFLOP/s", rates(times, lambda n: 2.0 * n**3 / 1e9)
    return Section("Matrix product", text, [times_table("n", times)], {"Matrix product": plot})


# --- the network ------------------------------------------------------------------------------------------------------


def both_inferences(model: Model) -> Callable[[Params, Any, Any], Any]:
    """(params, observation, action) -> outputs of an initial and a recurrent inference, as one program."""

    def infer(params, observation, action):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, action)

    return jax.jit(infer)


def plain_inference(params: Params, observation: Any, action: Any) -> tuple:
    """`both_inferences` of an MLP, by NumPy."""
    logits, embedding = plain.root(params, observation)
    return logits, *plain.step(params, embedding, action)


def make_inputs(config: Config, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random stones, and an action each."""
    environment, generator = algorithms.make(config).environment, np.random.default_rng(batch)
    observation = generator.random((batch, *environment.observation_shape)) < 0.3
    return observation, generator.integers(0, environment.num_actions, batch).astype(np.int32)


def network_times(found: Devices, config: Config, batches: tuple[int, ...]) -> Times:
    """Seconds of one initial and one recurrent inference, by library and batch size."""
    model = algorithms.make(config).model
    params, infer = noisy_params(model), both_inferences(model)

    def variants(batch):
        inputs = observation, action = make_inputs(config, batch)
        candidates = on_jax(found, infer, params, *inputs)
        if len(found) > 1:  # from the host and back to it: what playing a move costs
            there = jax.device_put(params, first(found))
            candidates[COPIES] = Variant(lambda: jax.device_get(infer(there, *inputs)))
        if config.network.kind == "mlp":
            flat = observation.reshape(batch, -1).astype(np.float32)
            candidates["NumPy"] = Variant(partial(plain_inference, jax.tree.map(np.array, params), flat, action))
        return candidates

    return sweep(batches, variants)


def network_section(configs: Mapping[str, Config], times: Mapping[str, Times]) -> Section:
    """The chapter on batch sizes."""
    text = (
        "Time of one call: one initial and one recurrent inference of the whole batch as one program, float32, inputs "
        "and parameters on the device. NumPy computes the MLP from the same parameters; a test holds it to the "
        "same numbers."
    )
    tables, plots = [], {}
    for name, c in configs.items():
        found = times[f"{name} network (batch)"]
        what = f"{name}: {c.env} {c.board_size}, {c.network.kind} {c.network.width}x{c.network.num_blocks}; batch"
        tables.append(times_table(what, found))
        plots[f"Network {name}"] = "batch", "positions/s", rates(found, float)
    return Section("The MuZero network by batch size", text, tables, plots)


def precision_section(found: Devices, sizes: Sizes) -> Section:
    """The chapter on precision: a product of matrices, and networks at the batch of their kind."""
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters, and the sums of the matrix product, "
        "stay float32), and with nothing but the factors in a network's trunks in bfloat16, measured in turn on "
        f"{first(found).device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    factors = np.random.default_rng(0).normal(size=(2, sizes.precision_matrix, sizes.precision_matrix))
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    inputs = {dtype: jax.device_put(jnp.asarray(factors, dtype), first(found)) for dtype in DTYPES}
    products: dict[str, Callable] = {dtype: partial(product, *pair) for dtype, pair in inputs.items()}
    works = {f"matrix product of n = {sizes.precision_matrix:,}": products}
    for name, config in sizes.networks.items():
        batch = sizes.precision_batch[config.network.kind]
        works[f"{name} network at batch {batch:,}"] = _in_dtypes(found, config, batch)
    rows = []
    for name, calls in works.items():
        exact, times = np.asarray(calls["float32"]()), samples({dtype: Variant(call) for dtype, call in calls.items()})
        for dtype, call in calls.items():
            error = np.abs(call() - exact).max() / np.abs(exact).max()
            faster = times["float32"].median / times[dtype].median
            rows.append((name, dtype, seconds(times[dtype]), f"{faster:.2f}x", f"{error:.1e}"))
    return Section("Precision", text, [table(("work", "dtype", "time", "speed against float32", "error"), rows)])


def _in_dtypes(found: Devices, config: Config, batch: int) -> dict[str, Callable[[], jax.Array]]:
    """By dtype, calls that give the policy logits after both inferences."""
    inputs = jax.device_put((noisy_params(algorithms.make(config).model), *make_inputs(config, batch)), first(found))

    def call(dtype):
        rounded = replace(config, network=replace(config.network, compute_dtype=dtype))
        infer = both_inferences(algorithms.make(rounded).model)
        return lambda: infer(*inputs)[1].policy_logits

    return {dtype: call(dtype) for dtype in (*DTYPES, bfloat16_products.COMPUTE_DTYPE)}


def crossover_section(found: Devices, times: Mapping[str, Times]) -> Section:
    """The chapter on crossovers, from the tables of earlier chapters; measures nothing itself."""
    text = (
        "The size from which the second stays ahead of the first at all larger sizes measured, from the medians of the "
        "chapters before. The number between two sizes is interpolated on logarithmic axes; where the two times lie "
        "close together it moves by a factor of two from run to run."
    )
    there, *others = found
    pairs = [("JAX CPU", there), ("JAX CPU", COPIES), ("NumPy", COPIES)] if others else [("NumPy", there)]
    if not others:
        text = (
            "This machine has no accelerator, so there is no crossover between CPU and accelerator. Instead: where "
            f"compiled JAX overtakes NumPy on the same cores. {text}"
        )
    rows = [
        (what, one, other, report.crossover(row[one], row[other]))
        for what, row in times.items()
        for one, other in pairs
        if row.get(one, {}).keys() & row.get(other, {}).keys()
    ]
    return Section("Crossover", text, [table(("work", "first", "second", "crossover"), rows)])


# --- transfers, search, memory ----------------------------------------------------------------------------------------

_ADD_ONE = jax.jit(lambda x: x + 1)


def transfers_section(found: Devices, sizes: tuple[int, ...]) -> Section:
    """The chapter on moving arrays of so many bytes between the host and the device."""

    def variants(size) -> dict[str, Variant]:
        values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
        on_device = jax.device_put(values, first(found))
        return {
            "NumPy copy": Variant(np.copy, prepare=values.copy),
            "device_put": Variant(lambda fresh: jax.device_put(fresh, first(found)), prepare=values.copy),
            # JAX keeps the host's copy of an array once it was fetched, hence a new one each time.
            "device_get": Variant(jax.device_get, prepare=lambda: _ADD_ONE(on_device)),
        }

    times, eight = sweep(sizes, variants), jax.device_put(jnp.zeros(8), first(found))
    empty = samples({"call": Variant(lambda: _ADD_ONE(eight))})["call"]
    shared = " Here they share one memory, and JAX may hand an array over without copying it."
    text = (
        "Float32 arrays between NumPy and the device, each call with an array that was not moved before, and for "
        f"comparison a copy within the host's memory.{'' if len(found) > 1 else shared} An empty call (adding "
        f"1 to 8 numbers on the device) takes {seconds(empty)}: the price of starting any program."
    )
    plot = "bytes", "GB/s", rates(times, lambda size: size / 1e9)
    return Section("Transfers between host and device", text, [times_table("bytes", times)], {"Transfers": plot})


def search_section() -> Section:
    """The chapter on search: the short cases of the benchmark's suite."""
    text = (
        "Our search against mctx, against the network calls alone, and of one position against a tree of Python "
        "objects, of tic-tac-toe on one device: searches a second and their ratios, each with half its interquartile "
        "range over the median. `scripts/benchmark.py --suite search` has larger ones."
    )
    found = [benchmark.table(suites.measure(case, timing.QUICK)) for case in suites.search(quick=True)]
    return Section("Search", text, found)


def memory_section(found: Devices, config: Config) -> Section:
    """The chapter on memory; it comes last, so that the peaks are those of all chapters."""
    text = (
        "A frame is one move of Hex 5x5, as float32 arrays would keep it and as our replay buffer does. Peaks are of "
        "all chapters together. What a run holds it prints itself, before it begins."
    )
    sizes, stats = frame_bytes(config), devices.memory_stats(first(found))
    frames = [(name, f"{size:,.0f}", f"{1 - sizes['ours'] / size:.1%}") for name, size in sizes.items()]
    unit = 1 if sys.platform == "darwin" else 1024
    held = {
        "peak of this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "peak of the device": stats.get("peak_bytes_in_use"),
        "limit of the device": stats.get("bytes_limit"),
    }
    peaks = [(name, format_bytes(size) if size else report.NOTHING) for name, size in held.items()]
    tables = [table(("a frame in the replay", "bytes", "ours saves"), frames), table(("memory", "bytes"), peaks)]
    return Section("Memory", text, tables)


def frame_bytes(config: Config) -> dict[str, float]:
    """Bytes of one frame in the replay: as float32 arrays and numbers, and in ours."""
    algorithm = algorithms.make(config)
    environment, frames = algorithm.environment, config.replay.replay_length * config.self_play.num_envs
    leaves = jax.tree.leaves(make_init(algorithm, 0, devices.make_mesh(1)).eval_shape().replay.transitions)
    numbers = math.prod(environment.observation_shape) + 2 * environment.num_actions + 4  # mask and policy; the scalars
    ours = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) / frames
    return {"float32 arrays": 4.0 * numbers, "ours": ours}
