"""Players that results are measured against: random, rollout MCTS, expectimax by hand and against value iteration."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import pig
from muzero_jax.apps.evaluation import expectimax, rollout_mcts
from muzero_jax.games import backgammon
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.search.rules import Row
from tests.games.test_backgammon import OFF
from tests.games.test_backgammon import position as backgammon_position
from tests.reference.nim import best_actions, make_nim, make_state
from tests.reference.pig import win_probability

# --- random play and rollout MCTS -------------------------------------------------------------------------------------

NIM = make_nim(8)


@pytest.fixture(scope="module")
def nim_mcts():
    """Rollout MCTS of nim with 1,000 simulations."""
    return jax.jit(partial(rollout_mcts.rollout_mcts, NIM, num_simulations=1000))


def nim_states(game_over=False, passes_turn=True):
    """1 to 8 stones with player 0 to move, then with player 1."""
    stones, player = np.tile(np.arange(1, 9, dtype=np.int32), 2), np.repeat(np.arange(2, dtype=np.int32), 8)
    return jax.jit(make_state)(stones * (not game_over), player, passes_turn)


def test_a_random_move_is_legal_and_reaches_every_legal_action_equally_often():
    mask, num_games, num_actions = np.random.default_rng(0).random(100) < 0.4, 4096, 100
    mask[[0, -1]] = True
    actions = uniform_legal_action(jax.random.key(0), jnp.broadcast_to(jnp.asarray(mask), (num_games, num_actions)))
    counts, expected, freedom = np.bincount(actions, minlength=num_actions), num_games / mask.sum(), mask.sum() - 1
    assert (counts[~mask] == 0).all()
    assert ((counts[mask] - expected) ** 2 / expected).sum() <= freedom + 4 * np.sqrt(2 * freedom + 1)


def test_a_rollouts_mean_value_is_the_expectation_over_uniform_play():
    states = jax.jit(make_state)(np.full(8192, 4, np.int32), np.zeros(8192, np.int32))
    values = jax.jit(partial(rollout_mcts.random_return, NIM))(jax.random.key(0), states)
    # V(n) for the mover under uniform play: V(1) = 1, V(2) = (-V(1) + 1) / 2 = 0, V(3) = (-V(2) - V(1) + 1) / 3 = 0,
    # and with 4 stones three moves, none of which ends the game: (-V(3) - V(2) - V(1)) / 3 = -1/3.
    assert set(np.unique(values)) == {-1.0, 1.0}
    np.testing.assert_allclose(values.mean(), -1 / 3, atol=0.04)


def test_mcts_plays_perfect_nim_for_both_players(nim_mcts):
    states = nim_states()
    output = nim_mcts(jax.random.key(0), states)
    for row, stones in enumerate(list(range(1, 9)) * 2):
        best = best_actions(stones)
        assert int(output.action[row]) in best and output.value[row] > 0.5 if best else output.value[row] < -0.5, stones
    visits, legal = np.asarray(output.policy) * 1000, np.asarray(states.legal_action_mask)
    np.testing.assert_allclose(visits, np.round(visits), atol=1e-3)
    np.testing.assert_allclose(visits.sum(axis=-1), 1000, rtol=1e-6)
    assert (visits[~legal] == 0).all() and (visits[legal] >= 1).all()


def test_mcts_wins_if_it_makes_every_move_and_returns_zeros_for_a_finished_game(nim_mcts):
    np.testing.assert_allclose(nim_mcts(jax.random.key(0), nim_states(passes_turn=False)).value, 1.0, rtol=1e-6)
    over = nim_mcts(jax.random.key(0), nim_states(game_over=True))
    assert not over.policy.any() and not over.value.any()


def test_one_program_of_mcts_serves_every_number_of_simulations_up_to_its_most(nim_mcts):
    """With as many as there is room for it is the usual search; with none its moves are uniformly random."""
    search = jax.jit(partial(rollout_mcts.rollout_mcts, NIM, most_simulations=1000))
    states, key = nim_states(), jax.random.key(0)
    jax.tree.map(np.testing.assert_array_equal, search(key, states, num_simulations=1000), nim_mcts(key, states))
    fewer = jax.jit(partial(rollout_mcts.rollout_mcts, NIM, num_simulations=7))(key, states)
    jax.tree.map(np.testing.assert_array_equal, search(key, states, num_simulations=7), fewer)
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[-1:], 3000, axis=0), states)
    moves = jax.jit(partial(rollout_mcts.rollout_mcts, NIM, most_simulations=1))(key, many, num_simulations=0).action
    shares = np.bincount(moves, minlength=3) / 3000
    np.testing.assert_allclose(
        shares, np.asarray(many.legal_action_mask[0]) / many.legal_action_mask[0].sum(), atol=0.04
    )


def test_a_rows_search_does_not_depend_on_the_other_rows(nim_mcts):
    """Row 6 is the 7 stones of player 0, here among positions of 8 stones and among finished games."""
    states, key, make, is_row = nim_states(), jax.random.key(3), jax.jit(make_state), np.arange(16) == 6
    fresh, ended = (
        nim_mcts(key, make(np.where(is_row, states.stones, stones), states.current_player, True)) for stones in (8, 0)
    )
    jax.tree.map(lambda one, other: np.testing.assert_array_equal(one[6], other[6]), fresh, ended)


def row_of(prior, visits, q):
    return Row(*(np.float32([x]) for x in (prior, visits, q, 0, 0)))


def test_the_most_visited_action_wins_and_ties_go_to_the_better_mean():
    output = jax.jit(rollout_mcts.summarise)(row_of([1.0, 1.0, 1.0, 0.0], [3.0, 5, 5, 2], [1.0, -1 / 5, 2 / 5, 0.0]))
    assert int(output.action[0]) == 2
    np.testing.assert_allclose(output.value, [4 / 13], rtol=1e-6)
    np.testing.assert_allclose(output.policy, [[3 / 13, 5 / 13, 5 / 13, 0]], rtol=1e-6)


def test_ucb_scores_by_hand():
    """Four simulations, means 1/2 and -1, exploration 2: q + 2 sqrt(ln 4 / n); untried first, illegal never."""
    row = row_of([0.9, 0.6, 0.7, 0.0], [3.0, 1.0, 0.0, 0.0], [0.5, -1.0, 0.0, 0.0])
    scores = np.asarray(jax.jit(partial(rollout_mcts.ucb_scores, exploration=2.0))(row))[0]
    np.testing.assert_allclose(scores[:2], [0.5 + 2 * np.sqrt(np.log(4) / 3), -1 + 2 * np.sqrt(np.log(4))], rtol=1e-5)
    assert scores[2] > 100 and scores[3] == -np.inf


# --- expectimax -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dice():
    return environment_from(pig.make(), "pig")


def test_expectimax_with_exact_leaf_values_gives_the_exact_values_of_pig(dice):
    exact = win_probability(pig.TARGET, pig.FACES)
    table = jax.device_put(np.float32(np.nan_to_num(2 * exact - 1)))

    def worth(state):
        mine, theirs = state.points[state.current_player], state.points[1 - state.current_player]
        own = table[mine, theirs, jnp.minimum(state.gain, pig.TARGET - 1)]
        return jnp.where(state.terminated, 0.0, own)

    def ask(points, gain):
        return expectimax.action_values(dice.chance, worth, 2, pig.position(points, gain, jnp.int32(1))).max()

    places = [(0, 0, 0), (3, 9, 5), (10, 2, 4), (12, 12, 2)]
    points, gains = np.array([(other, own) for own, other, _ in places]), np.array([gain for *_, gain in places])
    values = jax.jit(jax.vmap(ask))(points, gains)
    np.testing.assert_allclose(values, [2 * exact[place] - 1 for place in places], atol=1e-5)


def test_expectimax_weights_outcomes_by_their_probabilities(dice):
    """A loaded die, after 2 points of this turn: the sum over its faces is written out."""
    shares = jnp.array([0.5, 0.3, 0.2])
    loaded = dice.chance._replace(probabilities=lambda state: shares)
    ask = jax.jit(
        functools.partial(expectimax.action_values, loaded, lambda state: 0.01 * state.gain), static_argnums=0
    )
    state = pig.position(jnp.array([1, 4]), jnp.int32(2), jnp.int32(0))
    after, resolve = jax.jit(loaded.move)(state, pig.ROLL), jax.jit(loaded.resolve)
    expected = 0.0
    for face in range(pig.FACES):
        then = resolve(after.state, face)
        expected += float(shares[face] * (then.reward + then.discount * ask(1, then.state).max()))
    assert float(ask(2, state)[pig.ROLL]) == pytest.approx(expected, abs=1e-6) and abs(expected) > 0.001
    start = pig.position(jnp.zeros(2, jnp.int32), jnp.int32(0), jnp.int32(0))
    assert float(ask(1, start)[pig.HOLD]) < -1e29, "nothing is there to hold"


def test_the_pip_count_player_bears_off_its_last_checker_and_hits():
    player = expectimax.pip_count_player(make_environment("backgammon"))
    last = backgammon_position((6, 2), {23: 1, OFF: 14, 0: -15})
    hit = backgammon_position((1, 2), {0: 2, 10: 13, 2: -1, 5: -14})  # 24/22 hits, which costs the other 3 pips
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), last, hit)
    actions = jax.jit(lambda states: player.act(None, jax.random.key(0), states))(states)
    assert np.asarray(states.legal_action_mask)[[0, 1], actions].all() and int(actions[1]) == 2 * 6 + 1
    assert float(backgammon.pip_lead(last)) == pytest.approx((15 - 1) / 1000)


def test_rollout_mcts_searches_a_game_with_dice(dice):
    search = jax.jit(functools.partial(rollout_mcts.rollout_mcts, dice, num_simulations=8))
    found = search(jax.random.key(1), jax.vmap(dice.init)(jax.random.split(jax.random.key(0), 4)))
    assert (found.action == pig.ROLL).all() and np.isfinite(found.value).all()
