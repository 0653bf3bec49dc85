"""Products of bfloat16 round their factors and nothing else, forwards and backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import bfloat16_products


def rounded(array):
    """To what bfloat16 can hold, in float64."""
    return np.asarray(jnp.asarray(array).astype(jnp.bfloat16), np.float64)


@pytest.fixture(scope="module")
def factors():
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape).astype(np.float32) for shape in ((7, 5), (5, 3), (7, 3))]


def test_a_product_and_its_cotangents_are_of_rounded_factors_summed_exactly(factors):
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
    assert np.abs(found[0] - inputs @ kernel).max() > 1e-3


def test_a_sum_of_more_than_bfloat16_can_count_is_exact():
    """256 + 1 is 256 in bfloat16."""
    ones = jnp.ones((1, 1000))
    assert bfloat16_products.multiply(ones, ones.T)[0, 0] == 1000
    gradient = jax.grad(lambda kernel: jnp.sum(bfloat16_products.multiply(ones.T, kernel)))(jnp.ones((1, 1)))
    assert gradient[0, 0] == 1000


def test_the_transpose_is_exact(factors):
    numbers = jnp.asarray(factors[0]) * 1e30  # squares would overflow
    np.testing.assert_array_equal(bfloat16_products.transposed(numbers), numbers.astype(jnp.bfloat16).T)


def test_other_contractions_than_a_dense_layers_are_refused(factors):
    inputs, kernel, _ = map(jnp.asarray, factors)
    dense = bfloat16_products.dot_general(inputs, kernel, (((1,), (0,)), ((), ())), precision=None)
    np.testing.assert_array_equal(dense, bfloat16_products.multiply(inputs, kernel))
    with pytest.raises(ValueError, match="dense layer"):
        bfloat16_products.dot_general(inputs, kernel.T, (((1,), (1,)), ((), ())))
