"""A game in which one player may move twice in a row: every search, over every world, against exact values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.search import policies, simulator
from muzero_jax.types import QTransform, SearchRoots
from tests.reference import double_nim
from tests.reference.double_nim import GAME, MOST, State

HEAPS = np.arange(1, MOST + 1)
WORLDS = {
    "learned": simulator.learned_model(double_nim.exact_model(predicts_legality=False), 1.0, predicted_discount=True),
    "learned_legality": simulator.learned_model(
        double_nim.exact_model(predicts_legality=True), 1.0, predicted_discount=True, predicted_legality=True
    ),
    "rules": simulator.ground_truth_model(GAME, double_nim.exact_model(predicts_legality=False)),
}
SEARCHES = {
    "gumbel": lambda world: policies.gumbel_search(
        world,
        num_simulations=256,
        max_num_considered_actions=3,
        gumbel_scale=0.0,
        qtransform=QTransform(0.4, 50.0, rescale_values=False),
        improved_value=True,
    ),
    "puct": lambda world: policies.puct_search(
        world,
        num_simulations=256,
        dirichlet_fraction=0.0,
        dirichlet_alpha=0.3,
        pb_c_init=1.25,
        pb_c_base=19652.0,
        temperature=0.0,
    ),
}


@pytest.fixture(scope="module")
def roots():
    states = State(jnp.asarray(HEAPS), jnp.zeros(MOST, jnp.int32))
    return SearchRoots(jax.vmap(GAME.observe)(states), jax.vmap(GAME.legal)(states), states)


def test_the_game_is_worked_by_hand():
    """Up to three are won at once; of four, three leave one and the turn. Five and six are lost, seven leave six."""
    assert [double_nim.value(stones) for stones in range(9)] == [0, 1, 1, 1, 1, -1, -1, 1, 1]
    assert double_nim.value_of(4, 2) == double_nim.value(1) and double_nim.value_of(6, 0) == double_nim.value(5)


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("world", WORLDS)
def test_search_finds_exact_play_though_turns_do_not_alternate(kind, world, roots):
    found = jax.jit(SEARCHES[kind](WORLDS[world]))(None, jax.random.key(0), roots)
    for stones, action, value in zip(HEAPS.tolist(), found.action.tolist(), found.value.tolist(), strict=True):
        assert double_nim.value_of(stones, action) == double_nim.value(stones), stones
        assert np.sign(value) == double_nim.value(stones), stones
    assert not np.asarray(found.policy)[~np.asarray(roots.legal_action_mask)].any()
