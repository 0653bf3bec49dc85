"""The board convolution: one function, fast on CPU inside loops and under gradients, native on accelerators.

XLA's CPU backend runs the gradient of `lax.conv` inside `scan` and `while_loop` 14-30x slower than matrix products of
the same size. So on CPU the convolution is matrix products, and so is its gradient: Winograd's minimal filtering
(`winograd`) for wide 3x3 kernels, products of bfloat16 (`row_windows`) on request, im2col for the others. The device is
read at trace time: `lax.platform_dependent` compiles to the same program, but traces both branches (1.5x the time) and
keeps the residuals of both under a gradient (13% more memory). `jax.default_device` chooses a CPU next to a GPU.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Bool, Float

from muzero_jax.ops.devices import target_device
from muzero_jax.ops.flop_marks import by_definition, counted, uncounted
from muzero_jax.ops.row_windows import row_windows
from muzero_jax.ops.winograd import winograd


def convolve(
    inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw _ D"], product_dtype: DTypeLike | None = None
) -> Float[Array, "N H W D"]:
    """Correlates every board with `kernel`: stride 1, zeros around the board, same height and width.

    Sums are taken in float32 or wider; the result has the dtype of `inputs`. Reverse-mode differentiable. The
    kernel's sides are odd.

    Args:
      product_dtype: the dtype to which inputs and kernel are rounded before the product; None: no rounding. A CPU uses
        it only if it is bfloat16 and the kernel 3x3 with even numbers of channels, at least 32.
    """
    height, width, channels, features = kernel.shape
    assert height % 2 == width % 2 == 1 and channels == inputs.shape[-1]
    if target_device().platform != "cpu":
        factor_dtype = product_dtype or inputs.dtype
        return native(inputs.astype(factor_dtype), kernel.astype(factor_dtype)).astype(inputs.dtype)
    if product_dtype == jnp.bfloat16 and _is_wide(kernel.shape) and not (channels % 2 or features % 2):
        return row_windows(inputs, kernel)
    dtype = jnp.promote_types(inputs.dtype, jnp.float32)
    return cpu_formulation(kernel.shape)(inputs.astype(dtype), kernel.astype(dtype)).astype(inputs.dtype)


def cpu_formulation(kernel_shape: tuple[int, ...]) -> Callable[[Array, Array], Array]:
    """The fastest formulation on CPU for a kernel [kh, kw, C, D], by measurement.

    | kernel              | choice   | reason (two shared Zen 3 cores, float32, ms a call inside a scan, best of 15) |
    | ------------------- | -------- | ----------------------------------------------------------------------------- |
    | 1x1                 | product  | it is a matrix product                                                        |
    | 3x3, C and D >= 32  | winograd | 256x9x9x64: 3.0 forward, 14 with gradient; im2col 12, 29; native 7.6, not run |
    |                     |          | 128x6x7x64: 1.3 and 2.9; im2col 1.7, 4.9; native 2.0, not run                 |
    |                     |          | 64x9x9x32: 0.6 and 1.8; im2col 0.8, 2.9; native 0.5, 77                       |
    | 3x3 of less, others | im2col   | at 16 channels as fast as Winograd, and it compiles in half the time          |
    """
    if kernel_shape[:2] == (1, 1):
        return lambda inputs, kernel: inputs @ kernel[0, 0]
    return winograd if _is_wide(kernel_shape) else im2col


def _is_wide(kernel_shape: tuple[int, ...]) -> bool:
    return kernel_shape[:2] == (3, 3) and min(kernel_shape[2:]) >= 32


def as_matrix(kernel: Float[Array, "kh kw C D"], shape: tuple[int, ...]) -> Float[Array, "HWC HWD"]:
    """The matrix by which a flattened board [H, W, C] is multiplied to be convolved.

    Each of its numbers is one of the kernel's or 0, so it is exact in any dtype, and so is its gradient but for sums.
    """
    height, width, channels, features = kernel.shape
    taps = jnp.asarray(_taps((height, width), shape), kernel.dtype)
    spread = jnp.einsum("hwab,hwcd->acbd", taps, kernel, precision="highest")
    return spread.reshape(math.prod(shape) * channels, math.prod(shape) * features)


def _taps(size: tuple[int, ...], shape: tuple[int, ...]) -> Bool[np.ndarray, "kh kw HW HW"]:
    """Whether kernel[i, j] leads from one cell of the board to another."""
    row, column = np.indices(shape).reshape(2, -1)
    down, right = (cells[:, None] - cells for cells in (row, column))
    steps = [np.arange(length) - length // 2 for length in size]
    return (down == steps[0][:, None, None, None]) & (right == steps[1][:, None, None])


def _beside_matrix(kernel: Array, shape: tuple[int, ...]) -> Array:
    matrix = as_matrix(kernel, shape)
    joined = jnp.concatenate([jnp.eye(len(matrix), dtype=matrix.dtype), matrix], axis=1)
    return jnp.pad(joined, ((0, 0), (0, -joined.shape[1] % 8)))


@jax.custom_vjp
def beside_convolved(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N columns"]:
    """The inputs and the convolved inputs side by side, flattened, then zeros up to a multiple of 8 columns.

    One product with the identity beside the convolution's matrix: for small boards on accelerators, because it has
    H W / 9 times a convolution's FLOPs, but needs no cuDNN and copies nothing. Its counted FLOPs are the convolution's.
    """
    flat = counted(inputs.reshape(inputs.shape[0], -1), kernel.size // kernel.shape[2])
    with uncounted():
        return flat @ _beside_matrix(kernel, inputs.shape[1:3])


def _beside_backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    inputs, kernel = residuals
    shape = inputs.shape[1:3]
    cells = math.prod(inputs.shape[:3])
    with uncounted():
        matrix, pull_back = jax.vjp(lambda kernel: _beside_matrix(kernel, shape), kernel.astype(jnp.float32))
        flat = inputs.reshape(inputs.shape[0], -1)
        of_inputs = (cotangent @ matrix.astype(cotangent.dtype).T).reshape(inputs.shape)
        (of_kernel,) = pull_back(jnp.einsum("nx,ny->xy", flat, cotangent, preferred_element_type=jnp.float32))
    return of_inputs, counted(of_kernel, cells).astype(kernel.dtype)


beside_convolved.defvjp(lambda *operands: (beside_convolved(*operands), operands), _beside_backward)


def native(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N H W D"]:
    """XLA's own convolution."""
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(inputs, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


# The gradient is our own, because JAX's would keep the patches (9x the inputs) of each iteration of a scan.


def _patches(inputs: Array, kernel_shape: tuple[int, ...]) -> Array:
    """The neighbourhood of every cell, row by row: [N, H, W, kh * kw * C]."""
    _, rows, columns, _ = inputs.shape
    height, width = kernel_shape[:2]
    padded = jnp.pad(inputs, ((0, 0), (height // 2,) * 2, (width // 2,) * 2, (0, 0)))
    shifts = [padded[:, i : i + rows, j : j + columns] for i in range(height) for j in range(width)]
    return jnp.concatenate(shifts, axis=-1)


def _im2col_backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    """The inputs' cotangent is a convolution with the kernel turned by 180 degrees and its channels swapped."""
    inputs, kernel = residuals
    inputs_cotangent = im2col(cotangent, jnp.flip(kernel, (0, 1)).swapaxes(2, 3))
    cells = math.prod(inputs.shape[:3])
    patches = _patches(inputs, kernel.shape).reshape(cells, -1)
    return inputs_cotangent, (patches.T @ cotangent.reshape(cells, -1)).reshape(kernel.shape)


@by_definition(_im2col_backward)
def im2col(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N H W D"]:
    """One matrix product of every cell's neighbourhood with the kernel."""
    return _patches(inputs, kernel.shape) @ kernel.reshape(-1, kernel.shape[-1])
