"""A game in which one player may move twice in a row: each search over two worlds, against exact values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.search import simulator
from muzero_jax.types import SearchRoots
from tests.reference import double_nim
from tests.reference.double_nim import GAME, MOST, State
from tests.reference.searches import gumbel, puct

HEAPS = np.arange(1, MOST + 1)
WORLDS = {
    "learned": simulator.learned_model(double_nim.exact_model(predicts_legality=False), 1.0),
    "learned_legality": simulator.learned_model(double_nim.exact_model(predicts_legality=True), 1.0),
    "rules": simulator.ground_truth_model(GAME, double_nim.exact_model(predicts_legality=False)),
}


@pytest.fixture(scope="module")
def roots():
    states = State(jnp.asarray(HEAPS), jnp.zeros(MOST, jnp.int32))
    return SearchRoots(jax.vmap(GAME.observe)(states), jax.vmap(GAME.legal)(states), states)


def test_values_of_double_nim_by_hand():
    """Up to three are won at once; of four, three leave one and the turn. Five and six are lost, seven leave six."""
    assert [double_nim.value(stones) for stones in range(9)] == [0, 1, 1, 1, 1, -1, -1, 1, 1]
    assert double_nim.value_of(4, 2) == double_nim.value(1) and double_nim.value_of(6, 0) == double_nim.value(5)


@pytest.mark.parametrize(
    ("make", "world"), [(gumbel, "learned"), (gumbel, "rules"), (puct, "learned_legality"), (puct, "rules")]
)
def test_search_finds_exact_play_though_turns_do_not_alternate(make, world, roots):
    found = jax.jit(make(WORLDS[world], num_simulations=256))(None, jax.random.key(0), roots)
    for stones, action, value in zip(HEAPS.tolist(), found.action.tolist(), found.value.tolist(), strict=True):
        assert double_nim.value_of(stones, action) == double_nim.value(stones), stones
        assert np.sign(value) == double_nim.value(stones), stones
    assert not np.asarray(found.policy)[~np.asarray(roots.legal_action_mask)].any()
