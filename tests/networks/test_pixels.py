"""The network for screens: blocks by hand, sizes, and the reconstruction of a picture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.environment import make_environment
from muzero_jax.networks import pixels
from tests.reference.models import make_network


def test_a_block_becomes_the_channels_of_a_cell_row_by_row():
    picture = jnp.arange(1, 16).reshape(1, 3, 5, 1)
    cut = pixels.blocks(picture, 2)
    assert cut.shape == (1, 2, 3, 4)
    np.testing.assert_array_equal(cut[0, 0], [[1, 2, 6, 7], [3, 4, 8, 9], [5, 0, 10, 0]])
    np.testing.assert_array_equal(cut[0, 1], [[11, 12, 0, 0], [13, 14, 0, 0], [15, 0, 0, 0]])


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((32, 64, 4), [4, 2]), ((10, 10, 7), [2]), ((8, 8, 1), [1]), ((84, 84, 4), [8, 2]), ((96, 64, 3), [8, 2])],
)
def test_a_screen_is_shrunk_to_64_cells_or_fewer(shape, sizes):
    assert pixels.block_sizes(shape) == sizes
    factor = int(np.prod(sizes))
    assert -(-shape[0] // factor) * -(-shape[1] // factor) <= pixels.MOST_CELLS


def test_each_cell_reconstructs_its_own_block_of_the_picture():
    sizes = pixels.NetworkSizes(3, 1, (6, 10, 2), 5, 1, jax.nn.relu, jnp.float32)
    picture = pixels.PixelDecoder(sizes._replace(observation_shape=(12, 20, 2)))
    cells = jnp.zeros((1, 6, 10, 5))
    params = picture.init(jax.random.key(0), cells)
    lit = np.asarray(picture.apply(params, cells.at[0, 1, 3].set(1.0)) != 0)[0]
    assert lit.shape == (12, 20, 2)
    assert lit[2:4, 6:8].all() and lit.sum() == 2 * 2 * 2


def test_a_screen_of_minatar_is_embedded_in_25_cells_and_reconstructed_whole():
    environment = make_environment("minatar-breakout")
    model = make_network("pixels", environment)
    params, seen = jax.eval_shape(model.init, jax.random.key(0)), jnp.zeros((3, *environment.observation_shape))
    root = jax.eval_shape(model.initial_inference, params, seen)
    assert root.embedding.shape == (3, 5, 5, 8)
    assert jax.eval_shape(model.reconstruct, params, root.embedding).shape == seen.shape


@pytest.mark.parametrize("hidden", [0, 16])
def test_only_a_hidden_layer_tells_how_distant_cells_stand_to_each_other(hidden):
    sizes = pixels.NetworkSizes(3, 1, (32, 64, 4), 4, 1, jax.nn.relu, jnp.dtype("float32"))
    heads = pixels.Heads(sizes, {"numbers": 2}, 8, hidden=hidden)
    none = jnp.zeros((1, 4, 8, 4))
    params = jax.tree.map(
        lambda x: x + jax.random.normal(jax.random.key(x.size), x.shape), heads.init(jax.random.key(0), none)
    )
    ball, paddle = (none.at[0, row, column].set(jnp.arange(4.0)) for row, column in ((0, 0), (3, 7)))
    neither, one, other, both = (heads.apply(params, cells)["numbers"] for cells in (none, ball, paddle, ball + paddle))
    assert np.allclose(both + neither, one + other, atol=1e-4) == (not hidden)


def test_the_pixels_network_refuses_a_list_of_numbers():
    with pytest.raises(ValueError, match="kind pixels"):
        make_network("pixels", make_environment("backgammon"))
