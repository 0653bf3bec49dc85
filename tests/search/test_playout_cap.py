"""Playout-cap randomisation: how often a search is full, and that a cheap one says so."""

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.search import playout_cap
from muzero_jax.types import SearchOutput, SearchRoots

POSITION = SearchRoots(jnp.zeros((3, 1)), jnp.ones((3, 2), bool), None)


def saying(action):
    """A search whose action names it, with a tree of a size of its own."""

    def search(params, key, roots):
        rows = len(roots.observation)
        tree = jnp.zeros(action + 1)
        return SearchOutput(jnp.full(rows, action), jnp.full((rows, 2), 0.5), jnp.zeros(rows), tree)

    return search


def test_a_share_of_the_searches_is_full_and_all_games_of_a_batch_share_the_draw():
    search = playout_cap.mix(saying(1), saying(0), share=0.25)
    found = jax.jit(jax.vmap(search, (None, 0, None)))(None, jax.random.split(jax.random.key(0), 2000), POSITION)
    np.testing.assert_array_equal(found.in_full, found.action == 1)
    assert (found.in_full == found.in_full[:, :1]).all()
    np.testing.assert_allclose(found.in_full[:, 0].mean(), 0.25, atol=0.03)
    assert found.tree is None
