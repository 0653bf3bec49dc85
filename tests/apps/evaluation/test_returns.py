"""Mean returns of single-player games: what is summed, which interval it gets, and how far episodes came."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from muzero_jax.apps.evaluation import returns
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.games.environment import make_environment
from muzero_jax.ops import devices

GAME_2048 = make_environment("2048")


def play(player, num_games, num_devices=2):
    return returns.play(GAME_2048, player, None, devices.make_mesh(num_devices), num_games=num_games, seed=0)


def test_random_play_of_2048_earns_about_a_thousand_points_with_students_interval():
    episodes = play(random_player(GAME_2048), 39)
    result = returns.summarise(GAME_2048, episodes)
    assert (result["games"], result["illegal_actions"]) == (40, 0) and 80 < result["mean_length"] < 160
    assert episodes.states.terminated.all()
    low, high = result["ci95"]
    assert low < 1060 < high
    known = stats.ttest_1samp(np.asarray(episodes.total, float), 0).confidence_interval(0.95)
    np.testing.assert_allclose(result["ci95"], known, rtol=1e-6)
    text = returns.format_table({"agent": result, "other": result | {"reached": {"2048": 0.5}}})
    shown = {line.split("  ")[0]: line.split()[-2:] for line in text.splitlines()}
    assert shown["reached 128"][1] == "50.0%" and shown["reached 2048"] == ["0.0%", "50.0%"]


def test_milestones_are_the_share_that_came_so_far_or_further():
    assert returns.shares(np.array([64, 128, 128, 512])) == {"64": 1.0, "128": 0.75, "512": 0.25}


def test_an_illegal_action_is_counted_and_a_legal_one_played():
    stubborn = Player("left", lambda params, key, states: jnp.zeros(len(states.terminated), jnp.int32))
    episodes = play(stubborn, 2, num_devices=1)
    assert (episodes.illegal_actions > 0).all() and (episodes.total > 0).all()
