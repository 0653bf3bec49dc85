"""Elo ratings and their intervals, and how a run evaluates its versions during training."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import elo
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.evaluation.progress import Versions
from muzero_jax.run import metrics
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run

# --- Elo --------------------------------------------------------------------------------------------------------------


def expected_score(strengths):
    """The expected score of each player against each [P, P]: a lead of 400 is ten to one."""
    return 1 / (1 + 10 ** ((strengths[None, :] - strengths[:, None]) / 400))


def test_known_strengths_are_recovered_from_their_expected_results():
    strengths = np.array([0.0, 150.0, -80.0, 400.0, 900.0])
    wins = 1e6 * expected_score(strengths)
    wins[0, 4] = wins[4, 0] = 0  # a pair that never met
    np.testing.assert_allclose(elo.rate(wins).elo, strengths, atol=0.1)


def test_two_players_interval_is_the_logit_interval_of_their_score():
    """15 : 5 with Jeffreys' half a win for both is 15.5 : 5.5; the information is 20 p (1 - p)."""
    ratings, share = elo.rate([[0, 15], [5, 0]], anchor=1), 15.5 / 21
    half_width = 1.959964 * elo.ELO_PER_NAT / np.sqrt(20 * share * (1 - share))
    np.testing.assert_allclose(ratings.elo, [elo.ELO_PER_NAT * np.log(share / (1 - share)), 0], atol=1e-3)
    np.testing.assert_allclose(ratings.high - ratings.elo, [half_width, 0], atol=1e-3)
    np.testing.assert_allclose(ratings.elo - ratings.low, [half_width, 0], atol=1e-3)


def test_intervals_of_three_equal_players_are_those_of_resistances_in_a_triangle():
    """10 : 10 in each pair has the information 20 / 4; a direct way of 5 and one by the third player of 5/2 add up."""
    ratings, half_width = elo.rate(10 * (1 - np.eye(3))), 1.959964 * elo.ELO_PER_NAT / np.sqrt(5 + 5 / 2)
    np.testing.assert_allclose(ratings.elo, 0, atol=1e-3)
    np.testing.assert_allclose([ratings.low, ratings.high], np.outer([-1, 1], [0, half_width, half_width]), atol=1e-3)


# --- versions of a run ------------------------------------------------------------------------------------------------

PARAMS = {"weights": jnp.ones(3)}


@pytest.fixture
def versions(tmp_path):
    """Makes the versions of a run, of which every match is drawn, with evaluations changed by keywords."""

    def make(**changes):
        config = replace(tiny_run.CONFIG, evaluation=replace(tiny_run.CONFIG.evaluation, **changes))
        arena = Mock(spec=Arena, has_matches=True, is_for_points=False)
        arena.play.side_effect = lambda *arguments, num_games, **others: {"score": 0.5, "games": num_games}
        return Versions(config, arena, tmp_path, jax.eval_shape(lambda: PARAMS), {})

    return make


def test_a_game_for_points_logs_mean_points_and_no_elo(versions, tmp_path):
    """Kuhn poker: a player may win fewer games and more chips."""
    ours = versions(mcts_simulations=(2,))
    points = {"score": 0.25, "ci95": [0.1, 0.4], "games": 8, "mean_points": 0.5, "mean_points_ci95": [0.1, 0.9]}
    arena = Mock(spec=Arena, has_matches=True, is_for_points=True, play=Mock(return_value=points))
    ours = Versions(ours._config, arena, tmp_path, jax.eval_shape(lambda: PARAMS), {})
    assert ours.begin(PARAMS) == {} and ours.ratings() == {}
    record = ours.measure(PARAMS, 2)
    assert record == {"eval/points/random": 0.5, "eval/points/mcts:2": 0.5}
    assert metrics.scores(record) == {"points/random": 0.5, "points/mcts:2": 0.5}
    assert not any(metrics.is_share(name) for name in [*metrics.scores(record), metrics.EXPLOITABILITY])
    assert "self" not in [call.args[0] for call in arena.play.call_args_list]
    assert checkpoint_steps(tmp_path / "versions") == [0, 2]


@pytest.mark.parametrize("final_games, size", [(16, 8), (20, 20)])
def test_exactly_the_matches_of_evaluations_are_compiled_beforehand(versions, final_games, size):
    """Rollout MCTS with 1,000 simulations plays at the end only; final matches share programs if they can."""
    ours = versions(interval_minutes=1.0, games=8, final_games=final_games, mcts_simulations=(2, 1000))
    compiled, played = ours.arena.compile.call_args_list, ours.arena.play.call_args_list

    def matches(calls):
        return {(call.args[0], call.kwargs["num_games"]) for call in calls}

    for compile_match in ours.compilations():
        compile_match()
    ours.begin(PARAMS)
    ours.measure(PARAMS, 1)
    quick = {("random", 8), ("mcts:2", 8), ("self", 4)}
    assert matches(played) == quick
    ours.conclude(PARAMS, 2)
    assert matches(played) == quick | {(name, size) for name in ("random", "mcts:2", "mcts:1000")}
    assert len(compiled) == len(matches(compiled)), "random play is the program of rollout MCTS"
    programs = {(name if name == "self" else "random", count) for name, count in matches(played)}
    assert matches(compiled) == programs


def test_opening_value_accuracy_is_recorded_and_counts_as_no_opponents_score(versions):
    """As if every first move of Hex 3x3 won, which is right for 5 of 9."""
    ours = versions()
    ours.judges = {metrics.OPENINGS: SimpleNamespace(values=lambda params: np.ones((3, 3)))}
    record = ours.measure(PARAMS, 2)
    assert record[metrics.OPENINGS] == 5 / 9 and metrics.scores(record) == {"random": 0.5}
    summary, final = ours.conclude(PARAMS, 3)
    assert {"right": 5, "solved": 9}.items() <= summary["openings"].items() and final[metrics.OPENINGS] == 5 / 9


def test_a_new_version_meets_the_weights_of_the_older_ones(versions):
    ours = versions()
    ours.begin(PARAMS)
    for iteration in (2, 4):
        ours.measure({"weights": PARAMS["weights"] + iteration}, iteration)
    calls = [call for call in ours.arena.play.call_args_list if call.args[0] == "self"]
    met = [(call.args[1]["weights"][0], call.kwargs["rival"]["weights"][0]) for call in calls]
    assert met == [(3, 1), (5, 1), (5, 3)]


def test_the_untrained_version_has_elo_0(versions, tmp_path):
    ours = versions()
    assert ours.begin(PARAMS) == ours.begin(PARAMS) == {"eval/elo": 0.0}  # also if it is resumed at once
    ours.measure(PARAMS, 10)
    assert ours.ratings() == {"0": 0.0, "10": 0.0}  # all games were drawn
    assert checkpoint_steps(tmp_path / "versions") == [0, 10]
