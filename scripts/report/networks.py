"""The MuZero network, initial and recurrent inference: by batch size, by dtype, and from where on what is ahead."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax import algorithm as algorithms
from muzero_jax.ops import bfloat16_products, devices
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, Params
from scripts.benchmarks import plain_network
from scripts.benchmarks.workloads import noisy_params
from scripts.measuring.machine import Machine
from scripts.measuring.report import Plot, Section, crossover, seconds, table, times_table
from scripts.measuring.timing import Candidate, Times, samples, sweep
from scripts.report.arrays import elsewhere, on_jax

ALL_DEVICES, COPIES = "JAX, all devices", "JAX with copies"


def describe(config: Config) -> str:
    """The game and its network."""
    network = config.network
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    return f"{config.env}{size}, {network.kind} {network.width}x{network.num_blocks}"


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
    environment, generator = algorithms.make(config).environment, np.random.default_rng(batch)
    observation = generator.random((batch, *environment.observation_shape)) < 0.3
    return observation, generator.integers(0, environment.num_actions, batch).astype(np.int32)


def network_times(machine: Machine, config: Config, batches: Sequence[int]) -> Times:
    """Seconds of one initial and one recurrent inference, by library and batch size."""
    model = algorithms.make(config).model
    return sweep(batches, partial(_candidates, machine, config, noisy_params(model), both_inferences(model)))


def _candidates(machine: Machine, config: Config, params: Params, infer: Callable, batch: int) -> dict[str, Candidate]:
    inputs = observation, action = make_inputs(config, batch)
    candidates = on_jax(machine, infer, params, *inputs)
    if machine.has_accelerator:  # from the host and back to it: what playing a move costs
        there = jax.device_put(params, machine.device)
        candidates[COPIES] = lambda: jax.device_get(infer(there, *inputs))
    count = devices.largest_divisor(len(machine.devices), batch)
    if count > 1:
        mesh = devices.make_mesh(count)
        everywhere, split = (NamedSharding(mesh, spec) for spec in (PartitionSpec(), PartitionSpec(devices.AXIS)))
        candidates[ALL_DEVICES] = partial(infer, jax.device_put(params, everywhere), *jax.device_put(inputs, split))
    if config.network.kind == "mlp":
        flat = observation.reshape(batch, -1).astype(np.float32)
        arrays = jax.tree.map(np.array, params)
        candidates |= elsewhere(machine, plain_inference, arrays, flat, action.astype(np.int64))
    return candidates


def network_section(configs: Mapping[str, Config], times: Mapping[str, Times], num_devices: int) -> Section:
    """The chapter on batch sizes, from `network_times` by network name, on a machine with so many devices."""
    text = (
        "Time of one call: one initial and one recurrent inference of the whole batch as one program, float32, inputs "
        "and parameters on the device. NumPy and PyTorch (eager) compute the MLP from the same parameters; a test "
        "holds NumPy to the same numbers."
    )
    if num_devices > 1:
        text += f" On all devices the batch is split over as many of the {num_devices} as divide it."
    tables = [times_table(f"{name}: {describe(config)}; batch", times[name]) for name, config in configs.items()]
    plots = [
        Plot(f"network-{name}", f"The {name} network", "batch", "positions/s", rates)
        for name in configs
        for rates in [{label: {n: s.rate(n) for n, s in row.items()} for label, row in times[name].items()}]
    ]
    return Section("The MuZero network by batch size", text, tables, plots)


DTYPES = ("float32", "bfloat16", "float16")


def precision_section(
    machine: Machine, matrix: int, configs: Mapping[str, Config], batch: Mapping[str, int]
) -> Section:
    """The chapter on precision: a product of matrices of that size, and networks at the batch of their kind."""
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters, and the sums of the matrix product, "
        "stay float32), and with nothing but the factors in a network's trunks in bfloat16, measured in turn on "
        f"{machine.device.device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    factors = np.random.default_rng(0).normal(size=(2, matrix, matrix))
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    inputs = {dtype: jax.device_put(jnp.asarray(factors, dtype), machine.device) for dtype in DTYPES}
    works: dict[str, Mapping[str, Callable]] = {}
    works[f"matrix product of n = {matrix:,}"] = {dtype: partial(product, *pair) for dtype, pair in inputs.items()}
    for name, config in configs.items():
        size = batch[config.network.kind]
        works[f"{name} network at batch {size:,}"] = _in_dtypes(machine, config, size)
    rows = [row for name, calls in works.items() for row in _precision_rows(name, calls)]
    return Section("Precision", text, [table(("work", "dtype", "time", "speed against float32", "error"), rows)])


def _in_dtypes(machine: Machine, config: Config, batch: int) -> dict[str, Callable[[], jax.Array]]:
    """By dtype, calls that give the policy logits after both inferences."""
    inputs = jax.device_put((noisy_params(algorithms.make(config).model), *make_inputs(config, batch)), machine.device)

    def call(dtype):
        rounded = replace(config, network=replace(config.network, compute_dtype=dtype))
        infer = both_inferences(algorithms.make(rounded).model)
        return lambda: infer(*inputs)[1].policy_logits

    return {dtype: call(dtype) for dtype in (*DTYPES, bfloat16_products.COMPUTE_DTYPE)}


def _precision_rows(name: str, calls: Mapping[str, Callable[[], jax.Array]]) -> list[list[str]]:
    exact, times = np.asarray(calls["float32"]()), samples(calls)
    errors = {dtype: np.abs(call() - exact).max() / np.abs(exact).max() for dtype, call in calls.items()}
    faster = {dtype: times["float32"].median / sample.median for dtype, sample in times.items()}
    return [[name, dtype, seconds(times[dtype]), f"{faster[dtype]:.2f}x", f"{errors[dtype]:.1e}"] for dtype in calls]


def crossover_section(machine: Machine, products: Times, networks: Mapping[str, Times]) -> Section:
    """The chapter on crossovers, from the tables of earlier chapters; measures nothing itself."""
    text = (
        "The size from which the second stays ahead of the first at all larger sizes measured, from the medians of the "
        "chapters before. The number between two sizes is interpolated on logarithmic axes; where the two times lie "
        "close together it moves by a factor of two from run to run."
    )
    pairs = [("NumPy", "JAX"), ("PyTorch", "JAX"), ("JAX", ALL_DEVICES)]  # cheap to start, fast when large
    if machine.has_accelerator:
        there = machine.label
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
