"""Look-ups and permutations: the gradients of both devices are right, also in bfloat16."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.ops import look_ups
from muzero_jax.ops.devices import made_for

H100 = SimpleNamespace(platform="gpu", compute_capability="9.0")
ROWS, COLUMNS, NUM = 26, 16, 32_768
"""As many actions as a batch of Hex 5x5 has on a large GPU."""


@pytest.fixture(scope="module")
def looked_up():
    """A table, indices of which one row has a fifth, cotangents of mean 0.2, and the table's gradient in float64."""
    generator = np.random.default_rng(0)
    table = generator.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    index = np.where(generator.random(NUM) < 0.2, 3, generator.integers(ROWS, size=NUM)).astype(np.int32)
    cotangent = (generator.normal(size=(NUM, COLUMNS)) + 0.2).astype(jnp.bfloat16)
    wanted = np.zeros((ROWS, COLUMNS))
    np.add.at(wanted, index, np.asarray(cotangent, np.float64))
    return table, index, cotangent, wanted


def gradient(table, index, cotangent):
    """The gradient of the table by `look_up`, as it is traced for the present device."""
    outputs, pull_back = jax.vjp(lambda table: look_ups.look_up(table, index, cotangent.dtype), table)
    return outputs, *pull_back(cotangent)


@pytest.mark.parametrize("device", [None, H100], ids=["CPU", "GPU"])
def test_the_gradient_of_a_look_up_in_bfloat16_is_float32s(looked_up, device):
    """Summed in bfloat16 it would be 20% off."""
    table, index, cotangent, wanted = looked_up
    with made_for(device):
        outputs, found = jax.jit(partial(gradient))(table, index, cotangent)  # a function of its own, traced again
    np.testing.assert_array_equal(outputs, table.astype(jnp.bfloat16)[index])
    assert found.dtype == jnp.float32
    assert np.linalg.norm(found - wanted) < 1e-3 * np.linalg.norm(wanted)


def test_the_gradient_of_a_look_up_in_float32_is_exact_on_either_device():
    """In whole numbers, so that the order of sums does not count."""
    index = np.random.default_rng(0).integers(4, size=1000).astype(np.int32)
    cotangent = np.random.default_rng(1).integers(-9, 9, size=(1000, 3)).astype(np.float32)
    wanted = np.zeros((4, 3))
    np.add.at(wanted, index, cotangent)
    for sums in (look_ups.added_rows, look_ups.one_hot_product):
        np.testing.assert_array_equal(jax.jit(sums, static_argnums=2)(index, cotangent, 4), wanted)


def test_no_look_up_adds_by_a_scatter_on_an_accelerator(looked_up):
    table, index, cotangent, _ = looked_up
    x, order = jnp.ones((4, 5)), (3, 1, 4, 0, 2)
    permute = jax.grad(lambda x: look_ups.permuted(x, order).sum())
    with made_for(H100):
        lowered = [jax.jit(partial(gradient)).lower(table, index, cotangent), jax.jit(permute).lower(x)]
    assert not any("scatter" in each.as_text() for each in lowered)


def test_the_gradient_of_a_permutation_is_the_inverse_permutation():
    order, weights = (3, 1, 4, 0, 2), jnp.arange(5.0)
    permuted, pull_back = jax.jit(partial(jax.vjp, lambda x: look_ups.permuted(x, order)))(10 * weights[None])
    np.testing.assert_array_equal(permuted[0], [30, 10, 40, 0, 20])
    np.testing.assert_array_equal(pull_back(weights[None])[0][0], [3, 1, 4, 0, 2])
