"""Mean returns of single-player games: what is summed, which interval it gets, and how far episodes came."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from muzero_jax.apps.evaluation import returns
from muzero_jax.apps.evaluation.opponents import random_player
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.games.environment import make_environment
from muzero_jax.ops import devices


@pytest.fixture(scope="module")
def environment():
    return make_environment("2048")


@pytest.fixture(scope="module")
def episodes(environment):
    return returns.play(environment, random_player(environment), None, devices.make_mesh(2), num_games=40, seed=0)


def test_random_play_of_2048_earns_about_a_thousand_points(environment, episodes):
    result = returns.summarise(environment, episodes)
    assert result["games"] == 40 and result["illegal_actions"] == 0
    low, high = result["ci95"]
    assert low < 1060 < high and 80 < result["mean_length"] < 160
    assert episodes.is_over.all() and episodes.states.terminated.all()


def test_the_interval_is_students(environment, episodes):
    result = returns.summarise(environment, episodes)
    known = stats.ttest_1samp(np.asarray(episodes.total, float), 0).confidence_interval(0.95)
    np.testing.assert_allclose(result["ci95"], known, rtol=1e-6)
    assert result["min_return"] <= result["median_return"] <= result["max_return"]


def test_milestones_are_the_share_that_came_so_far_or_further():
    assert returns.shares(np.array([64, 128, 128, 512])) == {"64": 1.0, "128": 0.75, "512": 0.25}


def test_the_table_names_every_player_and_every_milestone(environment, episodes):
    result = returns.summarise(environment, episodes)
    further = result | {"reached": {"2048": 0.5}}
    text = returns.format_table({"agent": result, "other": further})
    lines = {line.split("  ")[0]: line.split()[-2:] for line in text.splitlines()}
    assert lines["reached 128"][1] == "50.0%" and lines["reached 2048"] == ["0.0%", "50.0%"]
    assert text.splitlines()[0].split() == ["agent", "other"]


def test_an_illegal_action_is_counted_and_a_legal_one_played():
    environment = make_environment("2048")
    stubborn = Player("left", lambda params, key, states: jnp.zeros(len(states.terminated), jnp.int32))
    episodes = returns.play(environment, stubborn, None, devices.make_mesh(1), num_games=2, seed=0)
    assert (episodes.illegal_actions > 0).all() and (episodes.total > 0).all()


def test_a_game_for_two_is_refused():
    environment = make_environment("tic_tac_toe")
    with pytest.raises(ValueError, match="returns are for single-player games, and tic_tac_toe is a two-player game"):
        returns.play(environment, random_player(environment), None, devices.make_mesh(1), num_games=2, seed=0)
