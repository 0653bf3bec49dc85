"""The transformer over a board's cells: it sees positions only by what it learns of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.networks import layers
from muzero_jax.networks.attention import Transformer, attend

SIZES = layers.NetworkSizes(
    num_actions=10,
    num_bins=3,
    observation_shape=(3, 2, 4),
    width=64,
    num_blocks=2,
    activation=jax.nn.gelu,
    dtype=jnp.dtype("float32"),
)
N, CELLS = 3, 6


def key(seed):
    return jax.random.key(seed, impl="rbg")


@pytest.fixture(scope="module")
def boards():
    return np.random.default_rng(0).normal(size=(N, 3, 2, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def trunk(boards):
    """The trunk compiled, and random parameters of it."""
    module, generator = Transformer(SIZES), np.random.default_rng(1)
    shapes = jax.eval_shape(module.init, key(0), boards)
    return jax.jit(module.apply), jax.tree.map(lambda x: generator.normal(scale=0.3, size=x.shape), shapes)


def shuffled(board, order):
    """[..., H, W, C] with its cells in another order."""
    rows = np.asarray(board).reshape(*board.shape[:-3], CELLS, -1)
    return np.take(rows, order, axis=-2).reshape(board.shape)


def test_attention_is_a_softmax_over_all_cells_by_head():
    """Against NumPy: two heads of 32, scores over the square root of 32."""
    joint = np.random.default_rng(2).normal(size=(N, CELLS, 3 * 64)).astype(np.float32)
    found, wanted = attend(jnp.asarray(joint), heads=2), []
    for head in (slice(0, 32), slice(32, 64)):
        query, keys, values = (joint[..., start : start + 64][..., head] for start in (0, 64, 128))
        scores = np.exp(query @ np.swapaxes(keys, 1, 2) / 32**0.5)
        wanted.append(scores / scores.sum(axis=-1, keepdims=True) @ values)
    np.testing.assert_allclose(found, np.concatenate(wanted, axis=-1), atol=1e-5)


def test_permuting_cells_with_their_positions_permutes_the_output(trunk, boards):
    apply, params = trunk
    order = np.random.default_rng(3).permutation(CELLS)
    moved = {"params": params["params"] | {"position": shuffled(params["params"]["position"], order)}}
    wanted = shuffled(apply(params, boards), order)
    np.testing.assert_allclose(apply(moved, shuffled(boards, order)), wanted, atol=2e-4)
    assert np.abs(apply(params, shuffled(boards, order)) - wanted).max() > 0.1, "it must know where a cell lies"
