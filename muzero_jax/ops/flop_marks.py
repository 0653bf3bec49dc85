"""Marks in a traced program, so that `run.flops` counts the FLOPs of a convolution's definition.

Board convolutions are computed in one of several ways (`convolution`), with a fifth to twice the FLOPs of their
definition. The computation is traced in a scope that is not counted, and one named equation states the FLOPs to count.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.ad_checkpoint import checkpoint_name

UNCOUNTED, EACH = "uncounted", "operations each: "
"""The name of a scope that is not counted; the prefix, before a number, of an equation's name that is counted."""

Convolution = Callable[[Array, Array], Array]
"""(inputs [N, H, W, C], kernel [kh, kw, C, D]) -> outputs [N, H, W, D]."""


def uncounted() -> Any:
    """A scope, for `with`, in which traced products are not counted."""
    return jax.named_scope(UNCOUNTED)


def by_definition(
    backward: Callable[[tuple[Array, Array], Array], tuple[Array, Array]],
) -> Callable[[Convolution], Convolution]:
    """Decorates a convolution with its gradient, and counts both by their definitions, however they are computed.

    Every output counts a product and a sum for each weight that contributes to it, and so does every entry of the
    gradients that are used.

    Args:
      backward: ((inputs, kernel), the outputs' cotangent) -> cotangents of inputs and kernel.
    """

    def decorate(forward: Convolution) -> Convolution:
        @jax.custom_vjp
        @functools.wraps(forward)
        def convolve(inputs: Array, kernel: Array) -> Array:
            with uncounted():
                outputs = forward(inputs, kernel)
            return counted(outputs, math.prod(kernel.shape[:3]))

        def pull_back(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
            height, width, _, features = residuals[1].shape
            cells = math.prod(cotangent.shape[:3])
            with uncounted():
                of_inputs, of_kernel = backward(residuals, cotangent)
            return counted(of_inputs, height * width * features), counted(of_kernel, cells)

        convolve.defvjp(lambda inputs, kernel: (convolve(inputs, kernel), (inputs, kernel)), pull_back)
        return convolve

    return decorate


def counted(results: Array, terms: int) -> Array:
    """The results, marked by an equation which states that each is a sum of `terms` products."""
    return checkpoint_name(results, f"{EACH}{2 * terms}")
