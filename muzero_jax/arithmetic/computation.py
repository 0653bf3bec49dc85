"""How many floating point operations a program's matrix products and convolutions take, counted in what JAX traced.

That is what a run costs, on any hardware. A board's convolutions are computed in one of several ways (`convolution`),
with a fifth to twice the FLOPs of their definition; all count as that (`by_definition`). Everything else (norms,
nonlinearities, games, trees) counts for nothing: it is small, and its cost is not in arithmetic.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.extend.core
from jax import Array
from jax.ad_checkpoint import checkpoint_name

_UNCOUNTED, _EACH = "uncounted", "operations each: "
"""A scope whose products count for nothing; the name of an equation that counts, before a number."""

Convolution = Callable[[Array, Array], Array]
"""(inputs [N, H, W, C], kernel [kh, kw, C, D]) -> outputs [N, H, W, D]."""


class Flops(NamedTuple):
    """Operations of one run of a program, a product and its sum being two."""

    always: float = 0.0
    at_times: float = 0.0
    """The branches that `lax.cond` may leave out: branches beside one that multiplies nothing"""

    def times(self, count: float | int) -> "Flops":
        """The cost of so many runs."""
        return Flops(count * self.always, count * self.at_times)


def count(jaxpr: Any, second_share: float = 1.0) -> Flops:
    """Operations of a traced program on all its devices.

    A loop whose length is not known when it is traced counts once.

    Args:
      jaxpr: a `Jaxpr` or `ClosedJaxpr`.
      second_share: how often a cond takes its second branch, where both branches multiply.
    """
    always = at_times = 0.0
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    operands = [*jaxpr.outvars, *(operand for equation in jaxpr.eqns for operand in equation.invars)]
    used = {operand for operand in operands if isinstance(operand, jax.extend.core.Var)}
    for equation in jaxpr.eqns:
        found = _equation(equation, used, second_share)
        always, at_times = always + found.always, at_times + found.at_times
    return Flops(always, at_times)


def uncounted() -> Any:
    """A scope, for `with`: products that are traced in it count for nothing."""
    return jax.named_scope(_UNCOUNTED)


def by_definition(
    backward: Callable[[tuple[Array, Array], Array], tuple[Array, Array]],
) -> Callable[[Convolution], Convolution]:
    """Decorates a convolution, giving it its gradient; it counts as the definition does, however it is computed.

    Every output takes a product and a sum for each weight that leads to it, and so does every number of the gradients
    that are used.

    Args:
      backward: ((inputs, kernel), the outputs' cotangent) -> cotangents of inputs and kernel.
    """

    def decorate(forward: Convolution) -> Convolution:
        @jax.custom_vjp
        @functools.wraps(forward)
        def convolve(inputs: Array, kernel: Array) -> Array:
            with uncounted():
                outputs = forward(inputs, kernel)
            return _counted(outputs, math.prod(kernel.shape[:3]))

        def pull_back(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
            (height, width, _, features), cells = residuals[1].shape, math.prod(cotangent.shape[:3])
            with uncounted():
                of_inputs, of_kernel = backward(residuals, cotangent)
            return _counted(of_inputs, height * width * features), _counted(of_kernel, cells)

        convolve.defvjp(lambda inputs, kernel: (convolve(inputs, kernel), (inputs, kernel)), pull_back)
        return convolve

    return decorate


def _counted(results: Array, terms: int) -> Array:
    """The results, an equation of the program saying that each is a sum of so many products."""
    return checkpoint_name(results, f"{_EACH}{2 * terms}")


def _equation(equation: Any, used: set[Any], second_share: float) -> Flops:
    if _UNCOUNTED in str(equation.source_info.name_stack):
        return Flops()
    if equation.primitive.name == "name" and equation.params["name"].startswith(_EACH):
        (results,) = equation.outvars
        return Flops(float(equation.params["name"].removeprefix(_EACH)) * results.aval.size * (results in used))
    if equation.primitive.name == "dot_general":
        return Flops(_dot_general(equation))
    if equation.primitive.name == "conv_general_dilated":
        return Flops(_convolution(equation))
    inner = [count(jaxpr, second_share) for jaxpr in _inner(equation)]
    if equation.primitive.name == "cond":
        return _cond(inner, second_share)
    always, at_times = (sum(found[i] for found in inner) for i in (0, 1))
    return Flops(always, at_times).times(_repeats(equation))


def _repeats(equation: Any) -> int:
    """How often an equation runs its inner programs: a scan's steps, and the devices that share a `shard_map`."""
    if equation.primitive.name == "scan":
        return equation.params["length"]
    return equation.params["mesh"].size if equation.primitive.name == "shard_map" else 1


def _cond(branches: list[Flops], second_share: float) -> Flops:
    sums = [sum(branch) for branch in branches]
    if not min(sums):
        return Flops(0.0, max(sums))
    first, *_, second = sums
    return Flops((1 - second_share) * first + second_share * second)


def _dot_general(equation: Any) -> float:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return 2.0 * math.prod(equation.outvars[0].aval.shape) * math.prod(left[axis] for axis in contracted)


def _convolution(equation: Any) -> float:
    """Every output number is a sum over the kernel's window and its input channels."""
    kernel, output = equation.invars[1].aval.shape, equation.outvars[0].aval.shape
    channels_out = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2.0 * math.prod(output) * math.prod(kernel) / channels_out


def _inner(equation: Any) -> Iterator[Any]:
    """The programs that an equation runs."""
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr):
                yield part
