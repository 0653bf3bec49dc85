"""The board convolution: one function, fast on CPU inside loops and under gradients, native on accelerators.

XLA's CPU backend runs the gradient of `lax.conv` inside `scan` and `while_loop` 14-24x slower than a matrix product
of the same size, so there the convolution is written as matrix products with a gradient of matrix products.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float


def convolve(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N H W D"]:
    """Correlates every board with `kernel`: stride 1, zeros around the board, same height and width.

    Sums are taken in float32; the result has the dtype of `inputs`. Raises ValueError for a kernel with an even side
    or with another number of input channels than `inputs`.
    """
    height, width, channels, _ = kernel.shape
    if height % 2 == 0 or width % 2 == 0:
        raise ValueError(f"A board convolution needs a kernel with odd sides, not {height}x{width}: use 1, 3 or 5.")
    if channels != inputs.shape[-1]:
        raise ValueError(f"The kernel takes {channels} channels but the inputs have {inputs.shape[-1]}: make them equal.")
    kernel = kernel.astype(inputs.dtype)
    if jax.default_backend() != "cpu":
        return _native(inputs, kernel)
    return _matrix_product(inputs, kernel)


def _native(inputs: Array, kernel: Array) -> Array:
    """XLA's own convolution."""
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(inputs, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


def _patches(inputs: Array, height: int, width: int) -> Array:
    """The neighbourhood of every cell, row by row: [N, H, W, height * width * C]."""
    _, rows, columns, _ = inputs.shape
    padded = jnp.pad(inputs, ((0, 0), (height // 2,) * 2, (width // 2,) * 2, (0, 0)))
    shifts = [padded[:, i : i + rows, j : j + columns] for i in range(height) for j in range(width)]
    return jnp.concatenate(shifts, axis=-1)


def _im2col(inputs: Array, kernel: Array) -> Array:
    height, width, channels, features = kernel.shape
    matrix = kernel.reshape(height * width * channels, features)
    product = jnp.matmul(_patches(inputs, height, width), matrix, preferred_element_type=jnp.float32)
    return product.astype(inputs.dtype)


@jax.custom_vjp
def _matrix_product(inputs: Array, kernel: Array) -> Array:
    return _im2col(inputs, kernel)


def _forward(inputs: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _im2col(inputs, kernel), (inputs, kernel)


def _backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    inputs, kernel = residuals
    inputs_cotangent = _im2col(cotangent, jnp.flip(kernel, (0, 1)).swapaxes(2, 3))
    cells = math.prod(inputs.shape[:3])
    patches = _patches(inputs, *kernel.shape[:2]).reshape(cells, -1)
    product = jnp.matmul(patches.T, cotangent.reshape(cells, -1), preferred_element_type=jnp.float32)
    return inputs_cotangent, product.reshape(kernel.shape).astype(kernel.dtype)


_matrix_product.defvjp(_forward, _backward)
