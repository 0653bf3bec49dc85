"""Marks in a traced program, by which `run.flops` counts a convolution as its definition does.

A board's convolutions are computed in one of several ways (`convolution`), with a fifth to twice the FLOPs of their
definition. What computes them is traced in a scope that counts for nothing, and one named equation says what counts.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.ad_checkpoint import checkpoint_name

UNCOUNTED, EACH = "uncounted", "operations each: "
"""A scope whose products count for nothing; the name of an equation that counts, before a number."""

Convolution = Callable[[Array, Array], Array]
"""(inputs [N, H, W, C], kernel [kh, kw, C, D]) -> outputs [N, H, W, D]."""


def uncounted() -> Any:
    """A scope, for `with`: products that are traced in it count for nothing."""
    return jax.named_scope(UNCOUNTED)


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
    return checkpoint_name(results, f"{EACH}{2 * terms}")
