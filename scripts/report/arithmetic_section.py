"""Matrix products and vector operations: the most that this machine's arithmetic and memory give to anybody."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scripts.report.crossover import compare, describe_comparison, describe_winners
from scripts.report.formatting import by_size, spread
from scripts.report.machine import Device, Machine, torch_device
from scripts.report.plan import Plan
from scripts.report.records import LinePlot, Section
from scripts.report.timing import Candidate, On, Times, rates, sweep

Say = Callable[[str], None]
PRODUCT = jax.jit(jnp.matmul)


def product_flops(size: int) -> float:
    """Multiplications and additions of a product of two square matrices."""
    return 2.0 * size**3


def labels(machine: Machine) -> dict[str, Device]:
    """JAX's devices to compare, by the name that the tables use."""
    if machine.accelerator is None:
        return {"JAX": machine.host}
    return {f"JAX {machine.accelerator.platform.upper()}": machine.accelerator, "JAX CPU": machine.host}


def matrix_times(machine: Machine, plan: Plan, say: Say) -> Times:
    """Seconds of one float32 product by library and size."""
    return sweep(
        plan.matrix_sizes,
        partial(_products, machine),
        work=product_flops,
        limits=plan.limits,
        say=say,
    )


def _products(machine: Machine, size: int) -> dict[str, Candidate]:
    x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
    candidates = on_jax(machine, PRODUCT, x, y)
    candidates["NumPy"] = partial(np.matmul, x, y)
    if machine.torch:
        candidates["PyTorch"] = on_torch(machine, machine.torch.matmul, x, y)
    return candidates


def on_jax(machine: Machine, function: Callable, *arguments: Any) -> dict[str, Candidate]:
    """`function` of the arguments on each of JAX's devices, where they lie already, by the name that the tables use."""
    return {
        label: On(device, partial(function, *jax.device_put(arguments, device)))
        for label, device in labels(machine).items()
    }


def on_torch(machine: Machine, function: Callable, *arrays: np.ndarray) -> Candidate:
    """`function` of the arrays on PyTorch's device, waited for."""
    torch, device = machine.torch, torch_device(machine)
    inputs = [torch.from_numpy(array).to(device) for array in arrays]

    def call():
        with torch.no_grad():
            result = function(*inputs)
        if device == "cuda":
            torch.cuda.synchronize()
        return result

    return call


def matrix_section(times: Times) -> Section:
    """Chapter from `matrix_times`."""
    speed = rates(times, lambda size: product_flops(size) / 1e9)
    return Section(
        "Matrix product",
        "GFLOP/s (2 n^3 operations) of the product of two n x n float32 matrices that lie on the device already, at "
        "each library's default precision (on NVIDIA GPUs that have it, that is TensorFloat-32 for JAX).",
        [by_size("n", speed, spread)],
        [LinePlot("matrix-product", "Product of two n x n matrices, float32", "n", "GFLOP/s", speed)],
        against_all(times, "at n ="),
        [f"Matrix product, {describe_winners(times, 'at n =')}"],
    )


def against_all(times: Times, what: str) -> list[str]:
    """The first row of the table against each of the others, in words."""
    first, *others = times
    return [describe_comparison(first, other, what, compare(times[first], times[other])) for other in others]


class VectorOperation(NamedTuple):
    """An operation on vectors x and y of n float32 numbers."""

    name: str
    numpy: Callable
    jax: Callable
    torch_name: str | None  # of the function of one vector; None: 2.5 x + y
    bytes_per_element: int  # read and written, if nothing intermediate is


def _scale_add(x, y):
    return 2.5 * x + y


OPERATIONS = (
    VectorOperation("2.5 x + y", _scale_add, jax.jit(_scale_add), None, 12),
    VectorOperation("exp(x)", lambda x, y: np.exp(x), jax.jit(lambda x, y: jnp.exp(x)), "exp", 8),
    VectorOperation("sum(x)", lambda x, y: np.sum(x), jax.jit(lambda x, y: jnp.sum(x)), "sum", 4),
)


def vector_section(machine: Machine, plan: Plan, say: Say) -> Section:
    """Measures the operations and tells them."""
    tables, findings, headlines = [], [], []
    for operation in OPERATIONS:
        say(operation.name)
        times = sweep(
            plan.vector_sizes,
            partial(_vectors, machine, operation),
            work=float,
            limits=plan.limits,
            say=say,
        )
        gigabytes = rates(times, lambda size, o=operation: size * o.bytes_per_element / 1e9)
        tables.append(by_size(f"{operation.name}, n", gigabytes, spread))
        findings += [f"`{operation.name}`: {finding}" for finding in against_all(times, "at n =")]
        headlines.append(f"`{operation.name}`, {describe_winners(times, 'at n =')}")
    text = (
        "GB/s on vectors of n float32 numbers: bytes that must be read and written (12 n for 2.5 x + y, 8 n for exp, 4 "
        "n for sum) over the time. NumPy makes an intermediate vector for 2.5 x, which is not counted; JAX fuses."
    )
    return Section("Vector operations", text, tables, (), findings, headlines)


def _vectors(machine: Machine, operation: VectorOperation, size: int) -> Mapping[str, Candidate]:
    x, y = np.random.default_rng(0).normal(size=(2, size)).astype(np.float32)
    candidates = on_jax(machine, operation.jax, x, y)
    candidates["NumPy"] = partial(operation.numpy, x, y)
    if machine.torch and operation.torch_name:
        candidates["PyTorch"] = on_torch(machine, getattr(machine.torch, operation.torch_name), x)
    elif machine.torch:
        candidates["PyTorch"] = on_torch(machine, _scale_add, x, y)
    return candidates
