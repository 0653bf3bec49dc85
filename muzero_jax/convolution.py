"""The board convolution: one function, fast on CPU inside loops and under gradients, native on accelerators.

XLA's CPU backend runs the gradient of `lax.conv` inside `scan` and `while_loop` 14-30x slower than matrix products of
the same size, so on CPU the convolution is matrix products, and so is its gradient: Winograd's F(3x3, 3x3) (Lavin and
Gray, 2016, arXiv 1509.09308, section 4) for wide 3x3 kernels, im2col for the others. Which it is for is asked at trace
time: `lax.platform_dependent` compiles to the same program, but traces both branches (1.5x the time) and keeps the
residuals of both under a gradient (13% more memory). A CPU beside an accelerator is asked for by `jax.default_device`.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

TILE = 3
"""Side of the square of outputs that one Winograd tile yields; it reads a square of side TILE + 2."""

# Winograd's matrices for the points 0, 1, -1, 2 and infinity: y = OUTPUT @ ((KERNEL @ k) * (INPUT @ x)).
_INPUT = ((2, -1, -2, 1, 0), (0, -2, -1, 1, 0), (0, 2, -3, 1, 0), (0, -1, 0, 1, 0), (0, 2, -1, -2, 1))
_KERNEL = ((1 / 2, 0, 0), (-1 / 2, -1 / 2, -1 / 2), (-1 / 6, 1 / 6, -1 / 6), (1 / 6, 1 / 3, 2 / 3), (0, 0, 1))
_OUTPUT = ((1, 1, 1, 1, 0), (0, 1, -1, 2, 0), (0, 1, 1, 4, 1))
_INPUT_T, _KERNEL_T, _OUTPUT_T = (tuple(zip(*matrix, strict=True)) for matrix in (_INPUT, _KERNEL, _OUTPUT))


def convolve(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw _ D"]) -> Float[Array, "N H W D"]:
    """Correlates every board with `kernel`: stride 1, zeros around the board, same height and width.

    Sums are taken in float32 or wider; the result has the dtype of `inputs`. Reverse-mode differentiable. Raises
    ValueError for a kernel with an even side, or with another number of input channels than `inputs`.
    """
    height, width, channels, _ = kernel.shape
    if height % 2 == 0 or width % 2 == 0:
        raise ValueError(f"A board convolution needs a kernel with odd sides, not {height}x{width}: use 1, 3 or 5.")
    if channels != inputs.shape[-1]:
        raise ValueError(
            f"The kernel reads {channels} channels but the inputs have {inputs.shape[-1]}: make them equal."
        )
    if target_platform() != "cpu":
        return native(inputs, kernel.astype(inputs.dtype))
    dtype = jnp.promote_types(inputs.dtype, jnp.float32)
    return cpu_formulation(kernel.shape)(inputs.astype(dtype), kernel.astype(dtype)).astype(inputs.dtype)


def target_platform() -> str:
    """The kind of device that programs are traced for: that of `jax.default_device` if it is set, else the best."""
    device = jax.config.jax_default_device  # type: ignore  # part of the key of every cached trace
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


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
    height, width, channels, features = kernel_shape
    if (height, width) == (1, 1):
        return lambda inputs, kernel: inputs @ kernel[0, 0]
    if (height, width) == (3, 3) and min(channels, features) >= 32:
        return winograd
    return im2col


def native(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N H W D"]:
    """XLA's own convolution."""
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(inputs, kernel, (1, 1), "SAME", dimension_numbers=dimensions)


# The gradients below are written out: JAX's own would keep the patches or tiles (3-9x the inputs) for each iteration of
# a scan, and its transposes of strided slices take 1.6-2x the time.


@jax.custom_vjp
def im2col(inputs: Float[Array, "N H W C"], kernel: Float[Array, "kh kw C D"]) -> Float[Array, "N H W D"]:
    """One matrix product of every cell's neighbourhood with the kernel."""
    return _patches(inputs, kernel.shape) @ kernel.reshape(-1, kernel.shape[-1])


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


im2col.defvjp(lambda inputs, kernel: (im2col(inputs, kernel), (inputs, kernel)), _im2col_backward)


@jax.custom_vjp
def winograd(inputs: Float[Array, "N H W C"], kernel: Float[Array, "3 3 C D"]) -> Float[Array, "N H W D"]:
    """25 matrix products over tiles, for 81 of the definition; relative error 4e-6 in float32."""
    return winograd_transformed(inputs, transform_kernel(kernel))


def transform_kernel(kernel: Float[Array, "3 3 C D"]) -> Float[Array, "5 5 C D"]:
    """The kernel as `winograd_transformed` multiplies by it; once per search is enough. Axes: column, row, C, D."""
    rows = _combine(_KERNEL, list(kernel))
    return _combine(_KERNEL, list(rows.swapaxes(0, 1)))


def winograd_transformed(
    inputs: Float[Array, "N H W C"], transformed: Float[Array, "5 5 C D"]
) -> Float[Array, "N H W D"]:
    """`winograd` with a kernel from `transform_kernel`. Gradients: through `winograd`, those of this one are slow."""
    tiles = _input_tiles(inputs)
    product = jnp.einsum("qptc,qpcd->qptd", _flat(tiles), transformed)
    return _boards(product.reshape(*tiles.shape[:5], -1), inputs.shape)


def _winograd_backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    """Both cotangents from one transform of the output's: every linear stage of the forward pass, transposed."""
    inputs, kernel = residuals
    product = _output_tiles(cotangent)
    flat_product, flat_tiles = _flat(product), _flat(_input_tiles(inputs))
    tiles_cotangent = jnp.einsum("qptd,qpcd->qptc", flat_product, transform_kernel(kernel))
    transformed_cotangent = jnp.einsum("qptc,qptd->qpcd", flat_tiles, flat_product)
    rows = _combine(_KERNEL_T, list(transformed_cotangent)).swapaxes(0, 1)
    kernel_cotangent = _combine(_KERNEL_T, list(rows))
    return _overlapped_boards(tiles_cotangent.reshape(*product.shape[:5], -1), inputs.shape), kernel_cotangent


winograd.defvjp(lambda inputs, kernel: (winograd(inputs, kernel), (inputs, kernel)), _winograd_backward)

# Tiles are [5, 5, N, H', W', C]: column and row within the tile, then the H' x W' tiles of every board.


def _combine(matrix: Sequence[Sequence[int | float]], parts: Sequence[Array], axis: int = 0) -> Array:
    """`matrix` times the vector of `parts`, stacked along `axis`. Additions fuse; a product with 5 rows would not."""
    rows = [[scale * part for scale, part in zip(row, parts, strict=True) if scale] for row in matrix]
    return jnp.stack([functools.reduce(operator.add, row) for row in rows], axis)


def _flat(tiles: Array) -> Array:
    return tiles.reshape(*tiles.shape[:2], -1, tiles.shape[-1])


def _pad_to_tiles(boards: Array, border: int) -> Array:
    """Pads both sides up to a multiple of TILE, and then by `border` all around."""
    sides = [(border, border + -side % TILE) for side in boards.shape[1:3]]
    return jnp.pad(boards, ((0, 0), *sides, (0, 0)))


def _views(boards: Array, axis: int, size: int) -> list[Array]:
    """The i-th element of every tile of `size` along `axis`, for each i; neighbours overlap by size - TILE."""
    count = (boards.shape[axis] - size) // TILE + 1
    return [lax.slice_in_dim(boards, i, i + (count - 1) * TILE + 1, TILE, axis) for i in range(size)]


def _input_tiles(inputs: Array) -> Array:
    rows = _combine(_INPUT, _views(_pad_to_tiles(inputs, 1), 1, TILE + 2))
    return _combine(_INPUT, _views(rows, 3, TILE + 2))


def _output_tiles(cotangent: Array) -> Array:
    """The transpose of `_boards`."""
    rows = _combine(_OUTPUT_T, _views(_pad_to_tiles(cotangent, 0), 1, TILE))
    return _combine(_OUTPUT_T, _views(rows, 3, TILE))


def _boards(tiles: Array, shape: tuple[int, ...]) -> Array:
    """Tiles of products -> boards [N, H, W, D] of `shape`'s sides."""
    _, _, boards, height, width, channels = tiles.shape
    rows = _combine(_OUTPUT, list(tiles), 4).reshape(TILE + 2, boards, height, TILE * width, channels)
    both = _combine(_OUTPUT, list(rows), 2).reshape(boards, TILE * height, TILE * width, channels)
    return both[:, : shape[1], : shape[2]]


def _overlapped_boards(tiles: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of `_input_tiles`: where tiles overlap, their elements add up."""
    rows = _overlap_add(_combine(_INPUT_T, list(tiles)), 3, shape[2])
    return _overlap_add(_combine(_INPUT_T, list(rows)), 1, shape[1])


def _overlap_add(elements: Array, axis: int, size: int) -> Array:
    """Lays tiles side by side along `axis` of each of the `elements` and cuts off the border.

    Element TILE + i of a tile falls on element i of the next one, so these are shifted by one tile.
    """

    def shift(part: Array, before: int) -> Array:
        return jnp.pad(part, [(before, 1 - before) if i == axis else (0, 0) for i in range(part.ndim)])

    parts = [shift(element, 0) for element in elements[:TILE]]
    for i, element in enumerate(elements[TILE:]):
        parts[i] += shift(element, 1)
    joined = jnp.stack(parts, axis + 1).reshape(*parts[0].shape[:axis], -1, *parts[0].shape[axis + 1 :])
    return lax.slice_in_dim(joined, 1, 1 + size, axis=axis)
