"""The board convolution equals its definition and `lax.conv`'s gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.convolution import _native, convolve


def reference(inputs, kernel):
    """The definition, in loops over the kernel's cells and the board's cells."""
    _, height, width, _ = inputs.shape
    kh, kw, _, _ = kernel.shape
    outputs = np.zeros((*inputs.shape[:3], kernel.shape[3]), np.float64)
    for row, column, i, j in np.ndindex(height, width, kh, kw):
        y, x = row + i - kh // 2, column + j - kw // 2
        if 0 <= y < height and 0 <= x < width:
            outputs[:, row, column] += inputs[:, y, x].astype(np.float64) @ kernel[i, j].astype(np.float64)
    return outputs


def arrays(seed, *shapes):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("board", [(2, 2), (3, 3), (5, 5), (6, 7), (9, 9)])
@pytest.mark.parametrize("side", [1, 3, 5])
def test_convolve_equals_its_definition(board, side):
    inputs, kernel = arrays(0, (2, *board, 3), (side, side, 3, 4))
    np.testing.assert_allclose(convolve(inputs, kernel), reference(inputs, kernel), rtol=1e-4, atol=1e-4)


def test_gradients_equal_those_of_the_native_convolution():
    inputs, kernel, cotangent = arrays(1, (2, 5, 4, 3), (3, 3, 3, 2), (2, 5, 4, 2))
    ours = jax.vjp(convolve, jnp.asarray(inputs), jnp.asarray(kernel))[1](jnp.asarray(cotangent))
    theirs = jax.vjp(_native, jnp.asarray(inputs), jnp.asarray(kernel))[1](jnp.asarray(cotangent))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
