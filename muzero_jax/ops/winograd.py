"""3x3 convolutions of boards with fewer multiplications, and their gradients: Winograd's minimal filtering.

A board is cut into tiles of m x m' outputs. A tile is the inverse transform of the product of two transforms: that of
the (m + 2) x (m' + 2) inputs it needs, and that of the kernel (Lavin and Gray, 2016, arXiv 1509.09308, section 4). What
remains are matrix products over the channels, (m + 2) (m' + 2) instead of 9 m m', which are fast in loops on a CPU. XLA
moves the kernel's transform out of a search's loop.

The gradient is our own, because JAX's would keep the tiles (2-4x the inputs) of each iteration of a scan, and its
transposes of strided slices take 1.6-2x the time.
"""

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from muzero_jax.ops.flop_marks import by_definition

Matrix = Sequence[Sequence[float]]
_POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_LARGEST_TILE = 6


class Transforms(NamedTuple):
    """F(m, 3), of one axis: m outputs y_i = sum_j k_j x_{i+j} are `outputs` @ ((`kernel` @ k) * (`inputs` @ x))."""

    inputs: Matrix  # [m + 2, m + 2]
    kernel: Matrix  # [m + 2, 3]
    outputs: Matrix  # [m, m + 2]


@functools.cache
def transforms(tile: int) -> Transforms:
    """F(`tile`, 3) by Toom and Cook's method: products of polynomials at tile + 1 points and at infinity.

    All entries of `inputs` and `outputs` are exact in float32, because the points are powers of two.
    """
    points = np.array(_POINTS[: tile + 1])
    others = [np.delete(points, i) for i in range(len(points))]
    inputs = [[*np.poly(q)[::-1], 0.0] for q in others] + [np.poly(points)[::-1]]
    kernel = [p ** np.arange(3) / np.prod(p - q) for p, q in zip(points, others, strict=True)] + [np.eye(3)[2]]
    outputs = np.c_[np.vander(points, tile, increasing=True).T, np.eye(tile)[-1]]
    return Transforms(*([[float(x) for x in row] for row in matrix] for matrix in (inputs, kernel, outputs)))


def tile_side(length: int) -> int:
    """The fastest tile for an axis of `length` cells, by a formula that agrees with measurements on boards of 5 to 11.

    The matrix products cost m + 2 points a tile. The factor m + 10 stands for the transforms, whose sums get longer. So
    9 cells are three tiles of 3, but 7 are two of 4, and 5 are one of 5.
    """
    sides = range(2, _LARGEST_TILE + 1)
    return min(sides, key=lambda m: -(-length // m) * (m + 2) * (m + 10))


def _backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    """Both cotangents, by the transposes of the forward pass's linear stages; the output's is transformed once."""
    inputs, kernel = residuals
    product = _output_tiles(cotangent)
    flat_product = _flat(product)
    flat_tiles = _flat(_input_tiles(inputs))
    tiles_cotangent = jnp.einsum("qptd,qpcd->qptc", flat_product, _transform_kernel(kernel, inputs.shape))
    transformed_cotangent = jnp.einsum("qptc,qptd->qpcd", flat_tiles, flat_product)
    kernel_transform = _kernel_transform(inputs.shape, kernel.dtype)
    kernel_cotangent = jnp.einsum("qpij,qpcd->ijcd", kernel_transform, transformed_cotangent)
    return _overlapped_boards(tiles_cotangent.reshape(*product.shape[:5], -1), inputs.shape), kernel_cotangent


@by_definition(_backward)
def winograd(inputs: Float[Array, "N H W C"], kernel: Float[Array, "3 3 C D"]) -> Float[Array, "N H W D"]:
    """Correlates every board with the kernel, zeros around the board; relative error below 2e-5 in float32."""
    tiles = _input_tiles(inputs)
    product = jnp.einsum("qptc,qpcd->qptd", _flat(tiles), _transform_kernel(kernel, inputs.shape))
    return _boards(product.reshape(*tiles.shape[:5], -1), inputs.shape)


# Tiles are [q, p, N, H', W', C]: column and row within the tile, then the H' x W' tiles of every board. Boards are cut
# along their columns (axis 1) with the transforms of the height, then along their rows (now axis 3) with the width's.


def _both(shape: tuple[int, ...]) -> tuple[Transforms, Transforms]:
    """The transforms for boards of `shape` [N, H, W, ...]: down the columns, and along the rows."""
    return transforms(tile_side(shape[1])), transforms(tile_side(shape[2]))


def _transpose(matrix: Matrix) -> Matrix:
    return list(zip(*matrix, strict=True))


def _combine(matrix: Matrix, parts: Sequence[Array], axis: int = 0) -> Array:
    """`matrix` times the vector of `parts`, stacked along `axis`. Additions fuse; a product with 5 rows would not."""
    rows = [[scale * part for scale, part in zip(row, parts, strict=True) if scale] for row in matrix]
    return jnp.stack([functools.reduce(operator.add, row) for row in rows], axis)


def _flat(tiles: Array) -> Array:
    return tiles.reshape(*tiles.shape[:2], -1, tiles.shape[-1])


def _transform_kernel(kernel: Array, shape: tuple[int, ...]) -> Array:
    """The transformed kernel for tiles of boards of `shape`: [q, p, C, D].

    As one matrix product, an update takes 0.98 of the time of two passes of sums, because every use transforms again.
    """
    return jnp.einsum("qpij,ijcd->qpcd", _kernel_transform(shape, kernel.dtype), kernel)


def _kernel_transform(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Both axes' transforms of the kernel as one linear map, [q, p, 3, 3]."""
    columns, rows = _both(shape)
    return np.einsum("qj,pi->qpij", rows.kernel, columns.kernel).astype(dtype)


def _pad_to_tiles(boards: Array, border: int) -> Array:
    """Pads height and width up to a multiple of their tile, and then by `border` all around."""
    sides = [(border, border + -length % tile_side(length)) for length in boards.shape[1:3]]
    return jnp.pad(boards, ((0, 0), *sides, (0, 0)))


def _views(boards: Array, axis: int, size: int, tile: int) -> list[Array]:
    """The i-th element of every tile of `size` along `axis`, for each i; neighbours overlap by size - tile."""
    count = (boards.shape[axis] - size) // tile + 1
    return [lax.slice_in_dim(boards, i, i + (count - 1) * tile + 1, tile, axis) for i in range(size)]


def _input_tiles(inputs: Array) -> Array:
    columns, rows = _both(inputs.shape)
    height, width = len(columns.outputs), len(rows.outputs)
    by_column = _combine(columns.inputs, _views(_pad_to_tiles(inputs, 1), 1, height + 2, height))
    return _combine(rows.inputs, _views(by_column, 3, width + 2, width))


def _output_tiles(cotangent: Array) -> Array:
    """The transpose of `_boards`."""
    columns, rows = _both(cotangent.shape)
    height, width = len(columns.outputs), len(rows.outputs)
    by_column = _combine(_transpose(columns.outputs), _views(_pad_to_tiles(cotangent, 0), 1, height, height))
    return _combine(_transpose(rows.outputs), _views(by_column, 3, width, width))


def _boards(tiles: Array, shape: tuple[int, ...]) -> Array:
    """Tiles of products -> boards [N, H, W, D] of `shape`'s sides."""
    columns, rows = _both(shape)
    by_row = _combine(rows.outputs, list(tiles), 4)
    # If W' and m' were joined before this, XLA would write `by_row` twice (1.1 times the time of self-play).
    both = _combine(columns.outputs, list(by_row), 2)
    _, down, height, across, width, _ = both.shape
    return both.reshape(shape[0], down * height, across * width, -1)[:, : shape[1], : shape[2]]


def _overlapped_boards(tiles: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of `_input_tiles`: where tiles overlap, their elements add up."""
    columns, rows = _both(shape)
    by_column = _overlap_add(_combine(_transpose(rows.inputs), list(tiles)), 3, shape[2])
    return _overlap_add(_combine(_transpose(columns.inputs), list(by_column)), 1, shape[1])


def _overlap_add(elements: Array, axis: int, length: int) -> Array:
    """Joins tiles along `axis`, adding where they overlap, and cuts off the border; `elements[i]` has the i-th of each.

    Element m + i of a tile of m outputs falls on element i of the next tile, so it is shifted by one tile. A single
    tile has no next one, so its elements are the cells (this saves 3% of an update's time on Connect Four's 6x7).
    """

    def shift(part: Array, before: int) -> Array:
        return jnp.pad(part, [(before, 1 - before) if i == axis else (0, 0) for i in range(part.ndim)])

    tile = len(elements) - 2
    if elements[0].shape[axis] == 1:
        return jnp.concatenate(elements[1 : 1 + length], axis)
    parts = [shift(element, 0) for element in elements[:tile]]
    for i, element in enumerate(elements[tile:]):
        parts[i] += shift(element, 1)
    joined = jnp.stack(parts, axis + 1).reshape(*parts[0].shape[:axis], -1, *parts[0].shape[axis + 1 :])
    return lax.slice_in_dim(joined, 1, 1 + length, axis=axis)
