"""Matrix products, vector operations and transfers: the most that arithmetic and memory give to anybody."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.arithmetic.devices import format_bytes
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Compared, Section
from scripts.measuring.timing import Candidate, Fresh, Say, Times, samples, sweep
from scripts.measuring.words import seconds, three_digits
from scripts.report.sizes import Sizes


def product_flops(size: int) -> float:
    """Multiplications and additions of a product of two square matrices."""
    return 2.0 * size**3


class Operation(NamedTuple):
    """Something to do with two arrays x and y of float32 numbers, all of whose sides are n."""

    name: str
    function: Callable[[Any, Any, Any], Any]  # of NumPy, jax.numpy or torch, and their arrays
    dimensions: int
    work: Callable[[int], float]  # of n, in units of 1e9


PRODUCT = Operation("Matrix product", lambda library, x, y: x @ y, 2, lambda n: product_flops(n) / 1e9)
VECTORS = (
    Operation("2.5 x + y", lambda library, x, y: 2.5 * x + y, 1, lambda n: 12 * n / 1e9),
    Operation("exp(x)", lambda library, x, y: library.exp(x), 1, lambda n: 8 * n / 1e9),
    Operation("sum(x)", lambda library, x, y: library.sum(x), 1, lambda n: 4 * n / 1e9),
)


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


def operation_times(machine: Machine, operation: Operation, sizes: Sequence[int], plan: Sizes, say: Say) -> Times:
    """Seconds of one call by library and size."""

    def candidates(size):
        shape = (2, *[size] * operation.dimensions)
        x, y = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        jitted = on_jax(machine, partial(operation.function, jnp), x, y)
        return jitted | elsewhere(machine, operation.function, x, y)

    return sweep(sizes, candidates, work=operation.work, limits=plan.limits, say=say)


def matrix_section(times: Times) -> Section:
    """The chapter on the matrix product, from its `operation_times`."""
    text = (
        "GFLOP/s (2 n^3 operations) of the product of two n x n float32 matrices that lie on the device already, at "
        "each library's default precision (on NVIDIA GPUs that have it, that is TensorFloat-32 for JAX)."
    )
    compared = Compared("n x n", times, "at n =", "n", "GFLOP/s", PRODUCT.work, plot="matrix-product")
    return compared.section("Matrix product", text)


def vector_section(machine: Machine, plan: Sizes, say: Say) -> Section:
    """The chapter on vector operations, measured here."""
    text = (
        "GB/s on vectors of n float32 numbers: bytes that must be read and written (12 n for 2.5 x + y, 8 n for exp, 4 "
        "n for sum) over the time. NumPy makes an intermediate vector for 2.5 x, which is not counted; JAX fuses."
    )
    compared = []
    for operation in VECTORS:
        say(operation.name)
        times = operation_times(machine, operation, plan.vectors, plan, say)
        name = f"`{operation.name}`"
        compared.append(Compared(name, times, "at n =", f"{operation.name}, n", "GB/s", operation.work))
    first, *others = compared
    return first.section("Vector operations", text, *others)


COPY, TO_DEVICE, TO_HOST = "NumPy copy", "device_put", "device_get"
_ADD_ONE = jax.jit(lambda x: x + 1)


def transfers_section(machine: Machine, plan: Sizes, say: Say) -> Section:
    """The chapter on moving arrays between the host and the device, measured here."""
    times = sweep(plan.transfers, partial(_transfers, machine), work=float, limits=plan.limits, say=say)
    eight = jax.device_put(jnp.zeros(8), machine.device)
    empty = samples({"call": lambda: _ADD_ONE(eight)})["call"]
    shared = " Here they share one memory, and JAX may hand an array over without copying it."
    text = (
        "Float32 arrays between NumPy and the device, each call with an array that was not moved before, and for "
        f"comparison a copy within the host's memory.{'' if machine.has_accelerator else shared} An empty call (adding "
        f"1 to 8 numbers on the device) takes {seconds(empty)}: the price of starting any program."
    )
    largest = max(times[COPY])
    costs = [f"{name} {three_digits(row[largest].median * 1e3)} ms" for name, row in times.items() if largest in row]
    headlines = [f"Moving {format_bytes(largest)}: {', '.join(costs)}."]
    gigabytes, both = lambda size: size / 1e9, "time and rate"
    compared = Compared("Transfers", times, "at bytes", "size", "GB/s", gigabytes, both, "transfers", format_bytes)
    return compared.section("Transfers between host and device", text, headlines=headlines)


def _transfers(machine: Machine, size: int) -> dict[str, Candidate]:
    values = np.random.default_rng(0).normal(size=size // 4).astype(np.float32)
    on_device = jax.device_put(values, machine.device)
    return {
        COPY: Fresh(np.copy, values.copy),
        TO_DEVICE: Fresh(lambda fresh: jax.device_put(fresh, machine.device), values.copy),
        # JAX keeps the host's copy of an array once it was fetched, hence a new one each time.
        TO_HOST: Fresh(jax.device_get, lambda: _ADD_ONE(on_device)),
    }
