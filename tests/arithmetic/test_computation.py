"""Operations are counted as a person would by hand, whatever a program is wrapped in."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from muzero_jax.arithmetic import devices
from muzero_jax.arithmetic.computation import Flops, count
from muzero_jax.arithmetic.devices import AXIS, shard_map

A, B = jnp.zeros((3, 5)), jnp.zeros((5, 7))
PRODUCT = 2 * 3 * 5 * 7


def traced(function, *inputs):
    return count(jax.make_jaxpr(function)(*inputs))


def test_a_product_of_matrices_is_a_product_and_a_sum_for_each_pair():
    assert traced(jnp.dot, A, B) == Flops(PRODUCT)


def test_a_batch_of_products_counts_each():
    assert traced(jax.vmap(jnp.dot), jnp.stack([A] * 4), jnp.stack([B] * 4)) == Flops(4 * PRODUCT)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_sums_over_window_and_channels(groups):
    """4 positions of 6x6 with 2 channels, to 8 channels by 3x3; groups see a part of the channels each."""
    kernel = jnp.zeros((3, 3, 2 // groups, 8))

    def convolve(x):
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
        )

    assert traced(convolve, jnp.zeros((4, 6, 6, 2))) == Flops(2 * 4 * 6 * 6 * 8 * 3 * 3 * 2 / groups)


def test_loops_count_every_step_and_calls_what_they_call():
    def function(a, b):
        total, _ = jax.lax.scan(lambda sum, _: (sum + jax.jit(jnp.dot)(a, b), None), jnp.zeros((3, 7)), None, length=6)
        return jax.lax.fori_loop(0, 4, lambda _, sum: sum + jax.checkpoint(jnp.dot)(a, b), total)

    assert traced(function, A, B) == Flops(10 * PRODUCT)


def test_a_gradient_costs_two_more_products():
    loss = jax.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))
    assert traced(loss, A, B).always in (2 * PRODUCT, 3 * PRODUCT)  # whether or not the value is computed too


def test_what_a_branch_may_leave_out_is_told_apart():
    def function(ready, a, b):
        return a @ b + jax.lax.cond(ready, lambda: 2 * (a @ b), lambda: jnp.zeros((3, 7)))

    assert traced(function, True, A, B) == Flops(PRODUCT, PRODUCT)


def test_two_branches_that_multiply_count_as_often_as_they_are_taken():
    def function(is_full, a, b):
        return jax.lax.cond(is_full, lambda: (a @ b) + (2 * a @ b), lambda: a @ b)

    jaxpr = jax.make_jaxpr(function)(True, A, B)
    assert count(jaxpr, second_share=0.25) == Flops(1.25 * PRODUCT)
    assert count(jaxpr) == Flops(2 * PRODUCT)


def test_devices_that_share_a_batch_do_as_much_as_one():
    def shared(num_devices):
        mesh, rows = devices.make_mesh(num_devices), PartitionSpec(AXIS)
        return traced(shard_map(jnp.dot, mesh, (rows, PartitionSpec()), rows), jnp.zeros((4, 5)), B)

    assert shared(1) == shared(2) == Flops(2 * 4 * 5 * 7)
