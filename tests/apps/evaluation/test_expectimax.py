"""Expectimax by hand and against value iteration, and the players that are made of it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import pig
from muzero_jax.apps.evaluation import expectimax, matches
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts
from muzero_jax.games import backgammon, game_2048
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from
from tests.games.test_backgammon import OFF
from tests.games.test_backgammon import position as backgammon_position
from tests.games.test_game_2048 import NOTHING
from tests.games.test_game_2048 import position as position_2048
from tests.reference.pig import win_probability


@pytest.fixture(scope="module")
def dice():
    return environment_from(pig.make(), "pig")


def test_with_exact_values_at_its_leaves_it_finds_the_value_of_every_position_of_pig(dice):
    exact = win_probability(pig.TARGET, pig.FACES)
    table = jnp.asarray(np.nan_to_num(2 * exact - 1), jnp.float32)

    def worth(state):
        mine, theirs = state.points[state.current_player], state.points[1 - state.current_player]
        own = table[mine, theirs, jnp.minimum(state.gain, pig.TARGET - 1)]
        return jnp.where(state.terminated, 0.0, own)

    def ask(points, gain):
        return expectimax.action_values(dice.chance, worth, 2, pig.position(points, gain, jnp.int32(1))).max()

    places = [(0, 0, 0), (3, 9, 5), (10, 2, 4), (12, 12, 2)]
    points, gains = jnp.array([(other, own) for own, other, _ in places]), jnp.array([gain for *_, gain in places])
    values = jax.jit(jax.vmap(ask))(points, gains)
    np.testing.assert_allclose(values, [2 * exact[place] - 1 for place in places], atol=1e-5)


def test_depth_one_of_2048_adds_the_gain_to_the_worth_of_the_afterstate():
    chance = make_environment("2048").chance
    state = position_2048((2, 2, 0, 0), NOTHING, NOTHING, NOTHING)
    values = jax.jit(functools.partial(expectimax.action_values, chance, game_2048.worth, 1))(state)
    after = chance.move(state, jnp.int32(0))
    assert float(values[0]) == pytest.approx(4 + float(game_2048.worth(after.state)))
    assert float(values[1]) < -1e29, "the tiles lie at the top, so up is illegal"


def test_the_pip_count_player_bears_off_and_takes_a_win():
    player = expectimax.pip_count_player(make_environment("backgammon"))
    last = backgammon_position((6, 2), {23: 1, OFF: 14, 0: -15})
    hit = backgammon_position((1, 2), {0: 2, 10: 13, 2: -1, 5: -14})  # 24/22 hits, which costs the other 3 pips
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), last, hit)
    actions = jax.jit(lambda states: player.act(None, jax.random.key(0), states))(states)
    assert np.asarray(states.legal_action_mask)[[0, 1], actions].all() and int(actions[1]) == 2 * 6 + 1
    assert float(backgammon.pip_lead(last)) == pytest.approx((15 - 1) / 1000)


def test_matches_throw_dice(dice):
    """Both seatings of an opening have dice of their own, and who holds after every roll loses to random."""
    holder = Player("holder", lambda params, key, states: jnp.argmax(states.legal_action_mask, -1).astype(jnp.int32))
    match = matches.match_in_pieces(dice, holder, random_player(dice), num_games=128, opening_plies=1)
    games = match.begin(jax.random.key(0))
    games = jax.jit(match.advance, static_argnums=4)(None, None, jax.random.key(0), games, 1000)
    result, length = matches.summarise(games.result, stochastic=match.stochastic), np.asarray(games.result.length)
    assert games.states.terminated.all() and result["illegal_actions"] == 0 and result["games"] == 128
    assert result["score"] < 0.45 and (length[0] != length[1]).mean() > 0.5


def test_rollout_mcts_throws_dice(dice):
    search = jax.jit(functools.partial(rollout_mcts, dice, num_simulations=8))
    found = search(jax.random.key(1), jax.vmap(dice.init)(jax.random.split(jax.random.key(0), 4)))
    assert (found.action == pig.ROLL).all() and np.isfinite(found.value).all()
