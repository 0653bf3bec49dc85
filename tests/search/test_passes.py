"""Gumbel's search in passes finds what the search of one simulation after another finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm.playing import GUMBEL_SEARCHES
from muzero_jax.search import passes, policies
from muzero_jax.search.bounded import bounded
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.types import QTransform
from tests.reference.programs import equations
from tests.search import test_tree
from tests.search.test_tree import WORLD, found_in_tables, inputs_of

CONSIDERED = 4


@pytest.mark.parametrize(
    ("considered", "simulations", "expected"),
    [
        (8, 8, [(8, 1)]),
        (8, 16, [(8, 1), (4, 1), (2, 2)]),
        (16, 64, [(16, 1), (8, 2), (4, 4), (2, 8)]),
        (4, 24, [(4, 3), (2, 6)]),
        (5, 16, [(5, 1), (2, 5), (1, 1)]),  # the budget ends within the last pass
        (1, 3, [(1, 3)]),
    ],
)
def test_phases_have_all_simulations_of_sequential_halving(considered, simulations, expected):
    assert passes.phases(policies.halving(considered, simulations)) == expected
    assert sum(width * count for width, count in expected) == simulations


def test_a_thousand_positions_are_searched_alike_if_there_are_enough_legal_actions():
    ours, _ = found_in_tables("gumbel", "own", False)
    other, _ = found_in_tables("gumbel", "passes", False)
    assert_same(other, ours)


@pytest.mark.parametrize(("num_simulations", "least"), [(8, 0.98), (3, 1.0)])
def test_nearly_all_are_with_one_visit_before_halving_and_all_with_none_to_halve(num_simulations, least):
    """With one visit each the second visit of a phase, which own compares anew, weighs most."""
    searches = (
        GUMBEL_SEARCHES[name](
            WORLD,
            num_simulations=num_simulations,
            max_num_considered_actions=CONSIDERED,
            gumbel_scale=1.0,
            qtransform=QTransform(0.4, 50.0, True),
            improved_value=False,
        )
        for name in ("own", "passes")
    )
    ours, other = (jax.device_get(jax.jit(search)(*inputs_of(False))) for search in searches)
    assert (other.action == ours.action).mean() >= least
    assert np.isclose(other.policy, ours.policy, atol=3e-5).all(-1).mean() >= least - 0.03


def assert_same(other, ours):
    np.testing.assert_array_equal(other.action, ours.action)
    np.testing.assert_allclose(other.policy, ours.policy, atol=3e-5)
    np.testing.assert_allclose(other.value, ours.value, atol=3e-5)


@jax.jit
def visited(is_legal):
    """The root's row after 64 simulations of 16 actions, of which a is worth -a."""

    def expand(params, key, action, embedding):
        zero = jnp.zeros(action.shape)
        depth = embedding + 1
        reward = jnp.where(depth == 1, -action.astype(jnp.float32), 0.0)
        return Node(jnp.ones((len(action), 16)) / 16, zero, depth, reward, zero + 1)

    zero = jnp.zeros(1)
    root = Node(jnp.ones((1, 16)) / 16, zero, zero, zero, zero)
    return passes.visit(
        root,
        Simulator(lambda params, roots: root, expand),
        None,
        lambda row: jnp.where(is_legal, jnp.where(row.visits > 0, row.q, -jnp.arange(16.0)), -jnp.inf),
        lambda row: jnp.argmin(row.visits, axis=-1).astype(jnp.int32),
        jax.random.key(0),
        schedule=passes.phases(policies.halving(16, 64)),
    )


@pytest.mark.parametrize(
    ("num_legal", "expected"),
    [
        (1, [15]),
        (2, [15, 15]),
        (3, [15, 15, 7]),
        (5, [15, 15, 7, 7, 3]),
        (8, [15, 15, 7, 7, 3, 3, 3, 3]),
        (16, [15, 15, 7, 7, 3, 3, 3, 3, *[1] * 8]),
    ],
)
def test_visits_by_hand_where_fewer_actions_are_legal_than_are_considered(num_legal, expected):
    """One visit of all, 2 more of 8, 4 more of 4, 8 more of 2."""
    row = visited(jnp.arange(16) < num_legal)
    np.testing.assert_array_equal(row.visits[0], expected + [0] * (16 - num_legal))
    np.testing.assert_allclose(row.q[0, :num_legal], -np.arange(num_legal), atol=1e-6)


def test_with_fewer_legal_actions_each_gets_the_visits_that_it_gets_among_many():
    """So nearly all moves are the same, and those of positions with enough of them all but one in a hundred."""
    ours, legal = found_in_tables("gumbel", "own", True)
    other, _ = found_in_tables("gumbel", "passes", True)
    is_same, is_enough = other.action == ours.action, legal.sum(-1) >= CONSIDERED
    assert legal[np.arange(len(legal)), other.action].all() and (other.policy[~legal] == 0).all()
    assert is_same[is_enough].mean() > 0.99 and is_same[~is_enough].mean() > 0.85


def test_no_simulation_loops_over_the_tree():
    """A GPU waits for the host after each turn of a loop whose length it decides itself."""
    program = equations(jax.make_jaxpr(test_tree.gumbel("passes", WORLD))(*inputs_of(False)).jaxpr)
    assert "while" not in {equation.primitive.name for equation in program}


def test_values_are_bounded_alike():
    world = bounded(WORLD, 1.0)
    ours, other = (
        jax.device_get(jax.jit(test_tree.gumbel(name, world))(*inputs_of(False))) for name in ("own", "passes")
    )
    assert np.isclose(other.value, ours.value, atol=3e-5).mean() > 0.98  # values at a bound are ties
    assert np.abs(other.value).max() <= 1 + 1e-5
