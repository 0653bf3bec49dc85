"""Planning with the ground-truth model, and what a learned model predicts of legality and discounts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm.heads import DISCOUNT, LEGALITY
from muzero_jax.games.environment import make_environment
from muzero_jax.games.states import in_form
from muzero_jax.search.simulator import expected_sign, ground_truth_model, learned_model
from muzero_jax.types import Afterstate, Chance, Environment, NetworkOutput, Step
from tests.reference.models import make_network, random_params
from tests.reference.searches import gumbel, puct

ENVIRONMENT = make_environment("tic_tac_toe")
MODEL = make_network("mlp", ENVIRONMENT)
WORLD = ground_truth_model(ENVIRONMENT, MODEL)
PARAMS = jax.tree.map(jnp.zeros_like, random_params(MODEL))  # a uniform prior and value 0 everywhere


def make_look(make, engine):
    """A search with the ground-truth model, compiled when it is first asked."""
    run = jax.jit(make(WORLD, engine, num_simulations=48))
    return lambda states, params=PARAMS: jax.device_get(run(params, jax.random.key(0), ENVIRONMENT.roots(states)))


def after(*actions):
    """The position after some moves, as a batch of one."""
    state = ENVIRONMENT.init(jax.random.key(0))
    for action in actions:
        state = jax.jit(ENVIRONMENT.move)(state, jnp.int32(action)).state
    return jax.tree.map(lambda x: x[None], state)


@pytest.fixture(scope="module", params=[partial(gumbel, max_num_considered_actions=9), puct], ids=["gumbel", "puct"])
def make(request):
    return request.param


@pytest.fixture(scope="module")
def look(make):
    return make_look(make, "own")


@pytest.fixture(scope="module")
def reference(make):
    return make_look(make, "mctx")


def test_with_a_uniform_prior_search_finds_the_win_and_parries_the_threat(look):
    # 0 1 2
    # 3 4 5   the first player has 0 and 1, the second 3 and 4, and it is the first's move: 2 wins.
    assert look(after(0, 3, 1, 4)).action[0] == 2
    # The first player has 0 and 1, the second 4: it must answer at 2.
    assert look(after(0, 4, 1)).action[0] == 2


def test_nodes_are_legal_moves_or_lie_past_an_end_without_reward(look):
    """Three cells are left, so the root has at most three children."""
    tree = look(after(0, 4, 1, 2, 6, 3)).tree
    assert (tree.visits[0, 0] > 0).sum() <= 3
    for node in range(1, 49):
        parent, action = tree.parent[node, 0], tree.action[node, 0]
        game_over = parent > 0 and tree.discount[parent, 0] == 0
        assert game_over or tree.embedding[0].legal_action_mask[parent, 0, action]
        if game_over:
            assert tree.reward[node, 0] == 0


def test_a_node_carries_the_rules_reward_and_signed_discount():
    states = after(0, 3, 1, 4)
    biased = random_params(MODEL)
    assert jax.jit(WORLD.root)(biased, ENVIRONMENT.roots(states)).value[0] != 0
    expand, embedding = jax.jit(WORLD.expand), (states, jnp.zeros(1, bool))
    won = expand(biased, jax.random.key(0), jnp.array([2]), embedding)
    goes_on = expand(biased, jax.random.key(0), jnp.array([8]), embedding)
    assert (won.reward[0], won.discount[0]) == (1, 0)
    assert won.value[0] == 0  # whatever the network says of a game that is over
    assert (goes_on.reward[0], goes_on.discount[0]) == (0, -1)
    assert goes_on.value[0] != 0
    assert ((goes_on.prior[0] > 0) == goes_on.embedding[0].legal_action_mask[0]).all()
    np.testing.assert_allclose(goes_on.prior[0].sum(), 1, rtol=1e-5)


@pytest.mark.parametrize("actions", [(0, 4, 1), (0, 4, 1, 2, 6, 3)])
def test_every_node_equals_mctxs_with_the_ground_truth_model(look, reference, actions):
    """With random weights, so that nothing is tied; ends included."""
    params = random_params(MODEL)
    states = after(*actions)
    own, mctxs = look(states, params), reference(states, params)
    np.testing.assert_array_equal(own.tree.visits[:, 0], mctxs.tree.children_visits[0])
    assert own.action == mctxs.action and states.legal_action_mask[0, own.action[0]]
    np.testing.assert_allclose(own.policy, mctxs.policy, atol=1e-5)
    np.testing.assert_allclose(own.value, mctxs.value, atol=1e-5)


def chance_before_every_position(state_is_last):
    """Listed chance of two outcomes that change nothing; it earns nothing, and the move before it 1."""
    return Chance(
        2,
        move=lambda state, action: Afterstate(
            state + 1, jnp.float32(1), jnp.float32(1), jnp.bool_(False), jnp.bool_(True)
        ),
        probabilities=lambda state: jnp.full(2, 0.5),
        resolve=lambda state, outcome: Step(state, jnp.float32(0), jnp.float32(0.9), state_is_last(state)),
    )


@pytest.mark.parametrize("chance", [None, chance_before_every_position(lambda state: state >= 3)], ids=["", "chance"])
def test_a_time_limit_is_no_end_however_long_is_searched_past_it(chance):
    """Each move earns 1, gamma is 0.9, and every position has the value 10 = 1 + 0.9 * 10; the third move is the last.

    If moves past the limit led to an end, every further simulation would bring the values down.
    """

    def move(state, action, key=None):
        return Step(state + 1, jnp.float32(1.0), jnp.float32(0.9), state >= 2)

    game = in_form(
        Environment(
            name="limited",
            init=lambda key: jnp.int32(0),
            move=move,
            observe=lambda state: jnp.full(1, state, jnp.float32),
            legal=lambda state: jnp.ones(2, bool),
            num_actions=2,
            num_players=1,
            observation_shape=(1,),
            discount=0.9,
            chance=chance,
        )
    )

    def judge(params, observation):
        count = len(observation)
        return NetworkOutput(observation, jnp.zeros((count, 2)), jnp.full((count, 1), 10.0), jnp.zeros((count, 1)))

    model = MODEL._replace(initial_inference=judge, to_scalar=lambda logits: logits[..., 0], heads=())
    for engine in ("own", "passes") if chance is None else ("own",):
        search = gumbel(ground_truth_model(game, model), engine, num_simulations=32)
        last = jax.tree.map(lambda x: x[None], game.move(game.move(game.init(jax.random.key(0)), 0).state, 0).state)
        found = jax.jit(search)(None, jax.random.key(0), game.roots(last))
        np.testing.assert_allclose(found.value, 10.0, rtol=1e-5)


# --- what a learned model predicts ------------------------------------------------------------------------------------


def predicting(legal_logits, discount_logits, heads=None):
    """One new node of `learned_model` with gamma 0.5, from a model that says this and by default has these heads."""
    output = NetworkOutput(jnp.zeros((1, 1)), jnp.ones((1, 1)), jnp.ones((1, 1)), jnp.zeros((1, 3)))
    given = {"legal_logits": legal_logits, "discount_logits": discount_logits}
    output = output._replace(extras={name: jnp.array([logits]) for name, logits in given.items() if logits is not None})
    model = MODEL._replace(recurrent_inference=lambda *_: output, to_scalar=lambda logits: logits[..., 0])
    said = tuple(head for head in (LEGALITY, DISCOUNT) if head.output in output.extras)
    world = learned_model(model._replace(heads=said if heads is None else heads), 0.5)
    return world.expand(None, jax.random.key(0), jnp.zeros(1, jnp.int32), None)


def test_a_move_predicted_to_be_illegal_has_no_prior_unless_all_are():
    np.testing.assert_allclose(predicting([3.0, -1.0, 0.5], None).prior, [[0.5, 0, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(predicting([-3.0, -1.0, -0.5], None).prior, [[1 / 3] * 3], rtol=1e-6)
    np.testing.assert_allclose(predicting(None, None).prior, [[1 / 3] * 3], rtol=1e-6)


def test_a_predicted_discount_is_gamma_times_the_expected_sign():
    for logits, wanted in (([50.0, 0, 0], -0.5), ([0, 50.0, 0], 0.0), ([0, 0, 50.0], 0.5), ([1.0, 0, 1.0], 0.0)):
        np.testing.assert_allclose(predicting(None, logits).discount, [wanted], atol=1e-6)
    np.testing.assert_allclose(predicting(None, None).discount, [0.5])


def test_an_expected_sign_is_no_matrix_product_which_accelerators_round():
    extras = {"discount_logits": jnp.zeros((2, 3))}
    assert "dot_general" not in str(jax.make_jaxpr(partial(expected_sign, num_games=2))(extras))


def test_what_a_network_says_without_being_asked_is_ignored():
    node = predicting([1.0, -1.0, -1.0], [9.0, 0.0, 0.0], heads=())
    np.testing.assert_allclose(node.prior, [[1 / 3] * 3], rtol=1e-6)
    assert node.discount == 0.5
