"""The MuZero network, initial and recurrent inference: by batch size, by dtype, and from where on what is ahead."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax.arithmetic import bfloat16_products, computation, devices
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, Params
from scripts.benchmarks import plain_network
from scripts.benchmarks.workloads import noisy_params, parts_of
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Compared, Section, Table
from scripts.measuring.timing import Candidate, Sample, Say, Times, in_time, samples, sweep
from scripts.measuring.words import NOTHING, crossover, three_digits
from scripts.report.arrays import elsewhere, on_jax, product_flops
from scripts.report.sizes import Sizes

ALL_DEVICES, COPIES = "JAX, all devices", "JAX with copies"


def describe(config: Config) -> str:
    """The game and its network."""
    network = config.network
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    return f"{config.env}{size}, {network.kind} {network.width}x{network.num_blocks}"


def inference(config: Config) -> Callable[[Params, Any, Any], Any]:
    """`both_inferences` of the config's model."""
    return both_inferences(parts_of(config).model)


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
    environment, generator = parts_of(config).environment, np.random.default_rng(batch)
    observation = generator.random((batch, *environment.observation_shape)) < 0.3
    return observation, generator.integers(0, environment.num_actions, batch).astype(np.int32)


def flops(config: Config) -> tuple[float, float]:
    """Operations of one initial and of one recurrent inference, as a run counts its own.

    What Winograd's formulation saves is not subtracted, so that a faster formulation shows as more GFLOP/s.
    """
    model, (observation, action) = parts_of(config).model, make_inputs(config, 1)
    params = jax.eval_shape(model.init, jax.random.key(0))
    initial = computation.count(jax.make_jaxpr(model.initial_inference)(params, observation)).always
    both = computation.count(jax.make_jaxpr(both_inferences(model))(params, observation, action)).always
    return initial, both - initial


def network_times(machine: Machine, plan: Sizes, config: Config, say: Say) -> Times:
    """Seconds of one initial and one recurrent inference, by library and batch size."""
    candidates = partial(_candidates, machine, config, noisy_params(parts_of(config).model), inference(config))
    return sweep(plan.batches, candidates, work=float, limits=plan.limits, say=say)


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


def network_section(plan: Sizes, times: Mapping[str, Times], num_devices: int) -> Section:
    """The chapter on batch sizes, from `network_times` by network name, on a machine with so many devices."""
    text = (
        "Time of one call: one initial and one recurrent inference of the whole batch as one program, float32, inputs "
        "and parameters on the device. NumPy and PyTorch (eager) compute the MLP from the same parameters; a test "
        "holds NumPy to the same numbers."
    )
    if num_devices > 1:
        text += f" On all devices the batch is split over as many of the {num_devices} as divide it."
    compared = []
    for name, config in plan.networks.items():
        head = f"{name}: {describe(config)}, {three_digits(sum(flops(config)) / 1e6)} MFLOP; batch"
        unit, plot = "positions/s", f"network-{name}"
        compared.append(Compared(f"{name} network", times[name], "at batch", head, unit, float, "time", plot))
    first, *others = compared
    return first.section("The MuZero network by batch size", text, *others)


DTYPES = ("float32", "bfloat16", "float16")


class InDtypes(NamedTuple):
    """One work in every dtype."""

    name: str
    flops: float  # of one call
    times: Mapping[str, Sample]  # by dtype
    errors: Mapping[str, float]  # largest difference from the float32 result over the largest number of that


def precision_works(machine: Machine, plan: Sizes, say: Say) -> list[InDtypes]:
    """Measures a matrix product, which comes first, and every network of the plan in each dtype, in turn."""
    n = plan.precision_matrix
    factors = np.random.default_rng(0).normal(size=(2, n, n))
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    inputs = {dtype: jax.device_put(jnp.asarray(factors, dtype), machine.device) for dtype in DTYPES}
    calls = {dtype: partial(product, *pair) for dtype, pair in inputs.items()}
    works = [_in_dtypes(f"matrix product of n = {n:,}", product_flops(n), calls, say)]
    for name, config in in_time(plan.networks.items(), plan.limits, say):
        batch = plan.precision_batches[config.network.kind]
        inputs = jax.device_put((noisy_params(parts_of(config).model), *make_inputs(config, batch)), machine.device)
        calls = {}
        for dtype in (*DTYPES, bfloat16_products.COMPUTE_DTYPE):
            rounded = replace(config, network=replace(config.network, compute_dtype=dtype))
            calls[dtype] = partial(inference(rounded), *inputs)
        works.append(_in_dtypes(f"{name} network at batch {batch:,}", batch * sum(flops(config)), calls, say))
    return works


def _in_dtypes(name: str, flops: float, calls: Mapping[str, Callable], say: Say) -> InDtypes:
    say(name)
    results = {dtype: call() for dtype, call in calls.items()}
    if isinstance(results["float32"], tuple):  # outputs of both inferences
        results = {dtype: outputs[1].policy_logits for dtype, outputs in results.items()}
    exact = np.asarray(results["float32"])
    errors = {dtype: float(np.abs(found - exact).max() / np.abs(exact).max()) for dtype, found in results.items()}
    return InDtypes(name, flops, samples(calls), errors)


def precision_section(machine: Machine, works: list[InDtypes]) -> Section:
    """The chapter on precision, from `precision_works`."""
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters, and the sums of the matrix product, "
        "stay float32), and with nothing but the factors in a network's trunks in bfloat16, measured in turn on "
        f"{machine.device.device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    dtypes = dict.fromkeys(dtype for work in works for dtype in work.times)
    times = {dtype: {work.name: work.times[dtype] for work in works if dtype in work.times} for dtype in dtypes}
    errors = [[w.name, *(f"{w.errors[d]:.1e}" if d in w.errors else NOTHING for d in dtypes)] for w in works]
    gigaflops = {work.name: work.flops / 1e9 for work in works}
    compared = Compared(
        "Precision", times, "for", "work", "GFLOP/s", gigaflops.__getitem__, "time and rate", size_name=str
    )
    section = compared.section("Precision", text)
    return section._replace(tables=[*section.tables, Table(("error", *dtypes), errors)])


def crossover_section(machine: Machine, matrices: Times, networks: Mapping[str, Times]) -> Section:
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
    tables = {"matrix product (n)": matrices} | {f"{name} network (batch)": times for name, times in networks.items()}
    rows = [
        (what, first, second, crossover(times[first], times[second]))
        for what, times in tables.items()
        for first, second in pairs
        if times.get(first, {}).keys() & times.get(second, {}).keys()
    ]
    found: dict[tuple[str, str], list[str]] = {}
    for what, first, second, cell in rows:
        found.setdefault((first, second), []).append(f"{what} {cell}")
    headlines = [f"{second} overtakes {first}: {'; '.join(works)}." for (first, second), works in found.items()]
    return Section("Crossover", text, [Table(("work", "first", "second", "crossover"), rows)], headlines=headlines)
