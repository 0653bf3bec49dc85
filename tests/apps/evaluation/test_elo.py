"""Ratings are the textbook's, and their intervals hold what they promise."""

import numpy as np
import pytest

from muzero_jax.apps.evaluation import elo


def expected_score(strengths):
    """The expected score of each player against each [P, P]: a lead of 400 is ten to one."""
    return 1 / (1 + 10 ** ((strengths[None, :] - strengths[:, None]) / 400))


def test_known_strengths_are_recovered_from_their_expected_results():
    strengths = np.array([0.0, 150.0, -80.0, 400.0, 900.0])
    wins = 1e6 * expected_score(strengths)
    wins[0, 4] = wins[4, 0] = 0  # a pair that never met
    np.testing.assert_allclose(elo.rate(wins).elo, strengths, atol=0.1)


def test_players_that_no_matches_connect_cannot_be_rated():
    with pytest.raises(ValueError, match="chain of matches"):
        elo.rate([[0.0, 3, 0], [2, 0, 0], [0, 0, 0]])


def random_tournament(rng):
    """(strengths relative to the first player's, wins): everybody meets the first, and most of the others."""
    num_players = int(rng.integers(2, 9))
    strengths = rng.normal(0, rng.choice([100, 250, 400]), num_players)
    expected, wins = expected_score(strengths), np.zeros((num_players, num_players))
    for i in range(num_players):
        for j in range(i):
            if j == 0 or rng.random() < 0.6:
                drawn = 0.8 * rng.random() * 2 * min(expected[i, j], expected[j, i])
                shares = [expected[i, j] - drawn / 2, drawn, expected[j, i] - drawn / 2]
                won, draws, lost = rng.multinomial(int(rng.integers(10, 200)), shares)
                wins[i, j], wins[j, i] = won + draws / 2, lost + draws / 2
    return strengths - strengths[0], wins


def test_intervals_hold_the_true_strengths_as_often_as_they_say():
    """Every player's, of 200 random tournaments; much more often would mean that they are too wide."""
    rng, is_held = np.random.default_rng(1), []
    for _ in range(200):
        strengths, wins = random_tournament(rng)
        ratings = elo.rate(wins)
        is_held.extend(((ratings.low <= strengths) & (strengths <= ratings.high))[1:])
    assert 0.93 <= np.mean(is_held) <= 0.985


def test_two_players_interval_is_the_logit_interval_of_their_score():
    """15 : 5 with Jeffreys' half a win for both is 15.5 : 5.5; the information is 20 p (1 - p)."""
    ratings, share = elo.rate([[0, 15], [5, 0]], anchor=1), 15.5 / 21
    half_width = 1.959964 * elo.ELO_PER_NAT / np.sqrt(20 * share * (1 - share))
    np.testing.assert_allclose(ratings.elo, [elo.ELO_PER_NAT * np.log(share / (1 - share)), 0], atol=1e-3)
    np.testing.assert_allclose(ratings.high - ratings.elo, [half_width, 0], atol=1e-3)
    np.testing.assert_allclose(ratings.elo - ratings.low, [half_width, 0], atol=1e-3)


def test_the_anchor_only_shifts_the_ratings():
    wins = [[0, 30, 55], [20, 0, 35], [5, 15, 0]]
    first, last = elo.rate(wins, anchor=0), elo.rate(wins, anchor=2)
    np.testing.assert_allclose(first.elo - first.elo[2], last.elo, atol=1e-6)
    np.testing.assert_allclose(first.high[2] - first.elo[2], last.high[0] - last.elo[0], atol=1e-6)


def test_perfect_scores_have_finite_intervals_which_more_games_move_on():
    few, many = (elo.rate([[0, n, n], [0, 0, n], [0, 0, 0]], anchor=2) for n in (8, 80))
    assert np.isfinite(few).all() and few.elo[0] > few.elo[1] > 0 == few.elo[2]
    assert many.low[0] > few.low[0] and many.high[0] > few.high[0]
