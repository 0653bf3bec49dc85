"""Products of bfloat16 round their factors and nothing else, forwards and backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.ops import bfloat16_products
from muzero_jax.ops.devices import has_amx


def rounded(array):
    """To what bfloat16 can hold, in float64."""
    return np.asarray(array).astype(jnp.bfloat16).astype(np.float64)


def random_factors(rows, inner, columns):
    """Inputs, kernel and a cotangent of their product."""
    generator = np.random.default_rng(0)
    shapes = (rows, inner), (inner, columns), (rows, columns)
    return jax.device_put([np.float32(generator.normal(size=shape)) for shape in shapes])


@pytest.fixture(params=[True, False], ids=["units", "no units"])
def units(request, monkeypatch):
    """On a CPU with units for such products, and on one without, where rounded factors are multiplied in float32."""
    monkeypatch.setattr(bfloat16_products, "has_amx", lambda: request.param and has_amx())


@pytest.mark.usefixtures("units")
@pytest.mark.parametrize("sizes", [(7, 5, 3), (1, 1, 1), (64, 96, 32)])
def test_a_product_and_its_cotangents_are_of_rounded_factors_summed_exactly(sizes):
    factors = random_factors(*sizes)
    inputs, kernel, cotangent = factors

    @jax.jit
    def with_cotangents(inputs, kernel, cotangent):
        outputs, pullback = jax.vjp(bfloat16_products.multiply, inputs, kernel)
        return outputs, *pullback(cotangent)

    found = with_cotangents(inputs, kernel, cotangent)
    x, k, c = map(rounded, factors)
    for one, other in zip(found, (x @ k, c @ k.T, x.T @ c), strict=True):
        assert one.dtype == jnp.float32
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert (found[0] != np.asarray(inputs) @ np.asarray(kernel)).any()


@pytest.mark.usefixtures("units")
def test_a_transposed_product_can_be_compiled():
    """Without its barrier XLA (jaxlib 0.10) exchanges the factors and cannot compile the result."""
    inputs, kernel, _ = random_factors(64, 96, 32)
    rounded_transpose = jax.jit(lambda a, b: bfloat16_products.product(bfloat16_products.transposed(a), b).T)
    found = rounded_transpose(kernel, inputs.T)
    np.testing.assert_allclose(found, rounded(inputs) @ rounded(kernel), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("units")
def test_vmap_over_kernels_gives_each_its_own_gradient():
    inputs, kernel, cotangent = random_factors(5, 9, 4)
    kernels = jnp.stack([kernel, -2 * kernel])

    def gradient(kernel):
        return jax.vjp(bfloat16_products.multiply, inputs, kernel)[1](cotangent)

    found = jax.jit(jax.vmap(gradient))(kernels)
    for i in range(2):
        for one, other in zip(found, gradient(kernels[i]), strict=True):
            np.testing.assert_allclose(one[i], other, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("units")
def test_the_transpose_is_exact():
    numbers = random_factors(7, 5, 1)[0] * 1e30  # squares would overflow
    np.testing.assert_array_equal(jax.jit(bfloat16_products.transposed)(numbers), numbers.astype(jnp.bfloat16).T)
