"""Counts the FLOPs of a program's matrix products and convolutions in its JAX trace.

They are a measure of a run's cost that does not depend on the hardware. A board's convolution counts by its definition,
however it is computed (`ops.flop_marks`). Norms, nonlinearities, games and trees are not counted, because they are
small and their cost is not arithmetic.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.extend.core

from muzero_jax.ops.flop_marks import EACH, UNCOUNTED


class Flops(NamedTuple):
    """FLOPs of one run of a program; a multiplication and an addition are two."""

    always: float = 0.0
    at_times: float = 0.0
    """those of branches that `lax.cond` may skip, because another branch has none"""

    def times(self, count: float | int) -> "Flops":
        """The FLOPs of `count` runs."""
        return Flops(count * self.always, count * self.at_times)


def count(jaxpr: Any, second_share: float = 1.0) -> Flops:
    """FLOPs of a traced program on all its devices. A loop of unknown length counts once.

    Args:
      jaxpr: a `Jaxpr` or `ClosedJaxpr`.
      second_share: how often a cond takes its second branch, if both branches have FLOPs.
    """
    always = at_times = 0.0
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    operands = [*jaxpr.outvars, *(operand for equation in jaxpr.eqns for operand in equation.invars)]
    used = {operand for operand in operands if isinstance(operand, jax.extend.core.Var)}
    for equation in jaxpr.eqns:
        found = _equation(equation, used, second_share)
        always, at_times = always + found.always, at_times + found.at_times
    return Flops(always, at_times)


def _equation(equation: Any, used: set[Any], second_share: float) -> Flops:
    if UNCOUNTED in str(equation.source_info.name_stack):
        return Flops()
    if equation.primitive.name == "name" and equation.params["name"].startswith(EACH):
        (results,) = equation.outvars
        return Flops(float(equation.params["name"].removeprefix(EACH)) * results.aval.size * (results in used))
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
    """How often an equation runs its inner programs: a scan's length, or the number of devices of a `shard_map`."""
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
    kernel = equation.invars[1].aval.shape
    output = equation.outvars[0].aval.shape
    channels_out = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2.0 * math.prod(output) * math.prod(kernel) / channels_out


def _inner(equation: Any) -> Iterator[Any]:
    """The inner programs of an equation."""
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr):
                yield part
