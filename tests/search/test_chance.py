"""Chance nodes: trees against those of mctx's stochastic policy and of plain loops, and what every tree satisfies."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from jax.experimental import checkify
from scipy.stats import chisquare

from muzero_jax.algorithm import make_algorithm, playing
from muzero_jax.algorithm.heads import DISCOUNT, LEGALITY
from muzero_jax.search.bounded import bounded
from muzero_jax.search.rules import Row, least_taken
from muzero_jax.search.simulator import ground_truth_model, learned_chance_model, learned_model, tie_breaks
from muzero_jax.search.tree import Tree
from muzero_jax.types import SearchRoots
from tests.reference import chance_tables, tabular, tiny_run
from tests.reference.chance_tables import MODEL, State, make_game, make_table, random_table
from tests.reference.programs import equations
from tests.reference.searches import BUDGET, PUCT, gumbel, puct

NUM_ROOTS = 100
SIZES = {"5x4": (5, 4, -1.0), "2x10": (2, 10, 0.97)}
"""Actions, outcomes, the discount between two moves (of two players, or of one)."""


both = pytest.mark.parametrize("make", [gumbel, puct], ids=["gumbel", "puct"])


def learned(table, discount=-1.0):
    num_actions, num_outcomes = table.reward.shape[1], table.chance_logits.shape[1]
    return learned_chance_model(MODEL._replace(num_codes=num_outcomes), discount, num_actions=num_actions)


def rules(table):
    return ground_truth_model(make_game(table), MODEL)


WORLDS = {"learned": learned, "rules": rules}
each_world = pytest.mark.parametrize("kind", WORLDS)
both_with_a_world_each = pytest.mark.parametrize(  # for what a search does, whatever its world
    ("kind", "make"), [("rules", gumbel), ("learned", puct)], ids=["gumbel-rules", "puct-learned"]
)


def roots_of(table, states, legal=None):
    """Positions of the table, as either world takes them."""
    states = np.asarray(states, np.int32)
    legal = np.ones((len(states), table.reward.shape[1]), bool) if legal is None else np.asarray(legal)
    never = np.zeros(len(states), bool)
    return jax.device_put(SearchRoots(np.float32(states)[:, None], legal, State(states, never)))


def look(search, table, states, seed=0, legal=None):
    return jax.device_get(jax.jit(search)(table, jax.random.key(seed), roots_of(table, states, legal)))


@cache
def searched(kind, make):
    """A search of the 64 states of a random table, and the table."""
    table = random_table(0, 3, 5)
    return look(make(WORLDS[kind](table)), table, np.arange(64)), table


# --- mctx's trees -----------------------------------------------------------------------------------------------------


def hundred_roots(table):
    generator = np.random.default_rng(1)
    legal = generator.random((NUM_ROOTS, table.reward.shape[1])) < 0.7
    legal[:, 1] = True
    return roots_of(table, generator.integers(0, len(table.value), NUM_ROOTS), legal)


@cache
def own_trees(size):
    num_actions, num_outcomes, discount = SIZES[size]
    table = random_table(0, num_actions, num_outcomes)
    search = jax.jit(puct(learned(table, discount)))
    return jax.device_get(search(table, jax.random.key(0), hundred_roots(table))), table


def stochastic_policy(table, roots, *, discount):
    """mctx's: a reward comes with the outcome there, so an afterstate's value has that of the action before it."""
    num_actions = table.reward.shape[1]

    def decide(params, key, action, state):
        output = MODEL.recurrent_inference(params, state, jnp.clip(action, 0, num_actions - 1))
        value, reward = output.value_logits[:, 0], output.reward_logits[:, 0]
        afterstate = output.embedding, reward
        return mctx.DecisionRecurrentFnOutput(
            chance_logits=output.extras["chance_logits"], afterstate_value=value + reward
        ), afterstate

    def chance_acts(params, key, outcome, afterstate):
        embedding, reward = afterstate
        output = MODEL.recurrent_inference(params, embedding, num_actions + jnp.maximum(outcome, 0))
        value = output.value_logits[:, 0]
        step = mctx.ChanceRecurrentFnOutput(
            action_logits=output.policy_logits, value=value, reward=reward, discount=jnp.full_like(value, discount)
        )
        return step, output.embedding

    output = MODEL.initial_inference(table, roots.observation)
    root = mctx.RootFnOutput(
        prior_logits=output.policy_logits, value=output.value_logits[:, 0], embedding=output.embedding
    )
    return mctx.stochastic_muzero_policy(
        table,
        jax.random.key(0),
        root,
        decide,
        chance_acts,
        num_simulations=BUDGET,
        invalid_actions=~roots.legal_action_mask,
        dirichlet_fraction=0.0,
        **PUCT,
    )


@pytest.mark.parametrize("size", SIZES)
def test_every_node_of_a_hundred_trees_equals_mctxs(size):
    (found, table), (num_actions, _, discount) = own_trees(size), SIZES[size]
    policy = jax.jit(partial(stochastic_policy, discount=discount))
    reference = jax.device_get(policy(table, hundred_roots(table)))
    tree, theirs = found.tree, jax.tree.map(lambda x: np.asarray(x).swapaxes(0, 1), reference.search_tree)
    by_outcome = tree.is_chance[tree.parent, np.arange(NUM_ROOTS)]
    np.testing.assert_array_equal(tree.is_chance, ~theirs.embeddings.is_decision_node)
    np.testing.assert_array_equal(tree.parent[1:], theirs.parents[1:])
    np.testing.assert_array_equal((tree.action + num_actions * by_outcome)[1:], theirs.action_from_parent[1:])
    np.testing.assert_array_equal(tree.count, theirs.node_visits)
    np.testing.assert_array_equal(tree.visits[0, :, :num_actions], theirs.children_visits[0])
    np.testing.assert_allclose(tree.value + tree.is_chance * tree.reward, theirs.node_values, atol=1e-5)
    np.testing.assert_allclose(found.policy, reference.action_weights, atol=1e-6)
    assert tree.is_chance.any(0).all() and (tree.count[tree.is_chance] > 2).any()  # trees worth comparing
    assert (theirs.parents[1:] > 1).mean() > 0.3


def test_search_in_passes_equals_own_for_a_learned_model_with_chance():
    table = random_table(0, 5, 4)
    ours, other = (look(gumbel(learned(table), name), table, np.arange(64)) for name in ("own", "passes"))
    np.testing.assert_array_equal(ours.action, other.action)
    np.testing.assert_allclose(ours.policy, other.policy, atol=1e-5)
    np.testing.assert_allclose(ours.value, other.value, atol=1e-5)


# --- the rules in plain loops -----------------------------------------------------------------------------------------


def test_every_node_of_a_ground_truth_tree_equals_that_of_plain_loops():
    table, states = random_table(0, 3, 5), np.arange(40)
    tree = look(puct(rules(table)), table, states).tree
    for game in states:
        plain = chance_tables.search_plainly(table, game, BUDGET, **PUCT)
        assert set(np.nonzero(tree.count[:, game])[0]) == set(plain)
        for slot, node in plain.items():
            value, count = node.mean
            where = f"game {game}, node {slot}"
            assert tree.is_chance[slot, game] == node.is_chance, where
            assert tree.embedding[0].index[slot, game] == node.index, where
            assert tree.count[slot, game] == count, where
            np.testing.assert_array_equal(tree.visits[slot, game, : len(node.visits)], node.visits, where)
            np.testing.assert_allclose(tree.value[slot, game], value, atol=1e-5, err_msg=where)
            for action, (child, reward, discount) in node.children.items():
                assert tree.children[slot, game, action] == child, where
                assert (tree.parent[child, game], tree.action[child, game]) == (slot, action), where
                np.testing.assert_allclose(tree.reward[child, game], reward, rtol=1e-6)
                assert tree.discount[child, game] == discount, where


@both
def test_with_the_ground_truth_model_the_network_is_not_used_at_chance_nodes(make):
    """Its output there is NaN, which would make every mean above the node NaN."""
    found, table = searched("rules", make)
    shown = jax.vmap(make_game(table).observe)(State(jnp.arange(2), jnp.ones(2)))
    assert np.isnan(MODEL.initial_inference(table, shown).value_logits).all()
    tree = found.tree
    assert tree.is_chance.sum() > 64
    for numbers in (found.policy, found.value, tree.value, tree.raw_value, tree.q, tree.prior):
        assert np.isfinite(numbers).all()


# --- the choice of an outcome -----------------------------------------------------------------------------------------


def counts_after(probabilities, num_visits):
    """[N + 1, C]: how often the rule took each outcome of one afterstate, after every number of visits."""
    prior = np.float32(probabilities)[None]
    prior, zeros = jax.device_put((prior, np.zeros_like(prior)))

    def visit(visits, _):
        row = Row(prior, visits, zeros, zeros[:, 0], zeros[:, 0], jnp.ones(1, bool))
        return visits.at[0, least_taken(row)[0]].add(1), visits[0]

    return np.asarray(jax.lax.scan(visit, zeros, length=num_visits + 1)[1])


def test_visits_of_each_outcome_stay_near_its_share():
    """N p - 1 < n <= (N + C - 1) p, in every tree: the likely come first, and many that are unlikely wait."""
    for size in SIZES:
        tree, num_outcomes = own_trees(size)[0].tree, SIZES[size][1]
        visits, p = (x[tree.is_chance][:, :num_outcomes] for x in (tree.visits, tree.prior))
        total = visits.sum(-1, keepdims=True)
        assert total.max() >= 5 and (visits > total * p - 1 - 1e-4).all()
        assert (visits <= (total + num_outcomes - 1) * p + 1e-4).all()
    taken = counts_after([0.9] + [0.01] * 10, 385)[:, 0]
    assert taken[80] == 80 and taken[385] == 355  # for shares of 72 and of 346.5


def test_ties_between_outcomes_break_in_one_order_per_position_and_uniformly_over_positions():
    observations = np.random.default_rng(0).random((2100, 5, 3)) < 0.5
    breaks = jax.jit(partial(tie_breaks, num_outcomes=21))
    order = np.asarray(breaks(observations))
    first = order.argmax(-1)
    assert chisquare(np.bincount(first, minlength=21)).pvalue > 0.01
    np.testing.assert_array_equal(order, breaks(observations))
    np.testing.assert_array_equal(order[7:9], breaks(np.float32(observations[7:9])))
    assert (np.diff(np.sort(order, axis=-1), axis=-1) > 0).all(), "no ties are left"
    assert (order > 1 - 1e-5).all() and (order <= 1).all(), "and unequal outcomes keep their order"


def test_a_search_of_few_visits_is_not_biased_by_the_order_of_the_outcomes():
    """A die that pays its face: one visit at each of many positions averages to the mean of the faces."""
    faces, count = np.float32([6, 5, 4, 3, 2, 1, 0]), 512
    table = make_table(count, 1, 1, 7, outcome_reward=faces[None])
    found = look(gumbel(rules(table), num_simulations=1), table, np.arange(count))
    assert set(found.tree.q[0, :, 0].tolist()) == set(faces.tolist())
    assert found.tree.q[0, :, 0].mean() == pytest.approx(faces.mean(), abs=0.3)


@both_with_a_world_each
def test_the_choice_of_outcomes_does_not_depend_on_the_key(kind, make):
    table = random_table(0, 3, 5)
    search = make(WORLDS[kind](table))
    first, *others = (look(search, table, np.arange(16), seed) for seed in range(3))
    for other in others:
        jax.tree.map(np.testing.assert_array_equal, first, other)


# --- totality, and batches --------------------------------------------------------------------------------------------


@each_world
def test_no_index_at_any_node_gives_nan(kind):
    table = random_table(0, 3, 5)
    world = WORLDS[kind](table)
    root, expand = jax.jit(world.root)(table, roots_of(table, np.arange(16))), jax.jit(world.expand)
    below = expand(table, jax.random.key(0), jnp.zeros(16, jnp.int32), root.embedding)
    above = below if below.chance_parent is None else below.chance_parent.afterstate
    assert above.is_chance.any()
    for embedding in (root.embedding, below.embedding, above.embedding):
        for index in (-1, *range(7), 1000):
            node = expand(table, jax.random.key(0), jnp.full(16, index, jnp.int32), embedding)
            for leaf in jax.tree.leaves(node):
                assert np.isfinite(np.asarray(leaf, np.float64)).all()


@both_with_a_world_each
def test_no_search_computes_a_nan_even_in_results_that_it_discards(kind, make):
    """The first outcomes are impossible, so an afterstate has no prior in the columns of a decision's actions."""
    table = random_table(0, 2, 6)
    table.chance_logits[:, :3] = -np.inf
    roots = roots_of(table, np.arange(4))
    search = checkify.checkify(make(WORLDS[kind](table), num_simulations=8), errors=checkify.nan_checks)
    error, found = jax.device_get(jax.jit(search)(table, jax.random.key(0), roots))
    error.throw()
    assert (found.tree.visits[found.tree.is_chance][:, :3] == 0).all()


# --- signs ------------------------------------------------------------------------------------------------------------

BY_HAND = make_table(
    *(3, 1, 2, 2),
    # State 0's one action leads to afterstate 0, of which chance makes state 1 or state 2; 1's to afterstate 1.
    reward=[[0.1], [0.3], [0.0]],
    after=[[0], [1], [1]],
    successor=[[1, 2], [2, 2]],
    outcome_reward=[[0.0, 0.05], [0.0, 0.0]],
    outcome_discount=[[-1.0, -1.0], [-1.0, -1.0]],
    value=[0.2, 0.6, -0.8],
    after_value=[0.4, 0.2],
    chance_logits=np.log(np.float32([[0.7, 0.3], [0.5, 0.5]])),
)


@both
def test_an_afterstates_value_is_for_the_player_who_moved(make):
    """Five simulations. 1: the afterstate, 0.4 for who moved: the root gets 0.1 + 0.4.

    2: likely state 1, worth 0.6 to the other: -0.6, the root 0.1 - 0.6. 3: state 1 again, as 0.7 / 2 > 0.3. The other's
    move there pays 0.3 and leads to an afterstate worth 0.2 *to the other*: state 1 gets 0.5, the first afterstate
    -0.5, the root -0.4. 4: state 2, as 0.7 / 3 < 0.3: 0.8, the root 0.9. 5: state 1 again, as 0.7 / 3 > 0.3 / 2. Its
    afterstate's first outcome, state 2, is worth -0.8 to the first player, so 0.8 to the other: state 1 gets 0.3 + 0.8,
    the first afterstate -1.1, the root -1.0.
    """
    tree = look(make(learned(BY_HAND), num_simulations=5), BY_HAND, [0]).tree
    np.testing.assert_array_equal(tree.is_chance[:, 0], [False, True, False, True, False, False])
    np.testing.assert_array_equal(tree.action[1:, 0], [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(tree.visits[1, 0], [3, 1])
    np.testing.assert_allclose(tree.value[0, 0], (0.2 + 0.5 - 0.5 - 0.4 + 0.9 - 1.0) / 6, atol=1e-6)
    np.testing.assert_allclose(tree.value[1, 0], (0.4 - 0.6 - 0.5 + 0.8 - 1.1) / 5, atol=1e-6)
    np.testing.assert_allclose(tree.value[2, 0], (0.6 + 0.5 + 1.1) / 3, atol=1e-6)
    np.testing.assert_allclose(tree.value[3, 0], (0.2 + 0.8) / 2, atol=1e-6)


@both
def test_with_the_ground_truth_model_a_simulation_passes_through_an_afterstate(make):
    """Three simulations. 1: state 1, worth 0.6 to the other: the root gets 0.1 - 0.6.

    2: state 1 again, whose move leads over its afterstate to state 2, worth 0.8 to the other: state 1 gets 0.3 + 0.8,
    the root 0.1 - 1.1. 3: state 2, as 0.7 / 3 < 0.3, and chance pays 0.05: the afterstate gets 0.05 + 0.8, the root
    0.95.
    """
    tree = look(make(rules(BY_HAND), num_simulations=3), BY_HAND, [0]).tree
    np.testing.assert_array_equal(tree.is_chance[:, 0], [False, True, False, True, False, False, False])
    np.testing.assert_array_equal(tree.count[:, 0], [4, 3, 2, 1, 1, 0, 1])
    np.testing.assert_array_equal(tree.visits[1, 0], [2, 1])
    np.testing.assert_allclose(tree.value[0, 0], (0.2 - 0.5 - 1.0 + 0.95) / 4, atol=1e-6)
    np.testing.assert_allclose(tree.value[1, 0], (-0.6 - 1.1 + 0.85) / 3, atol=1e-6)


def test_a_move_has_the_reward_and_discount_1_and_an_outcome_the_signed_discount():
    """The move's edge has the reward and discount 1, the outcome's no reward and the signed discount."""
    world, key, zero = learned(BY_HAND, -0.9), jax.random.key(0), jnp.zeros(1, jnp.int32)
    root, expand = jax.jit(world.root)(BY_HAND, roots_of(BY_HAND, [0])), jax.jit(world.expand)
    after = expand(BY_HAND, key, zero, root.embedding)
    state = expand(BY_HAND, key, zero + 1, after.embedding)
    assert after.is_chance and not state.is_chance and not root.is_chance
    np.testing.assert_allclose((after.reward[0], after.discount[0]), (0.1, 1.0), rtol=1e-6)
    np.testing.assert_allclose((state.reward[0], state.discount[0]), (0.0, -0.9), rtol=1e-6)
    np.testing.assert_allclose(after.prior, [[0.7, 0.3]], rtol=1e-6)
    np.testing.assert_allclose(state.prior, [[1.0, 0.0]])


def test_the_last_code_of_an_encoder_ends_the_game():
    model = MODEL._replace(num_codes=2, encode_chance=lambda *inputs: inputs)
    world, key, zero = learned_chance_model(model, -0.9, num_actions=1), jax.random.key(0), jnp.zeros(1, jnp.int32)
    after = world.expand(BY_HAND, key, zero, world.root(BY_HAND, roots_of(BY_HAND, [0])).embedding)
    discounts = [world.expand(BY_HAND, key, zero + code, after.embedding).discount for code in (0, 1)]
    np.testing.assert_allclose(discounts, [[-0.9], [0.0]])


def test_a_learned_model_may_predict_the_discount_of_an_outcome():
    """It is gamma times the expected sign; an afterstate's stays 1. If all moves seem illegal, all count."""

    def recurrent_inference(params, embedding, index):
        output = MODEL.recurrent_inference(params, embedding, index)
        sign = jnp.broadcast_to(jnp.array([0.0, 0.0, 50.0]), (len(index), 3))
        return output._replace(
            extras=output.extras | {"discount_logits": sign, "legal_logits": jnp.full_like(output.policy_logits, -1.0)}
        )

    model = MODEL._replace(recurrent_inference=recurrent_inference, num_codes=2, heads=(LEGALITY, DISCOUNT))
    world = learned_chance_model(model, 0.5, num_actions=1)
    key, zero, expand = jax.random.key(0), jnp.zeros(1, jnp.int32), jax.jit(world.expand)
    after = expand(BY_HAND, key, zero, jax.jit(world.root)(BY_HAND, roots_of(BY_HAND, [0])).embedding)
    state = expand(BY_HAND, key, zero, after.embedding)
    np.testing.assert_allclose((after.discount[0], state.discount[0]), (1.0, 0.5), rtol=1e-6)
    np.testing.assert_allclose(state.prior, [[1.0, 0.0]])


# --- bounds, implementations, other games -----------------------------------------------------------------------------


@each_world
def test_no_value_leaves_the_range_of_a_games_returns(kind):
    found, table = searched(kind, gumbel)
    plain = found.tree
    tree = look(gumbel(bounded(WORLDS[kind](table), 1.0)), table, np.arange(64)).tree
    assert np.abs(plain.q).max() > 1.5
    for numbers in (tree.q, tree.value):
        assert 0.5 < np.abs(numbers).max() <= 1 + 1e-5


@each_world
def test_bounds_change_nothing_if_all_values_are_within_them(kind):
    table = random_table(0, 3, 5)._replace(reward=np.zeros((64, 3), np.float32))
    world = WORLDS[kind](table._replace(outcome_reward=np.zeros((96, 5), np.float32)))
    plain, inside = (look(gumbel(w, num_simulations=12), table, range(8)) for w in (world, bounded(world, 1.0)))
    np.testing.assert_array_equal(plain.tree.visits, inside.tree.visits)
    np.testing.assert_allclose(plain.value, inside.value, atol=1e-6)


@pytest.mark.parametrize("make", [partial(gumbel, rescale_values=True), puct], ids=["gumbel", "puct"])
def test_columns_beyond_the_actions_have_no_effect_at_decision_nodes(make):
    """Two actions with ten outcomes or with two give the same trees, also if Q is rescaled to a node's range."""
    wide_table = random_table(0, 2, 10)
    wide_table.chance_logits[:, 2:] = -np.inf
    cut = {name: getattr(wide_table, name)[:, :2] for name in ("chance_logits", "successor")}
    wide, slim = (
        look(make(learned(t), num_simulations=96), t, range(64)) for t in (wide_table, wide_table._replace(**cut))
    )
    np.testing.assert_array_equal(wide.tree.visits[..., :2], slim.tree.visits)
    np.testing.assert_allclose(wide.policy, slim.policy, atol=1e-6)
    np.testing.assert_allclose(wide.value, slim.value, atol=1e-6)
    assert not wide.tree.visits[..., 2:].any()


def algorithm_of(engine, model):
    search = replace(tiny_run.CONFIG.search, engine=engine)
    config = replace(tiny_run.CONFIG, model=model, search=search)
    return make_algorithm(config, make_game(random_table(0, 3, 5)), MODEL._replace(num_codes=5))


@pytest.mark.parametrize("model", ["rules", "learned_outcomes"])
def test_the_mctx_engine_is_refused_for_models_with_known_chance_outcomes(model):
    with pytest.raises(ValueError, match="--search.engine own"):
        algorithm_of("mctx", model).search()


def test_with_chance_own_searches_the_ground_truth_model_instead_of_passes(monkeypatch):
    monkeypatch.delitem(playing.GUMBEL_SEARCHES, "passes")
    algorithm_of("passes", "rules").search()
    with pytest.raises(KeyError):
        algorithm_of("passes", "learned_outcomes").search()


@both
def test_the_program_of_a_game_without_chance_carries_nothing_for_chance(make):
    """Its simulations carry their number and the twelve arrays of a tree, none of them boolean."""
    table = tabular.make_table([[0.0] * 3] * 2, [[1] * 3] * 2, [0.0, 0.5])
    roots = SearchRoots(jnp.zeros((4, 1), jnp.int32), jnp.ones((4, 3), bool), None)
    program, found = jax.make_jaxpr(make(learned_model(tabular.TABULAR, -1.0)), return_shape=True)(
        table, jax.random.key(0), roots
    )
    assert found.tree.is_chance is None
    loop = next(equation for equation in equations(program.jaxpr) if equation.params.get("length") == BUDGET)
    carried = [variable.aval for variable in loop.outvars]
    assert len(carried) == len(Tree._fields) - 1 + 1 and not any(x.dtype == bool for x in carried)
    assert "pad" not in {equation.primitive.name for equation in equations(program.jaxpr)}
