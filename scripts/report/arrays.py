"""Matrix products and transfers: the most that arithmetic and memory give to anybody."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scripts.measuring.machine import Machine
from scripts.measuring.report import Plot, Section, seconds, times_table
from scripts.measuring.timing import Candidate, Fresh, Times, samples, sweep


def product_flops(size: int) -> float:
    """Multiplications and additions of a product of two square matrices."""
    return 2.0 * size**3


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
        "precision (on NVIDIA GPUs that have it, that is TensorFloat-32 for JAX). The plot has 2 n^3 operations a call."
    )
    rates = {name: {n: s.rate(product_flops(n) / 1e9) for n, s in row.items()} for name, row in times.items()}
    plot = Plot("matrix-product", "Matrix product", "n", "GFLOP/s", rates)
    return Section("Matrix product", text, [times_table("n", times)], [plot])


COPY, TO_DEVICE, TO_HOST = "NumPy copy", "device_put", "device_get"
_ADD_ONE = jax.jit(lambda x: x + 1)


def transfers_section(machine: Machine, sizes: Sequence[int]) -> Section:
    """The chapter on moving arrays of so many bytes between the host and the device, measured here."""
    times = sweep(sizes, partial(_transfers, machine))
    eight = jax.device_put(jnp.zeros(8), machine.device)
    empty = samples({"call": lambda: _ADD_ONE(eight)})["call"]
    shared = " Here they share one memory, and JAX may hand an array over without copying it."
    text = (
        "Float32 arrays between NumPy and the device, each call with an array that was not moved before, and for "
        f"comparison a copy within the host's memory.{'' if machine.has_accelerator else shared} An empty call (adding "
        f"1 to 8 numbers on the device) takes {seconds(empty)}: the price of starting any program."
    )
    rates = {name: {size: s.rate(size / 1e9) for size, s in row.items()} for name, row in times.items()}
    plot = Plot("transfers", "Transfers", "bytes", "GB/s", rates)
    return Section("Transfers between host and device", text, [times_table("bytes", times)], [plot])


def _transfers(machine: Machine, size: int) -> dict[str, Candidate]:
    values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
    on_device = jax.device_put(values, machine.device)
    return {
        COPY: Fresh(np.copy, values.copy),
        TO_DEVICE: Fresh(lambda fresh: jax.device_put(fresh, machine.device), values.copy),
        # JAX keeps the host's copy of an array once it was fetched, hence a new one each time.
        TO_HOST: Fresh(jax.device_get, lambda: _ADD_ONE(on_device)),
    }
