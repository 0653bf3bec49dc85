"""The chapters of the hardware report: what is measured in each, and what its table says."""

import importlib
import math
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax import presets
from muzero_jax.ops import bfloat16_products, devices, precision
from muzero_jax.ops.devices import format_bytes
from muzero_jax.run.program import make_init
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, Params
from scripts import benchmark
from scripts.benchmarks import plain_network, suites
from scripts.benchmarks.workloads import algorithm_of, noisy_params
from scripts.measuring import report, timing
from scripts.measuring.report import Plot, Section, crossover, seconds, table, times_table
from scripts.measuring.timing import Candidate, Fresh, Times, samples, sweep

ALL_DEVICES, COPIES = "JAX, all devices", "JAX with copies"
DTYPES = ("float32", "bfloat16", "float16")


class Machine(NamedTuple):
    """Devices by role, and PyTorch."""

    labels: dict[str, Any]  # JAX's devices to compare, by the name that tables use; a run uses the first
    torch: Any = None  # the module, if it is installed

    @property
    def device(self) -> Any:
        """The device that runs use."""
        return next(iter(self.labels.values()))

    @property
    def has_accelerator(self) -> bool:
        """Whether there is a device to compare the CPU with."""
        return len(self.labels) > 1

    @property
    def torch_device(self) -> str:
        """Where PyTorch computes: on the GPU if it sees one and JAX uses an accelerator too."""
        return "cuda" if self.has_accelerator and self.torch.cuda.is_available() else "cpu"


def find_machine() -> Machine:
    """Looks; JAX raises RuntimeError if JAX_PLATFORMS leaves out the CPU, which the report compares with."""
    device, host = jax.devices()[0], jax.devices("cpu")[0]
    both = {f"JAX {device.platform.upper()}": device, "JAX CPU": host}
    return Machine({"JAX": host} if device.platform == "cpu" else both, find_torch())


def find_torch() -> Any:
    """The module; None where it is not installed, or cannot be loaded."""
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError):
        return None


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
        name: replace(small, network=replace(small.network, kind="mlp", width=width, compute_dtype="float32"))
        for name, width in {"standard": 128, "512-wide": 512}.items()
    } | {"tower": replace(tower, network=replace(tower.network, compute_dtype="float32"))}
    larger, every = 16 if accelerator else 1, 3 if quick else 1
    return Sizes(
        matrices=(64, 128, 256, 512, 1024, 2048, 4096, *[8192] * accelerator)[::every],
        networks={name: networks[name] for name in ("standard", "512-wide", "tower")[: 1 if quick else None]},
        batches=(1, 4, 16, 64, 256, 1024, 4096, *[16384] * accelerator)[::every],
        precision_matrix=8192 if accelerator else 1024,
        precision_batch={"mlp": 1024 * larger, "tower": 64 * larger},
        transfers=tuple(2**power for power in (10, 14, 18, 22, 26))[::every],
    )


def measure(found: Machine, about: dict[str, Any], sizes: Sizes) -> Iterator[Section]:
    """All chapters, each as soon as it is measured."""
    yield hardware_section(found, about)
    products = product_times(found, sizes.matrices)
    yield product_section(products)
    by_name = {name: network_times(found, config, sizes.batches) for name, config in sizes.networks.items()}
    yield network_section(sizes.networks, by_name)
    yield precision_section(found, sizes)
    yield crossover_section(found, products, by_name)
    yield transfers_section(found, sizes.transfers)
    yield search_section()
    yield memory_section(found, sizes.networks["standard"])


def hardware_section(found: Machine, about: dict[str, Any]) -> Section:
    """The chapter on the machine, as it was before anything was measured."""
    memory = devices.available_memory_bytes()
    rows = about | {
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "PyTorch": f"{found.torch.__version__}, on {found.torch_device}" if found.torch else "not installed",
        "arithmetic of a run's networks": "{} ({})".format(*precision.resolve("auto")),
        "usable CPU cores": devices.usable_cores(),
        "memory available": format_bytes(memory) if memory else "unknown",
    }
    cells = [(name.replace("_", " "), str(value)) for name, value in rows.items()]
    return Section("Hardware and versions", "", [table(("", ""), cells)])


# --- matrix products --------------------------------------------------------------------------------------------------


def on_jax(machine: Machine, function: Callable, *arguments: Any) -> dict[str, Candidate]:
    """`function`, compiled, of arguments that lie on the device, for each of JAX's by the name that tables use.

    The arguments say where a program runs, but the default device how the library writes it: traced for an accelerator,
    a convolution on the same machine's CPU would not be the one that a CPU gets.
    """
    found: dict[str, Candidate] = {}
    for label, device in machine.labels.items():
        with jax.default_device(device):
            placed = jax.device_put(arguments, device)
            found[label] = partial(jax.jit(function).lower(*placed).compile(), *placed)
    return found


def elsewhere(machine: Machine, function: Callable, *arrays: Any) -> dict[str, Candidate]:
    """`function` of a library and of trees of arrays, by NumPy and, if there is one, PyTorch, which is waited for."""
    found: dict[str, Candidate] = {"NumPy": partial(function, np, *arrays)}
    if machine.torch is None:
        return found
    torch, device = machine.torch, machine.torch_device
    inputs = jax.tree.map(lambda array: torch.from_numpy(array).to(device), arrays)

    def call():
        with torch.no_grad():
            result = function(torch, *inputs)
        if device == "cuda":
            torch.cuda.synchronize()
        return result

    found["PyTorch"] = call
    return found


def rates(times: Times, work: Callable[[int], float]) -> Times:
    """Work a second, of seconds by candidate and size."""
    return {name: {size: s.rate(work(size)) for size, s in row.items()} for name, row in times.items()}


def product_times(machine: Machine, sizes: Sequence[int]) -> Times:
    """Seconds of a product of two square matrices, by library and size."""

    def product(library, x, y):
        return x @ y

    def candidates(size):
        x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
        return on_jax(machine, partial(product, jnp), x, y) | elsewhere(machine, product, x, y)

    return sweep(sizes, candidates)


def product_section(times: Times) -> Section:
    """The chapter on the matrix product, from its `product_times`."""
    text = (
        "Time of the product of two n x n float32 matrices that lie on the device already, at each library's default "
        "precision (on NVIDIA GPUs that have it, that is TensorFloat-32 for JAX). The plot has 2 n^3 FLOPs a call."
    )
    plot = Plot("matrix-product", "Matrix product", "n", "GFLOP/s", rates(times, lambda n: 2.0 * n**3 / 1e9))
    return Section("Matrix product", text, [times_table("n", times)], [plot])


# --- the network ------------------------------------------------------------------------------------------------------


def both_inferences(model: Model) -> Callable[[Params, Any, Any], Any]:
    """(params, observation, action) -> outputs of an initial and a recurrent inference, as one program."""

    def infer(params, observation, action):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, action)

    return jax.jit(infer)


def plain_inference(library: Any, params: Params, observation: Any, action: Any) -> tuple:
    """`both_inferences` of an MLP, by NumPy or PyTorch."""
    logits, embedding = plain_network.root(library, params, observation)
    return logits, *plain_network.step(library, params, embedding, action)


def make_inputs(config: Config, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random stones, and an action each."""
    environment, generator = algorithm_of(config).environment, np.random.default_rng(batch)
    observation = generator.random((batch, *environment.observation_shape)) < 0.3
    return observation, generator.integers(0, environment.num_actions, batch).astype(np.int32)


def network_times(machine: Machine, config: Config, batches: Sequence[int]) -> Times:
    """Seconds of one initial and one recurrent inference, by library and batch size."""
    model = algorithm_of(config).model
    return sweep(batches, partial(_candidates, machine, config, noisy_params(model), both_inferences(model)))


def _candidates(machine: Machine, config: Config, params: Params, infer: Callable, batch: int) -> dict[str, Candidate]:
    inputs = observation, action = make_inputs(config, batch)
    candidates = on_jax(machine, infer, params, *inputs)
    if machine.has_accelerator:  # from the host and back to it: what playing a move costs
        there = jax.device_put(params, machine.device)
        candidates[COPIES] = lambda: jax.device_get(infer(there, *inputs))
    count = devices.largest_divisor(jax.device_count(), batch)
    if count > 1:
        mesh = devices.make_mesh(count)
        everywhere, split = (NamedSharding(mesh, spec) for spec in (PartitionSpec(), PartitionSpec(devices.AXIS)))
        candidates[ALL_DEVICES] = partial(infer, jax.device_put(params, everywhere), *jax.device_put(inputs, split))
    if config.network.kind == "mlp":
        flat = observation.reshape(batch, -1).astype(np.float32)
        arrays = jax.tree.map(np.array, params)
        candidates |= elsewhere(machine, plain_inference, arrays, flat, action.astype(np.int64))
    return candidates


def network_section(configs: Mapping[str, Config], times: Mapping[str, Times]) -> Section:
    """The chapter on batch sizes, from `network_times` by network name."""
    text = (
        "Time of one call: one initial and one recurrent inference of the whole batch as one program, float32, inputs "
        "and parameters on the device. NumPy and PyTorch (eager) compute the MLP from the same parameters; a test "
        "holds NumPy to the same numbers. On all devices the batch is split over as many as divide it."
    )
    heads = {
        name: f"{name}: {c.env} {c.board_size}, {c.network.kind} {c.network.width}x{c.network.num_blocks}"
        for name, c in configs.items()
    }
    plots = [
        Plot(f"network-{name}", f"The {name} network", "batch", "positions/s", rates(times[name], float))
        for name in configs
    ]
    tables = [times_table(f"{head}; batch", times[name]) for name, head in heads.items()]
    return Section("The MuZero network by batch size", text, tables, plots)


def precision_section(machine: Machine, sizes: Sizes) -> Section:
    """The chapter on precision: a product of matrices, and networks at the batch of their kind."""
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters, and the sums of the matrix product, "
        "stay float32), and with nothing but the factors in a network's trunks in bfloat16, measured in turn on "
        f"{machine.device.device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    factors = np.random.default_rng(0).normal(size=(2, sizes.precision_matrix, sizes.precision_matrix))
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    inputs = {dtype: jax.device_put(jnp.asarray(factors, dtype), machine.device) for dtype in DTYPES}
    works: dict[str, Mapping[str, Callable]] = {}
    works[f"matrix product of n = {sizes.precision_matrix:,}"] = {
        d: partial(product, *pair) for d, pair in inputs.items()
    }
    for name, config in sizes.networks.items():
        batch = sizes.precision_batch[config.network.kind]
        works[f"{name} network at batch {batch:,}"] = _in_dtypes(machine, config, batch)
    rows = []
    for name, calls in works.items():
        exact, times = np.asarray(calls["float32"]()), samples(calls)
        for dtype, call in calls.items():
            error = np.abs(call() - exact).max() / np.abs(exact).max()
            faster = times["float32"].median / times[dtype].median
            rows.append((name, dtype, seconds(times[dtype]), f"{faster:.2f}x", f"{error:.1e}"))
    return Section("Precision", text, [table(("work", "dtype", "time", "speed against float32", "error"), rows)])


def _in_dtypes(machine: Machine, config: Config, batch: int) -> dict[str, Callable[[], jax.Array]]:
    """By dtype, calls that give the policy logits after both inferences."""
    inputs = jax.device_put((noisy_params(algorithm_of(config).model), *make_inputs(config, batch)), machine.device)

    def call(dtype):
        rounded = replace(config, network=replace(config.network, compute_dtype=dtype))
        infer = both_inferences(algorithm_of(rounded).model)
        return lambda: infer(*inputs)[1].policy_logits

    return {dtype: call(dtype) for dtype in (*DTYPES, bfloat16_products.COMPUTE_DTYPE)}


def crossover_section(machine: Machine, products: Times, networks: Mapping[str, Times]) -> Section:
    """The chapter on crossovers, from the tables of earlier chapters; measures nothing itself."""
    text = (
        "The size from which the second stays ahead of the first at all larger sizes measured, from the medians of the "
        "chapters before. The number between two sizes is interpolated on logarithmic axes; where the two times lie "
        "close together it moves by a factor of two from run to run."
    )
    pairs = [("NumPy", "JAX"), ("PyTorch", "JAX"), ("JAX", ALL_DEVICES)]  # cheap to start, fast when large
    if machine.has_accelerator:
        there = next(iter(machine.labels))
        pairs = [("JAX CPU", there), ("JAX CPU", COPIES), ("NumPy", COPIES), (there, ALL_DEVICES)]
    else:
        text = (
            "This machine has no accelerator, so there is no crossover between CPU and accelerator. Instead: where "
            "compiled JAX overtakes NumPy and PyTorch on the same cores, and where a batch split over all host devices "
            f"overtakes one. {text}"
        )
    tables = {"matrix product (n)": products} | {f"{name} network (batch)": times for name, times in networks.items()}
    rows = [
        (what, first, second, crossover(times[first], times[second]))
        for what, times in tables.items()
        for first, second in pairs
        if times.get(first, {}).keys() & times.get(second, {}).keys()
    ]
    return Section("Crossover", text, [table(("work", "first", "second", "crossover"), rows)])


# --- transfers, search, memory ----------------------------------------------------------------------------------------


_ADD_ONE = jax.jit(lambda x: x + 1)


def transfers_section(machine: Machine, sizes: Sequence[int]) -> Section:
    """The chapter on moving arrays of so many bytes between the host and the device, measured here."""

    def candidates(size) -> dict[str, Candidate]:
        values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
        on_device = jax.device_put(values, machine.device)
        return {
            "NumPy copy": Fresh(np.copy, values.copy),
            "device_put": Fresh(lambda fresh: jax.device_put(fresh, machine.device), values.copy),
            # JAX keeps the host's copy of an array once it was fetched, hence a new one each time.
            "device_get": Fresh(jax.device_get, lambda: _ADD_ONE(on_device)),
        }

    times, eight = sweep(sizes, candidates), jax.device_put(jnp.zeros(8), machine.device)
    empty = samples({"call": lambda: _ADD_ONE(eight)})["call"]
    shared = " Here they share one memory, and JAX may hand an array over without copying it."
    text = (
        "Float32 arrays between NumPy and the device, each call with an array that was not moved before, and for "
        f"comparison a copy within the host's memory.{'' if machine.has_accelerator else shared} An empty call (adding "
        f"1 to 8 numbers on the device) takes {seconds(empty)}: the price of starting any program."
    )
    plot = Plot("transfers", "Transfers", "bytes", "GB/s", rates(times, lambda size: size / 1e9))
    return Section("Transfers between host and device", text, [times_table("bytes", times)], [plot])


def search_section() -> Section:
    """The chapter on search: the short cases of the benchmark's suite, measured here."""
    text = (
        "Our search against mctx and against the network calls alone, of a batch of positions of tic-tac-toe on one "
        "device: searches a second and their ratios, each with half its interquartile range over the median. "
        "`scripts/benchmark.py --suite search` has larger ones."
    )
    found = [benchmark.table(suites.measure(case, timing.QUICK)) for case in suites.search(quick=True)]
    return Section("Search", text, found)


def memory_section(machine: Machine, config: Config) -> Section:
    """The chapter on memory, measured here; it comes last, so that the peaks are those of all chapters."""
    text = (
        "A frame is one move of Hex 5x5, as float32 arrays would keep it and as our replay buffer does. Peaks are of "
        "all chapters together. What a run holds it prints itself, before it begins."
    )
    sizes, stats = frame_bytes(config), devices.memory_stats(machine.device)
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
    algorithm = algorithm_of(config)
    environment, frames = algorithm.environment, config.replay.replay_length * config.self_play.num_envs
    leaves = jax.tree.leaves(make_init(algorithm, 0, devices.make_mesh(1)).eval_shape().replay.transitions)
    numbers = math.prod(environment.observation_shape) + 2 * environment.num_actions + 4  # mask and policy; the scalars
    ours = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves) / frames
    return {"float32 arrays": 4.0 * numbers, "ours": ours}
