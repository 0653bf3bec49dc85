"""Gumbel's search in passes finds what the search of one simulation after another (own) finds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.search import passes, policies
from muzero_jax.search.bounded import bounded
from muzero_jax.search.simulator import Node, Simulator
from tests.reference.programs import equations
from tests.reference.searches import gumbel
from tests.search import test_tree
from tests.search.test_tree import WORLD, found_in_tables, inputs_of


@pytest.mark.parametrize(
    ("most_considered", "simulations", "expected", "phases"),
    [
        (2, 6, [[0] * 3, [1, 1, 1], [2, 2, 2]], [(2, 1, 3, True)]),
        (3, 8, [[0] * 4, [1, 1, 1, 1], [2, 2, 2, 2], [3, 2, 2, 1]], [(2, 1, 4, True)]),
        (
            4,
            24,
            [[0] * 12, [1] * 12, [2] * 12, [3] * 4 + [2] * 6 + [0] * 2, [4] * 3 + [2] * 6 + [0] * 3],
            [(4, 1, 4, True), (2, 4, 9, True), (2, 9, 12, False)],
        ),
        (1, 3, [[0, 0, 0], [1, 1, 1]], [(1, 1, 3, True)]),
    ],
)
def test_rounds_have_all_simulations_of_sequential_halving(most_considered, simulations, expected, phases):
    rounds = passes.rounds_of(policies.considered_visits(most_considered, simulations))
    np.testing.assert_array_equal(rounds, expected)
    assert (rounds[2:].sum(-1) == simulations).all()
    assert passes.phases(rounds) == phases


def test_search_in_passes_equals_own_in_a_thousand_positions_if_all_actions_are_legal():
    ours, _ = found_in_tables("gumbel", "own", False)
    other, _ = found_in_tables("gumbel", "passes", False)
    assert_same(other, ours)


@pytest.mark.parametrize(("num_simulations", "least"), [(8, 0.98), (3, 1.0)])
def test_with_few_simulations_nearly_all_positions_are_searched_alike(num_simulations, least):
    """With one visit each before halving, a phase's second visit weighs most, and own compares scores before it."""
    make = partial(gumbel, WORLD, num_simulations=num_simulations, gumbel_scale=1.0, rescale_values=True)
    searches = (make(name, improved_value=False) for name in ("own", "passes"))
    ours, other = (jax.device_get(jax.jit(search)(*inputs_of(False))) for search in searches)
    assert (other.action == ours.action).mean() >= least
    assert np.isclose(other.policy, ours.policy, atol=3e-5).all(-1).mean() >= least - 0.03


def assert_same(other, ours):
    np.testing.assert_array_equal(other.action, ours.action)
    np.testing.assert_allclose(other.policy, ours.policy, atol=3e-5)
    np.testing.assert_allclose(other.value, ours.value, atol=3e-5)


LEGAL_AND_VISITS = {
    0: [],
    1: [32],
    2: [32, 32],
    3: [27, 27, 10],
    5: [26, 26, 4, 4, 4],
    8: [21, 21, 7, 7, 2, 2, 2, 2],
    16: [15, 15, 7, 7, 3, 3, 3, 3, *[1] * 8],
}
"""64 simulations of 16 actions: one visit of all, 2 more of 8, 4 more of 4, 8 more of 2; of 8 actions 2 visits of all,
5 more of 4, 14 more of 2. A forced move has half of them."""


def visits_of(num_legal):
    """The root's row where so many of 16 actions are legal, action a is worth -a and the network says 8."""

    def expand(params, key, action, embedding):
        zero = jnp.zeros(action.shape)
        depth = embedding + 1
        reward = jnp.where(depth == 1, -action.astype(jnp.float32), 0.0)
        return Node(jnp.ones((len(action), 16)) / 16, zero, depth, reward, zero + 1)

    zero, is_legal = jnp.zeros(len(num_legal)), jnp.arange(16) < jnp.array(num_legal)[:, None]
    root = Node(jnp.ones((len(num_legal), 16)) / 16, zero + 8, zero, zero, zero)
    search = partial(
        passes.visit,
        root,
        Simulator(lambda params, roots: root, expand),
        None,
        lambda row: jnp.where(is_legal, jnp.where(row.visits > 0, row.q, -jnp.arange(16.0)), -jnp.inf),
        lambda row: jnp.argmin(row.visits, axis=-1).astype(jnp.int32),
        rounds=passes.rounds_of(policies.considered_visits(16, 64)),
    )
    return jax.device_get(jax.jit(search)(jax.random.key(0)))


def test_visits_and_values_by_hand_for_any_number_of_legal_actions_alone_and_in_a_batch():
    row = visits_of(tuple(LEGAL_AND_VISITS))
    for game, (num_legal, expected) in enumerate(LEGAL_AND_VISITS.items()):
        np.testing.assert_array_equal(row.visits[game], expected + [0] * (16 - num_legal))
        np.testing.assert_allclose(row.q[game, :num_legal], -np.arange(num_legal), atol=1e-6)
        mean = (8 - np.dot(expected, np.arange(num_legal))) / (1 + sum(expected))
        np.testing.assert_allclose(row.value[game], mean, rtol=1e-6)
    alone = visits_of((16,))
    np.testing.assert_array_equal(alone.q[0], row.q[-1])
    np.testing.assert_array_equal(alone.value[0], row.value[-1])


def test_positions_with_any_number_of_legal_actions_are_searched_alike_in_one_batch():
    """All but forced moves, whose one action is right and is searched less."""
    ours, legal = found_in_tables("gumbel", "own", True)
    other, _ = found_in_tables("gumbel", "passes", True)
    is_choice = legal.sum(-1) > 1
    assert (~is_choice).sum() > 0 and (legal.sum(-1) < 4).mean() > 0.4
    assert (other.action == ours.action).mean() > 0.995
    assert np.isclose(other.policy, ours.policy, atol=3e-5).all(-1)[is_choice].mean() > 0.99
    assert np.isclose(other.value, ours.value, atol=3e-5)[is_choice].mean() > 0.99
    assert legal[np.arange(len(legal)), other.action].all() and (other.policy[~legal] == 0).all()


def test_the_program_has_only_one_loop_of_unknown_length():
    """For positions with few legal actions. After each turn of it a GPU waits for the host, except in a CUDA graph."""
    program = equations(jax.make_jaxpr(test_tree.gumbel(WORLD, "passes"))(*inputs_of(False)).jaxpr)
    assert [equation.primitive.name for equation in program].count("while") == 1


def test_search_in_passes_bounds_values_like_own():
    world = bounded(WORLD, 1.0)
    ours, other = (
        jax.device_get(jax.jit(test_tree.gumbel(world, name))(*inputs_of(False))) for name in ("own", "passes")
    )
    assert np.isclose(other.value, ours.value, atol=3e-5).mean() > 0.98  # values at a bound are ties
    assert np.abs(other.value).max() <= 1 + 1e-5


def test_every_simulation_draws_chance_anew():
    """New nodes have values uniform in [0, 1]: a mean of 16 has the spread 0.29 / 4, and one draw for all has 0.29."""
    zero, num_games = jnp.zeros(400), 400

    def expand(params, key, action, embedding):
        nothing = jnp.zeros(action.shape)
        prior = jnp.ones((len(action), 1))
        return Node(prior, jax.random.uniform(key, action.shape), nothing, nothing, nothing + 1)

    root = Node(jnp.ones((num_games, 1)), zero, zero, zero, zero)
    row = passes.visit(
        root,
        Simulator(lambda params, roots: root, expand),
        None,
        lambda row: jnp.zeros((num_games, 1)),
        lambda row: jnp.zeros(len(row.value), jnp.int32),
        jax.random.key(0),
        rounds=passes.rounds_of(policies.considered_visits(1, 16)),
    )
    assert np.std(row.q[:, 0]) < 0.12
