"""The board convolution equals its definition, whatever the formulation, and stays fast inside loops."""

import math
import re
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from muzero_jax.ops import bfloat16_products
from muzero_jax.ops.convolution import beside_convolved, convolve, im2col, native
from muzero_jax.ops.devices import has_amx
from muzero_jax.ops.row_windows import row_windows
from muzero_jax.ops.winograd import tile_side, winograd


def definition(inputs, kernel):
    """The definition, in loops over the board's cells and the kernel's cells, in float64."""
    _, height, width, _ = inputs.shape
    kernel_height, kernel_width, _, features = kernel.shape
    outputs = np.zeros((*inputs.shape[:3], features))
    for row, column, i, j in np.ndindex(height, width, kernel_height, kernel_width):
        y, x = row + i - kernel_height // 2, column + j - kernel_width // 2
        if 0 <= y < height and 0 <= x < width:
            outputs[:, row, column] += inputs[:, y, x].astype(np.float64) @ kernel[i, j].astype(np.float64)
    return outputs


def arrays(*shapes):
    generator = np.random.default_rng(0)
    return jax.device_put([np.float32(generator.normal(size=shape)) for shape in shapes])


def assert_close(one, other, tolerance=1e-4):
    """Equal within `tolerance` of the largest element."""
    scale = np.abs(np.asarray(other, np.float64)).max()
    np.testing.assert_allclose(
        np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=0, atol=tolerance * scale
    )


@pytest.mark.parametrize("board", [(2, 3), (6, 7)])
@pytest.mark.parametrize("formulation", [native, im2col])
def test_every_formulation_equals_the_definition(formulation, board):
    """Winograd's is tested below, with every tile."""
    inputs, kernel = arrays((2, *board, 3), (3, 3, 3, 4))
    assert_close(jax.jit(formulation)(inputs, kernel), definition(np.asarray(inputs), np.asarray(kernel)))


@pytest.mark.parametrize(
    ("board", "kernel_shape"),
    [((2, 2), (1, 1, 3, 2)), ((6, 7), (1, 3, 3, 2)), ((2, 2), (5, 5, 3, 2)), ((6, 7), (3, 3, 32, 33))],
)
def test_outputs_and_gradients_of_every_odd_kernel_equal_those_of_the_native_convolution(board, kernel_shape):
    *_, channels, features = kernel_shape
    inputs, kernel, cotangent = arrays((2, *board, channels), kernel_shape, (2, *board, features))
    ours, theirs = (jax.jit(partial(with_cotangents, by, cotangent))(inputs, kernel) for by in (convolve, native))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize(("board", "size"), [((2, 3), (3, 3)), ((5, 5), (3, 3)), ((3, 4), (1, 5))])
def test_inputs_and_convolved_inputs_in_one_product(board, size):
    """The same numbers and gradients as from the definition; the columns behind them are 0."""
    inputs, kernel, cotangent = arrays((4, *board, 4), (*size, 4, 3), (4, *board, 3))
    columns, num_inputs = math.prod(board) * 7, math.prod(board) * 4

    def convolved(inputs, kernel):
        return beside_convolved(inputs, kernel)[:, num_inputs:columns].reshape(4, *board, 3)

    seen = jax.jit(beside_convolved)(inputs, kernel)
    np.testing.assert_array_equal(seen[:, :num_inputs], inputs.reshape(4, -1))
    assert seen.shape[1] % 8 == 0 and not seen[:, columns:].any()
    ours, theirs = (jax.jit(partial(with_cotangents, by, cotangent))(inputs, kernel) for by in (convolved, native))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, tolerance=1e-6)


def test_vmap_over_kernels_convolves_each_with_its_own():
    inputs, kernels = arrays((2, 3, 3, 32), (2, 3, 3, 32, 32))

    def gradients(formulation):
        return jax.vmap(jax.grad(lambda kernel: jnp.sum(formulation(inputs, kernel) ** 2)))

    one, other = jax.jit(lambda kernels: (gradients(convolve)(kernels), gradients(native)(kernels)))(kernels)
    assert_close(one, other)


@pytest.mark.parametrize("channels", [3, 32])
def test_bfloat16_boards_are_summed_in_float32_and_return_as_bfloat16(channels):
    inputs, kernel = arrays((2, 5, 5, channels), (3, 3, channels, channels))
    inputs = inputs.astype(jnp.bfloat16)

    @jax.jit
    def outputs_and_cotangents(inputs, kernel):
        outputs, pullback = jax.vjp(convolve, inputs, kernel)
        return outputs, *pullback(outputs)

    outputs, inputs_cotangent, kernel_cotangent = outputs_and_cotangents(inputs, kernel)
    assert outputs.dtype == inputs_cotangent.dtype == jnp.bfloat16
    assert kernel_cotangent.dtype == jnp.float32
    # Half a unit in the last place of bfloat16 is all that may be lost.
    assert_close(outputs, definition(np.asarray(inputs), np.asarray(kernel)), tolerance=2**-8)


@pytest.mark.parametrize("board", [(2, 3), (4, 5), (6, 6), (1, 9), (7, 6)])
def test_winograd_is_exact_to_a_few_float32_units_with_every_tile_forwards_and_backwards(board):
    inputs, kernel, cotangent = arrays((4, *board, 64), (3, 3, 64, 64), (4, *board, 64))
    both = jax.jit(lambda *primals: [with_cotangents(by, cotangent, *primals) for by in (winograd, native)])
    (outputs, *ours), (_, *theirs) = both(inputs, kernel)
    assert_close(outputs, definition(np.asarray(inputs), np.asarray(kernel)), tolerance=2e-5)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, tolerance=2e-5)


def with_cotangents(formulation, cotangent, *primals):
    outputs, pullback = jax.vjp(formulation, *primals)
    return outputs, *pullback(cotangent)


def rounded(array):
    """To what bfloat16 can hold, in the array's own dtype."""
    return array.astype(jnp.bfloat16).astype(array.dtype)


@pytest.mark.parametrize("board", [(1, 9), (6, 7)])
@pytest.mark.parametrize("dtype, units", [(jnp.float32, True), (jnp.bfloat16, True), (jnp.float32, False)])
def test_row_windows_round_nothing_but_the_factors_forwards_and_backwards(board, dtype, units, monkeypatch):
    monkeypatch.setattr(bfloat16_products, "has_amx", lambda: units and has_amx())
    inputs, kernel, cotangent = arrays((3, *board, 32), (3, 3, 32, 34), (3, *board, 34))
    primals = inputs.astype(dtype), kernel
    outputs, *ours = jax.jit(lambda *primals: with_cotangents(row_windows, cotangent.astype(dtype), *primals))(*primals)
    exact = [rounded(array) for array in (inputs, kernel)]
    _, *theirs = jax.jit(lambda *primals: with_cotangents(native, rounded(cotangent), *primals))(*exact)
    assert [x.dtype for x in (outputs, *ours)] == [dtype, dtype, jnp.float32]
    tolerance = 2e-6 if dtype == jnp.float32 else 2**-8  # the result of bfloat16 boards is rounded once more
    assert_close(outputs, definition(*map(np.asarray, exact)), tolerance)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, tolerance)


@pytest.mark.parametrize("shape", [(3, 3, 32, 33), (3, 3, 16, 32), (5, 5, 32, 32)])
def test_kernels_without_row_windows_are_not_rounded_on_a_cpu(shape):
    inputs, kernel = arrays((2, 4, 4, shape[2]), shape)
    convolved = jax.jit(convolve, static_argnums=2)
    np.testing.assert_array_equal(convolved(inputs, kernel, jnp.bfloat16), convolved(inputs, kernel, None))


def test_wide_kernels_multiply_bfloat16_on_a_cpu_if_asked():
    inputs, kernel = arrays((2, 4, 4, 32), (3, 3, 32, 32))
    asked = jax.jit(convolve, static_argnums=2)(inputs, kernel, jnp.bfloat16)
    assert asked.dtype == jnp.float32
    np.testing.assert_array_equal(asked, jax.jit(row_windows)(inputs, kernel))
    assert np.abs(asked - convolve(inputs, kernel)).max() > 1e-3


def test_an_accelerator_multiplies_in_the_dtype_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu")])
    inputs, kernel = arrays((2, 5, 5, 32), (3, 3, 32, 32))
    text = str(jax.make_jaxpr(lambda *operands: convolve(*operands, jnp.bfloat16))(inputs, kernel))
    assert "bf16[2,5,5,32] = conv_general_dilated" in text
    assert convolve(inputs, kernel, jnp.bfloat16).dtype == jnp.float32


def test_tiles_waste_little_of_the_board():
    """By hand for 7 cells: tiles of 4 take 2 x 6 x 14 = 168, of 3 take 3 x 5 x 13 = 195, of 6 take 2 x 8 x 16 = 256."""
    assert [tile_side(length) for length in (2, 3, 4, 5, 6, 7, 8, 9, 11)] == [2, 3, 4, 5, 6, 4, 4, 3, 4]


def test_an_update_transforms_each_kernel_once():
    """For every step of the unroll, forwards and backwards, and for all parts of the batch."""
    parts, kernel = arrays((2, 2, 5, 5, 32), (3, 3, 32, 32))

    def loss(kernel, boards):
        for _ in range(2):
            boards = jax.nn.relu(winograd(boards, kernel))
        return (boards**2).sum()

    def update(kernel, _):
        total, _ = lax.scan(
            lambda sum_, part: (sum_ + jax.grad(loss)(kernel, part), None), jnp.zeros_like(kernel), parts
        )
        return kernel - 1e-3 * total, None

    text = jax.jit(lambda kernel: lax.scan(update, kernel, length=2)[0]).lower(kernel).compile().as_text()
    assert len(re.findall(r"= f32\[49,1024\]\S* dot\(", text)) == 1  # 7 x 7 points, 32 x 32 channels


def test_a_cpu_beside_an_accelerator_gets_winograd_where_programs_are_traced_for_it(monkeypatch):
    """One jitted function, asked for either device: neither finds the other's trace."""
    find = jax.devices
    monkeypatch.setattr(jax, "devices", lambda kind=None: find(kind) if kind else [SimpleNamespace(platform="gpu")])
    inputs, kernel = arrays((2, 5, 5, 32), (3, 3, 32, 32))
    jitted = jax.jit(lambda *operands: convolve(*operands))
    assert "conv_general_dilated" in str(jitted.trace(inputs, kernel).jaxpr)
    for device in (find()[1], "cpu"):
        with jax.default_device(device):
            assert "conv_general_dilated" not in str(jitted.trace(inputs, kernel).jaxpr)
    assert "conv_general_dilated" in str(jitted.trace(inputs, kernel).jaxpr)
