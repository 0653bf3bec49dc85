"""3x3 convolutions of boards as products of bfloat16 matrices, summed in float32, and their gradients.

They are for CPUs with units for such products (AMX), which take a sixth of float32's time. Moving numbers then takes
nearly all the time, so few are moved. Every cell's three neighbours in its row become one row of a matrix, which is
multiplied with each row of the kernel; the three products, each shifted by a line of the board, are added up. im2col
would copy nine neighbours (1.9 times the time). Winograd's transforms have ten times the error in bfloat16.

XLA's CPU backend (jaxlib 0.10) converts bfloat16 to float32 and back even when it only moves it. Moving 32-bit words of
two channels instead takes 0.6 of the time of a call (16 boards of 9x9 and 64 channels, one Intel core).
"""

import functools
import operator

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import BFloat16, Float

from muzero_jax.ops.bfloat16_products import product, transposed
from muzero_jax.ops.flop_marks import by_definition


def _backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    """Both cotangents, from one set of windows of the output's cotangent.

    The inputs' cotangent is a correlation with the kernel turned by 180 degrees and its channels swapped. The kernel's
    at [i, j] is the sum of inputs[r + i - 1, w + j - 1] * cotangent[r, w]; with v = w + j - 1, the first factor is row
    i of `_lines` at [r, v], and the second is neighbour 2 - j of the window at [r, v].
    """
    inputs, kernel = residuals
    channels, features = kernel.shape[2:]
    windows = _windows(cotangent)
    inputs_cotangent = _correlate(windows, jnp.flip(kernel, (0, 1)).swapaxes(2, 3)).astype(inputs.dtype)
    products = product(_lines(inputs), windows.reshape(-1, 3 * features)).reshape(3, channels, 3, features)
    return inputs_cotangent, jnp.flip(products.swapaxes(1, 2), 1).astype(kernel.dtype)


@by_definition(_backward)
def row_windows(inputs: Float[Array, "N H W C"], kernel: Float[Array, "3 3 C D"]) -> Float[Array, "N H W D"]:
    """Correlates every board with the kernel, zeros around the board. C and D must be even.

    Inputs, kernel and, in the backward pass, the cotangent are rounded to bfloat16; sums are in float32. The result has
    the dtype of `inputs`. Reverse-mode differentiable.
    """
    return _correlate(_windows(inputs), kernel).astype(inputs.dtype)


def _windows(boards: Float[Array, "N H W C"]) -> BFloat16[Array, "N H+2 W 3*C"]:
    """Every cell's three neighbours in its row, including lines of zeros above and below the board."""
    width = boards.shape[2]
    padded = jnp.pad(_words(boards), ((0, 0), (1, 1), (1, 1), (0, 0)))
    return _channels(jnp.concatenate([padded[:, :, j : j + width] for j in range(3)], axis=-1))


def _correlate(
    windows: BFloat16[Array, "N lines W window"], kernel: Float[Array, "3 3 C D"]
) -> Float[Array, "N H W D"]:
    """The sum, over the kernel's three rows, of its product with the windows of the line above, same and below."""
    height = windows.shape[1] - 2
    rows = kernel.astype(jnp.bfloat16).reshape(3, windows.shape[-1], -1)
    convolved = [product(windows.reshape(-1, windows.shape[-1]), row).reshape(*windows.shape[:3], -1) for row in rows]
    return functools.reduce(operator.add, [lines[:, i : i + height] for i, lines in enumerate(convolved)])


def _lines(inputs: Float[Array, "N H W C"]) -> BFloat16[Array, "3*C N*(H+2)*W"]:
    """The transposed inputs for each row i of the kernel: line r + i - 1, or zeros, where `_windows` has line r."""
    num_boards, height, width, channels = inputs.shape
    cells = _words(inputs).reshape(num_boards, height * width, -1)
    padded = _channels(jnp.pad(cells, ((0, 0), (2 * width, 2 * width), (0, 0)))).reshape(-1, channels)
    # Round once, before copying, and move integers from then on.
    bits = lax.optimization_barrier(lax.bitcast_convert_type(transposed(padded), jnp.uint16))
    bits = bits.reshape(channels, num_boards, -1)
    lines = jnp.stack([bits[:, :, i * width : (i + height + 2) * width] for i in range(3)])
    return lax.bitcast_convert_type(lines, jnp.bfloat16).reshape(3 * channels, -1)


def _words(values: Float[Array, "*n C"]) -> Array:
    """Pairs of neighbouring channels, rounded to bfloat16, as 32-bit words: [*n, C / 2]."""
    pairs = values.astype(jnp.bfloat16).reshape(*values.shape[:-1], -1, 2)
    return lax.bitcast_convert_type(pairs, jnp.uint32)


def _channels(words: Array) -> BFloat16[Array, "*n C"]:
    """The inverse of `_words`."""
    return lax.bitcast_convert_type(words, jnp.bfloat16).reshape(*words.shape[:-1], -1)
