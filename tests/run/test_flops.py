"""FLOPs are counted as by hand, whatever a program is wrapped in."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from muzero_jax.ops import bfloat16_products
from muzero_jax.ops.convolution import im2col, native
from muzero_jax.ops.mesh import AXIS, make_mesh, shard_map
from muzero_jax.ops.row_windows import row_windows
from muzero_jax.ops.winograd import winograd
from muzero_jax.run.flops import Flops, count

A, B = jnp.zeros((3, 5)), jnp.zeros((5, 7))
PRODUCT = 2 * 3 * 5 * 7


def traced(function, *inputs):
    return count(jax.make_jaxpr(function)(*inputs))


def steps(a, b):
    """Six steps of a scan, and four of a loop that counts up."""
    total, _ = jax.lax.scan(lambda sum, _: (sum + jax.jit(jnp.dot)(a, b), None), jnp.zeros((3, 7)), None, length=6)
    return jax.lax.fori_loop(0, 4, lambda _, sum: sum + jax.checkpoint(jnp.dot)(a, b), total)


def convolve(boards):
    """3x3, to 8 channels."""
    kernel = jnp.zeros((3, 3, 2, 8))
    return jax.lax.conv_general_dilated(boards, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def sometimes(a, b):
    return a @ b + jax.lax.cond(a.sum() > 0, lambda: 2 * (a @ b), lambda: jnp.zeros((3, 7)))


@pytest.mark.parametrize(
    "function, inputs, expected",
    [
        (jnp.dot, (A, B), Flops(PRODUCT)),
        (jax.vmap(jnp.dot), (jnp.stack([A] * 4), jnp.stack([B] * 4)), Flops(4 * PRODUCT)),
        (steps, (A, B), Flops(10 * PRODUCT)),
        (jax.grad(lambda a, b: ((a @ b) ** 2).sum(), argnums=(0, 1)), (A, B), Flops(3 * PRODUCT)),
        (jax.grad(lambda a, b: bfloat16_products.multiply(a, b).sum(), argnums=(0, 1)), (A, B), Flops(3 * PRODUCT)),
        (convolve, (jnp.zeros((4, 6, 6, 2)),), Flops(2 * (4 * 6 * 6 * 8) * (3 * 3 * 2))),
        (sometimes, (A, B), Flops(PRODUCT, PRODUCT)),
    ],
    ids=["product", "batch", "loops", "gradient", "gradient in bfloat16", "convolution", "branch"],
)
def test_a_matrix_product_counts_2_flops_for_each_pair_of_factors(function, inputs, expected):
    """Loops count every step, calls what they call; what a branch may skip is counted separately."""
    assert traced(function, *inputs) == expected


def test_two_branches_that_multiply_count_as_often_as_they_are_taken():
    def function(is_full, a, b):
        return jax.lax.cond(is_full, lambda: (a @ b) + (2 * a @ b), lambda: a @ b)

    jaxpr = jax.make_jaxpr(function)(True, A, B)
    assert count(jaxpr, second_share=0.25) == Flops(1.25 * PRODUCT)


def test_devices_that_share_a_batch_do_as_much_as_one():
    def shared(num_devices):
        mesh, rows = make_mesh(num_devices), PartitionSpec(AXIS)
        return traced(shard_map(jnp.dot, mesh, (rows, PartitionSpec()), rows), jnp.zeros((4, 5)), B)

    assert shared(1) == shared(2) == Flops(2 * 4 * 5 * 7)


# --- convolutions of boards count by their definition, however they are computed --------------------------------------

BOARDS, KERNEL = jnp.zeros((2, 5, 5, 32)), jnp.zeros((3, 3, 32, 32))
CONVOLUTION = 2 * (2 * 5 * 5) * (3 * 3 * 32 * 32)


@pytest.mark.parametrize("formulation", [native, im2col, winograd, row_windows])
def test_a_board_convolution_counts_2_flops_for_each_cell_and_weight(formulation):
    """Each gradient costs another one, and steps that are computed again for it count again."""

    def loss(boards, kernel):
        return (formulation(boards, kernel) ** 2).sum()

    def unrolled(boards):
        step = jax.checkpoint(lambda boards, _: (formulation(boards, KERNEL) ** 2, None))
        return jax.lax.scan(step, boards, None, length=4)[0].sum()

    assert traced(jax.vmap(formulation, (0, None)), jnp.stack([BOARDS] * 3), KERNEL) == Flops(3 * CONVOLUTION)
    assert traced(jax.grad(loss, argnums=(0, 1)), BOARDS, KERNEL) == Flops(3 * CONVOLUTION)
    assert traced(jax.grad(loss, argnums=1), BOARDS, KERNEL) == Flops(2 * CONVOLUTION), "boards are data"
    assert traced(jax.grad(unrolled), BOARDS) == Flops(4 * 3 * CONVOLUTION)
