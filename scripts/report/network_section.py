"""The MuZero network, initial and recurrent inference, at growing batch sizes: JAX on each device, NumPy, PyTorch."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax.arithmetic import devices
from muzero_jax.games.environment import make_environment
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.types import Model, Params
from scripts.benchmarks.workloads import noisy_params
from scripts.report.arithmetic_section import Say, against_all, on_jax, on_torch
from scripts.report.crossover import describe_winners
from scripts.report.formatting import by_size, devices_for, seconds, three_digits
from scripts.report.machine import Device, Machine
from scripts.report.plain_network import initial_then_recurrent
from scripts.report.plan import Network, Plan
from scripts.report.records import LinePlot, Section, Table
from scripts.report.timing import Candidate, On, Times, sweep

Inference = Callable[[Params, Any, Any], Any]


def build(network: Network, compute_dtype: str = "float32") -> Model:
    """The model through the library's own constructor."""
    return make_model(
        make_environment("hex", board_size=network.board_size),
        Support(-1.0, 1.0, 2),
        kind=network.kind,
        width=network.width,
        num_blocks=network.num_blocks,
        activation="relu",
        compute_dtype=compute_dtype,
    )


def make_inference(model: Model) -> Inference:
    """(params, observation, action) -> both outputs, as one program."""

    def infer(params, observation, action):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, action)

    return jax.jit(infer)


def make_inputs(network: Network, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Random stones, and an action each."""
    environment = make_environment("hex", board_size=network.board_size)
    generator = np.random.default_rng(batch)
    observation = generator.random((batch, *environment.observation_shape)) < 0.3
    return observation, generator.integers(0, environment.num_actions, batch).astype(np.int32)


def inference_flops(params: Params, board_size: int) -> tuple[float, float]:
    """Operations of one initial and of one recurrent inference by direct count: two for each weight and use.

    A convolution uses each weight once a cell. What Winograd's formulation saves is not subtracted, so that a faster
    formulation shows as more GFLOP/s. Biases, normalisation and activations are left out.
    """

    def count(name: str) -> float:
        kernels = [leaf for leaf in jax.tree.leaves(params.get(name, {})) if leaf.ndim in (2, 4)]
        return sum(2.0 * math.prod(k.shape) * (board_size**2 if k.ndim == 4 else 1) for k in kernels)

    shared = count("prediction") + count("prediction_heads")
    return count("stem") + count("representation") + shared, count("dynamics") + count("reward_head") + shared


def network_times(machine: Machine, plan: Plan, network: Network, say: Say) -> Times:
    """Seconds of one initial and one recurrent inference, by library and batch size."""
    model = build(network)
    params = noisy_params(model)
    infer = make_inference(model)
    return sweep(
        network.batches,
        partial(_candidates, machine, network, params, infer),
        work=float,
        limits=plan.limits,
        say=say,
    )


ALL_DEVICES = "JAX, all devices"
COPIES = "JAX with copies"


def _candidates(
    machine: Machine, network: Network, params: Params, infer: Inference, batch: int
) -> Mapping[str, Candidate]:
    inputs = make_inputs(network, batch)
    candidates = on_jax(machine, infer, params, *inputs)
    if machine.accelerator is not None:
        candidates[COPIES] = _with_copies(machine.accelerator, infer, params, inputs)
    count = devices.largest_divisor(len(machine.devices), batch)
    if count > 1:
        candidates[ALL_DEVICES] = _split(machine, count, infer, params, inputs)
    if network.kind == "mlp":
        candidates |= _plain(machine, params, inputs)
    return candidates


def _split(machine: Machine, count: int, infer: Inference, params: Params, inputs: tuple) -> Candidate:
    mesh = devices.make_mesh(count)
    split = NamedSharding(mesh, PartitionSpec(devices.AXIS))
    arguments = jax.device_put(params, NamedSharding(mesh, PartitionSpec())), *jax.device_put(inputs, split)
    return On(machine.device, partial(infer, *arguments))


def _with_copies(device: Device, infer: Inference, params: Params, inputs: tuple) -> Candidate:
    """From arrays of the host to arrays of the host: what playing a move costs."""
    params = jax.device_put(params, device)
    return On(device, lambda: jax.device_get(infer(params, *inputs)))


def _plain(machine: Machine, params: Params, inputs: tuple[np.ndarray, np.ndarray]) -> dict[str, Candidate]:
    observation = inputs[0].reshape(len(inputs[0]), -1).astype(np.float32)
    action = inputs[1].astype(np.int64)
    arrays = jax.tree.map(np.array, params)
    candidates: dict[str, Candidate] = {
        "NumPy": partial(initial_then_recurrent, np, arrays, observation, action),
    }
    if machine.torch:
        leaves, tree = jax.tree.flatten(arrays)

        def call(observation, action, *leaves):
            return initial_then_recurrent(machine.torch, jax.tree.unflatten(tree, leaves), observation, action)

        candidates["PyTorch"] = on_torch(machine, call, observation, action, *leaves)
    return candidates


def network_section(plan: Plan, times: Mapping[str, Times], num_devices: int) -> Section:
    """Chapter from `network_times` by network name, on a machine with so many devices."""
    tables: list[Table] = []
    plots, findings, headlines = [], [], []
    for network in plan.networks:
        title = f"{network.name}: {describe(network)}"
        tables.append(by_size(f"{title}; batch", times[network.name], seconds))
        name = f"network-{network.name}"
        lines = {label: {b: _per_position(s, b) for b, s in row.items()} for label, row in times[network.name].items()}
        plots.append(
            LinePlot(
                name,
                f"The {network.name} network ({network.kind}, {network.width} wide)",
                "batch size",
                "microseconds a position",
                lines,
            )
        )
        findings += [f"{network.name} network, {line}" for line in against_all(times[network.name], "at batch")]
        headlines.append(f"{network.name} network, {describe_winners(times[network.name], 'at batch')}")
    text = (
        "Time of one call: one initial and one recurrent inference of the whole batch as one program, float32, inputs "
        "and parameters on the device. NumPy and PyTorch (eager) compute the MLP from the same parameters; a test "
        "holds NumPy to the same numbers."
    )
    if num_devices > 1:
        shared = devices_for((batch for network in plan.networks for batch in network.batches), num_devices)
        text += f" On all devices the batch is split over as many as divide it: {shared}."
    return Section("The MuZero network by batch size", text, tables, plots, findings, headlines)


def _per_position(sample, batch: int):
    return type(sample)(*(value * 1e6 / batch for value in sample))


def describe(network: Network) -> str:
    """Its kind, size and cost."""
    model = build(network)
    flops = sum(inference_flops(jax.eval_shape(model.init, jax.random.key(0)), network.board_size))
    unit = "channels" if network.kind == "tower" else "units"
    blocks = f"{network.num_blocks} block{'s' if network.num_blocks > 1 else ''}"
    size = f"{network.board_size}x{network.board_size}"
    return f"{network.kind} for Hex {size}, {network.width} {unit}, {blocks}, {three_digits(flops / 1e6)} MFLOP"
