"""Golden trees of a tabular model, the sign of the opponent's reply, legality at the root, and noise.

The tables are params, so that one compiled search serves many tests.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.search import policies
from muzero_jax.search.simulator import learned_model
from muzero_jax.types import SearchRoots
from tests.reference.searches import gumbel, puct
from tests.reference.tabular import TABULAR, make_bandit, make_table

ARMS = [0.1, 0.9, 0.3, 0.5]
BUDGET = 8
NO_TIES = [0.03, 0.02, 0.01, 0.0]


def make_searches(discount=-1.0, noise=0.0, num_simulations=BUDGET, **of_gumbel):
    """Both searches, compiled when first called."""
    world, budget = learned_model(TABULAR, discount), {"num_simulations": num_simulations}
    searches = {
        "gumbel": gumbel(world, value_scale=0.1, improved_value=False, gumbel_scale=noise, **budget, **of_gumbel),
        "puct": puct(world, dirichlet_fraction=0.5 * noise, temperature=noise, **budget),
    }
    return {name: jax.jit(lambda *inputs, f=f: f(*inputs)._replace(tree=None)) for name, f in searches.items()}


QUIET = make_searches()
NOISY = make_searches(noise=1.0)
both = pytest.mark.parametrize("name", ["gumbel", "puct"])


def look_at(searches, name, table, states, legal, seed=0):
    """The search of four positions of a table."""
    key = jax.random.key(seed, impl="rbg")  # compiles in a fraction of threefry's time
    roots = SearchRoots(jnp.array(states, jnp.int32)[:, None], jnp.array(legal, bool), None)
    return jax.device_get(searches[name](table, key, roots))


def look(searches, name, table, legal=(1, 1, 1, 1), seed=0):
    """The search of state 0, in the first of four rows."""
    return jax.tree.map(lambda x: x[0], look_at(searches, name, table, [0] * 4, [legal] * 4, seed))


# --- golden trees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, arms", [("gumbel", ARMS), ("puct", [0.0, 1.0, 0.0, 0.0])])
def test_the_best_arm_of_a_bandit_is_chosen(name, arms):
    for shift in range(4):
        arms = np.roll(arms, shift)
        found = look(QUIET, name, make_bandit(arms, policy_logits=NO_TIES))
        assert found.action == np.argmax(arms) == np.argmax(found.policy)
        np.testing.assert_allclose(found.policy.sum(), 1, rtol=1e-5)


def test_gumbel_policy_and_value_are_those_of_sequential_halving_by_hand():
    """Eight simulations over four arms: one visit each, then two more for the better half: visits 1, 3, 1, 3.

    The policy is softmax(logits + (50 + 3) 0.1 q), equation 11; the value is the mean over the root and its visits, and
    not the q = 0.9 of the arm chosen.
    """
    logits = np.array([1.0, 0.0, 0.5, 0.0])
    found = look(QUIET, "gumbel", make_bandit(ARMS, value=0.2, policy_logits=logits))
    expected = np.exp(logits + 5.3 * np.array(ARMS))
    np.testing.assert_allclose(found.policy, expected / expected.sum(), rtol=1e-5)
    np.testing.assert_allclose(found.value, (0.2 + 0.1 + 3 * 0.9 + 0.3 + 3 * 0.5) / 9, rtol=1e-5)


# --- the sign of the other player's prospects -------------------------------------------------------------------------

REFUTED = make_table(
    # State 0: action 0 leads to state 1, of which the value head thinks well, action 1 to state 2.
    # In state 1 the other player has one reply that wins; nothing else has a reward.
    reward=[[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    successor=[[1, 2, 2, 2], [3, 3, 3, 3], [3, 3, 3, 3], [3, 3, 3, 3]],
    value=[0.0, -0.3, 0.0, 0.0],
    policy_logits=[[1, 0.5, -9, -9], [3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
)


@both
def test_a_move_that_the_opponents_best_reply_refutes_is_avoided(name):
    assert look(QUIET, name, REFUTED).action == 1


def test_a_move_with_a_winning_reply_is_chosen_if_the_same_player_replies():
    """With the discount +1 of a single-player game, the very same table says the opposite."""
    mine = make_searches(discount=1.0)
    assert look(mine, "gumbel", REFUTED).action == 0


@both
def test_a_win_of_the_mover_is_worth_plus_1_and_one_of_the_opponent_minus_1(name):
    lost = make_table([[0] * 4, [1] * 4, [0] * 4], [[1] * 4, [2] * 4, [2] * 4], [0.0, 1.0, 0.0])
    won = make_bandit([1.0] * 4, value=1.0)
    assert look(QUIET, name, lost).value < -0.8
    assert look(QUIET, name, won).value > 0.99


# --- PUCT's noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction, action", [(0.25, 0), (0.75, 1)])
def test_the_fraction_is_the_share_of_the_noise_at_the_root(monkeypatch, fraction, action):
    """Priors of 0.8 and 0.2 beside noise that wants the second arm: 0.6 and 0.4, or 0.2 and 0.8."""
    noise = jnp.array([[0.0, 1.0, 0.0, 0.0]])
    monkeypatch.setattr(policies, "dirichlet", lambda key, alpha, shape: jnp.broadcast_to(noise, shape))
    table = make_bandit([0.0] * 4, policy_logits=np.log([0.8, 0.2, 1e-9, 1e-9]))
    search = puct(learned_model(TABULAR, -1.0), num_simulations=1, dirichlet_fraction=fraction)
    found = look({"puct": jax.jit(lambda *inputs: search(*inputs)._replace(tree=None))}, "puct", table)
    assert found.action == action


def test_a_temperature_of_one_half_draws_actions_by_the_squares_of_their_visits():
    search = puct(learned_model(TABULAR, -1.0), num_simulations=BUDGET, temperature=0.5)
    searches = {"puct": jax.jit(lambda *inputs: search(*inputs)._replace(tree=None))}
    table = make_bandit([0.0] * 4, policy_logits=[1.0, 0.0, 0.5, -1.0])
    found = look_at(searches, "puct", table, [0] * 2048, [[1] * 4] * 2048)
    squares = np.square(found.policy[0])
    shares = np.bincount(found.action, minlength=4) / 2048
    np.testing.assert_allclose(shares, squares / squares.sum(), atol=0.04)
    assert np.ptp(squares) > 0.05


# --- legality ---------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("searches", [QUIET, NOISY], ids=["quiet", "noisy"])
def test_an_illegal_action_is_never_chosen_nor_in_the_policy(name, searches):
    """Though it is the best arm, and the policy head likes it best."""
    table = make_bandit(ARMS, policy_logits=[0.0, 9.0, 0.0, 0.0])
    for seed in range(8):
        found = look(searches, name, table, legal=[1, 0, 1, 1], seed=seed)
        assert found.action != 1
        assert found.policy[1] == 0
        np.testing.assert_allclose(found.policy.sum(), 1, rtol=1e-5)


@both
@pytest.mark.parametrize("searches", [QUIET, NOISY], ids=["quiet", "noisy"])
def test_a_single_legal_action_is_certain(name, searches):
    found = look(searches, name, make_bandit(ARMS), legal=[0, 0, 1, 0])
    assert found.action == 2
    np.testing.assert_allclose(found.policy, [0, 0, 1, 0], atol=1e-6)


def test_the_roots_legal_action_mask_does_not_apply_below_the_root():
    """The refuting reply is action 0, which is illegal at the root."""
    table = make_table([[0] * 4, [1, 0, 0, 0], [0] * 4], [[2, 1, 2, 2], [2] * 4, [2] * 4], [0.0, -0.3, 0.0])
    assert look(QUIET, "gumbel", table, legal=[0, 1, 1, 1]).action != 1


# --- noise ------------------------------------------------------------------------------------------------------------


@both
def test_without_noise_search_does_not_depend_on_the_key(name):
    first, *others = (look(QUIET, name, REFUTED, seed=seed) for seed in range(5))
    for other in others:
        jax.tree.map(np.testing.assert_array_equal, first, other)


@both
def test_with_noise_search_explores(name):
    equal = make_bandit([0.5, 0.5, 0.5, 0.5])
    assert len({int(look(NOISY, name, equal, seed=seed).action) for seed in range(12)}) > 1


@both
def test_each_position_of_a_batch_has_its_own_noise(name):
    found = look_at(NOISY, name, make_bandit([0.5] * 4), [0] * 64, [[1] * 4] * 64)
    assert len(np.unique(found.action if name == "gumbel" else found.policy, axis=0)) > 2


def test_fewer_simulations_than_considered_actions_visit_each_at_most_once():
    """Two simulations, up to 16 of 4 actions: the two with the largest logits are looked at, and the better chosen."""
    gumbel = make_searches(num_simulations=2, max_num_considered_actions=16)
    table = make_bandit(ARMS, value=0.2, policy_logits=[2.0, 0.0, 2.0, 0.0])
    found = look(gumbel, "gumbel", table)
    assert found.action == 2
    np.testing.assert_allclose(found.value, (0.2 + 0.1 + 0.3) / 3, rtol=1e-5)


# --- a batch is its rows ----------------------------------------------------------------------------------------------


@both
def test_a_row_of_a_batch_is_searched_as_if_it_were_on_its_own(name):
    """Each row has its own position and its own legal actions; alone, it fills the batch with itself."""
    generator = np.random.default_rng(0)
    reward, policy_logits, value = (generator.normal(size=shape) for shape in ((4, 4), (4, 4), 4))
    table = make_table(reward, generator.integers(0, 4, (4, 4)), value, policy_logits)
    legal = [[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]
    together = look_at(QUIET, name, table, range(4), legal)
    for row in range(4):
        alone = look_at(QUIET, name, table, [row] * 4, [legal[row]] * 4, seed=1)
        jax.tree.map(lambda x, y, row=row: np.testing.assert_array_equal(x[row], y[0]), together, alone)
    assert len(np.unique(together.value)) == 4
