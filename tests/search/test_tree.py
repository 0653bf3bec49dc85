"""Our trees equal mctx's node for node, except for ties within rounding; and what every tree satisfies."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.ops.dirichlet import dirichlet
from muzero_jax.search import policies
from muzero_jax.search.rules import Row, SearchRules
from muzero_jax.search.simulator import Node, learned_model
from muzero_jax.search.tree import grow, row_of
from muzero_jax.types import QTransform, SearchRoots
from tests.reference import searches
from tests.reference.searches import BUDGET
from tests.reference.tabular import TABULAR, Table

NUM_ROOTS, NUM_ACTIONS, NUM_STATES = 1000, 5, 64
WORLD = learned_model(TABULAR, -1.0)


gumbel = partial(searches.gumbel, gumbel_scale=1.0)
puct = partial(searches.puct, temperature=1.0)
"""With sampled actions, from mctx's random numbers, and without Dirichlet noise, which has its own."""
MAKE = {"gumbel": gumbel, "puct": puct}


def random_table(generator):
    """A world in which no two numbers are equal, so that no choice is a tie."""
    shape = NUM_STATES, NUM_ACTIONS
    return Table(
        reward=np.where(generator.random(shape) < 0.2, generator.normal(size=shape), 0).astype(np.float32),
        successor=generator.integers(0, NUM_STATES, shape, dtype=np.int32),
        value=generator.uniform(-1, 1, NUM_STATES).astype(np.float32),
        policy_logits=generator.normal(size=shape).astype(np.float32),
    )


@cache
def inputs_of(has_illegal_actions):
    """1,000 roots of a random table, as a search takes them: (table, key, roots)."""
    generator = np.random.default_rng(0)
    table = random_table(generator)
    state = generator.integers(0, NUM_STATES, (NUM_ROOTS, 1), dtype=np.int32)
    legal = generator.random((NUM_ROOTS, NUM_ACTIONS)) < (0.6 if has_illegal_actions else 2)
    legal[:, 2] = True
    return table, jax.random.key(3), SearchRoots(jnp.asarray(state), jnp.asarray(legal), None)


@cache
def found_in_tables(kind, implementation, has_illegal_actions):
    inputs = inputs_of(has_illegal_actions)
    return jax.device_get(compiled(kind, implementation)(*inputs)), np.asarray(inputs[-1].legal_action_mask)


@cache
def compiled(kind, implementation):
    return jax.jit(MAKE[kind](WORLD, implementation))


def assert_same_search(ours, reference):
    np.testing.assert_array_equal(ours.tree.visits, reference.tree.children_visits.swapaxes(0, 1))
    np.testing.assert_array_equal(ours.action, reference.action)
    np.testing.assert_allclose(ours.policy, reference.policy, atol=3e-5)
    np.testing.assert_allclose(ours.value, reference.value, atol=3e-5)


@pytest.mark.parametrize("has_illegal_actions", [False, True])
@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_every_node_of_a_thousand_trees_is_visited_as_often_as_in_mctx(kind, has_illegal_actions):
    ours, _ = found_in_tables(kind, "own", has_illegal_actions)
    reference, _ = found_in_tables(kind, "mctx", has_illegal_actions)
    assert_same_search(ours, reference)
    assert (depths(ours.tree).max(0) > 3).mean() > 0.5  # trees worth comparing


def depths(tree):
    """[M, B]: moves from the root to each node."""
    depth = np.zeros_like(tree.parent)
    for node in range(1, len(depth)):
        depth[node] = 1 + np.take_along_axis(depth, tree.parent[node : node + 1], axis=0)[0]
    return depth


def test_the_improved_value_is_that_of_the_improved_policy_and_not_the_mean_of_the_simulations():
    found, _ = found_in_tables("gumbel", "own", False)
    root = jax.tree.map(jnp.asarray, row_of(found.tree))
    expected = (found.policy * policies.completed_q(root)).sum(-1)
    np.testing.assert_allclose(found.value, expected, atol=1e-5)
    assert np.abs(found.value - found.tree.value[0]).mean() > 0.05


def test_completed_q_by_hand():
    """Two of three actions were visited, once and three times, with prior 0.2 and 0.6; the network said 0.5.

    Their weighted Q is (0.2 * 1 - 0.6 * 1) / 0.8 = -0.5, and the mixed value (0.5 + 4 * -0.5) / 5 = -0.3.
    """
    row = Row(*(jnp.array([x]) for x in ([0.2, 0.6, 0.2], [1.0, 3.0, 0.0], [1.0, -1.0, 0.0], 0.5, 0.0)))
    np.testing.assert_allclose(policies.completed_q(row), [[1.0, -1.0, -0.3]], atol=1e-6)
    scaled = policies.scaled_q(row, QTransform(0.1, 50.0, rescale_values=True))
    np.testing.assert_allclose(scaled, [[5.3, 0.0, 5.3 * 0.35]], atol=1e-5)


def test_puct_scores_by_hand():
    """Q is 0.2 and 0.6, and the node's own value -0.2, so Q is stretched over [-0.2, 0.6]: to 0.5 and 1.

    Each action was visited once, which makes the square root that of 3; the bonus is halved by the visit.
    """
    row = Row(*(jnp.array([x]) for x in ([0.25, 0.75], [1.0, 1.0], [0.2, 0.6], 0.0, -0.2)))
    found = policies.puct_scores(row, pb_c_init=1.25, pb_c_base=9.0)
    weight = np.sqrt(3) * (1.25 + np.log((3 + 9 + 1) / 9))
    np.testing.assert_allclose(found, [[0.5 + weight * 0.25 / 2, 1 + weight * 0.75 / 2]], rtol=1e-6)


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_visits_children_and_parents_of_a_tree_agree(kind):
    """Visits are those of the children below, every node is a child of its parent, and roots visit legal actions."""
    found, legal = found_in_tables(kind, "own", True)
    tree, games = found.tree, np.arange(NUM_ROOTS)
    assert (tree.visits[0].sum(-1) == BUDGET).all()
    np.testing.assert_array_equal(tree.count, tree.visits.sum(-1) + 1)
    assert (tree.visits[0][~legal] == 0).all()
    for node in range(1, BUDGET + 1):
        edge = tree.parent[node], games, tree.action[node]
        assert (tree.children[edge] == node).all()
        np.testing.assert_array_equal(tree.visits[edge], tree.count[node])
        np.testing.assert_allclose(tree.q[edge], tree.reward[node] - tree.value[node], atol=1e-6)


@pytest.mark.parametrize("alpha", [0.03, 0.3, 2.0])
def test_dirichlet_noise_has_the_mean_and_the_variance_of_its_distribution(alpha):
    """1/A, and (1/A)(1 - 1/A) / (A alpha + 1), over 20,000 rows of four."""
    rows = np.asarray(dirichlet(jax.random.key(0), alpha, (20_000, 4)), np.float64)
    np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(rows.mean(0), 0.25, atol=0.01)
    np.testing.assert_allclose(rows.var(0), 0.25 * 0.75 / (4 * alpha + 1), rtol=0.05)


def test_sequential_halving_by_hand():
    """Four actions and eight simulations: each once, then the better two twice more; one action gets every visit."""
    table = np.asarray(policies.considered_visits(4, 8))
    assert table.shape == (5, 8)
    np.testing.assert_array_equal(table[4], [0, 0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(table[2], [0, 0, 1, 1, 2, 2, 3, 3])
    np.testing.assert_array_equal(table[1], range(8))


@pytest.mark.parametrize(("stop_at_ends", "deepest"), [(True, 1), (False, BUDGET)])
def test_simulations_stop_at_an_end_only_if_the_rules_say_so(stop_at_ends, deepest):
    """A game of one move, which wins: its one action is searched 24 times, at depth 1 or ever deeper; Q is the same."""

    def expand(params, key, action, embedding):
        zero = jnp.zeros(action.shape)
        return Node(prior=jnp.ones((2, 1)), value=zero, embedding=embedding, reward=zero + 1, discount=zero)

    root = Node(jnp.ones((2, 1)), jnp.zeros(2), jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))
    only = jnp.zeros(2, jnp.int32)
    rules = SearchRules(lambda row, simulation: only, lambda row: only, stop_at_ends)
    world = WORLD._replace(expand=expand)
    tree = jax.jit(lambda key: grow(root, world, None, rules, BUDGET, key))(jax.random.key(0))
    assert depths(jax.device_get(tree)).max() == deepest
    np.testing.assert_array_equal(tree.q[0], 1)
    np.testing.assert_array_equal(tree.visits[0], BUDGET)
