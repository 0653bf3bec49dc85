"""Players against exact play: positions are drawn, and what is said of a player's moves is counted, right."""

import json

import jax
import numpy as np
import pytest

from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.evaluation import oracle_evaluation, positions
from muzero_jax.apps.evaluation.exact_play.oracle import ILLEGAL, Solutions
from muzero_jax.apps.evaluation.oracle_evaluation import Solved
from muzero_jax.apps.evaluation.player import random_player
from muzero_jax.games.environment import make_environment
from tests.reference import tiny_run

# Won by action 0 alone; drawn by actions 0 and 1; lost whatever is done; won whatever is done.
SOLUTIONS = Solutions(
    np.array([1, 0, -1, 1], np.int8),
    np.array([[1, 0, -1], [0, 0, -1], [-1, -1, ILLEGAL], [1, 1, 1]], np.int8),
)
SOLVED = Solved(None, np.array([True, False, False, False]), SOLUTIONS)


def test_sampled_positions_are_distinct_undecided_late_enough_and_the_same_for_the_same_seed():
    environment = make_environment("tic_tac_toe")
    player = random_player(environment)
    first, again = (
        positions.sample(environment, player, None, num_positions=40, min_plies=3, seed=1).states for _ in range(2)
    )
    stones = first.observation.reshape(len(first.terminated), -1)
    assert len(np.unique(stones, axis=0)) == len(stones) == 40
    assert not first.terminated.any() and stones.sum(axis=1).min() >= 3
    np.testing.assert_array_equal(first.observation, again.observation)


def test_positions_are_counted_by_value_and_by_whether_a_move_can_be_a_mistake():
    counts = {"positions": 4, "from_own_play": 1, "won": 2, "drawn": 1, "lost": 1, "can_err": 2, "can_win_and_err": 1}
    assert oracle_evaluation.describe(SOLVED) == counts


@pytest.mark.parametrize(
    "action, value, expected",
    [
        # Thrown away in the first position, kept in the second: rates are over positions where a move can be a mistake.
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"optimal_move_rate": 1 / 2, "keeps_win_rate": 0, "loses_win_rate": 1}),
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"keeps_win_rate_own_play": 0, "keeps_win_rate_random_play": None}),
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"value_error": 0.5 / 4, "illegal_actions": 0}),
        # A win turned into a draw is a mistake but no loss.
        ([1, 0, 0, 0], None, {"keeps_win_rate": 0, "loses_win_rate": 0, "value_error": None}),
        ([0, 0, 2, 0], None, {"illegal_actions": 1, "keeps_win_rate": 1, "keeps_win_rate_own_play": 1}),
    ],
)
def test_moves_are_judged_by_hand(action, value, expected):
    result = oracle_evaluation.score_player("x", np.array(action), value and np.array(value), SOLVED)
    assert expected.items() <= result.items()
    assert (result["keeps_win_rate_random_play_ci95"], len(result["keeps_win_rate_ci95"])) == (None, 2)


def test_a_random_move_keeps_the_value_in_its_share_of_the_moves():
    result = oracle_evaluation.score_random(SOLVED)
    assert result["optimal_move_rate"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert result["keeps_win_rate"] == result["loses_win_rate"] == pytest.approx(1 / 3)


# --- the command ------------------------------------------------------------------------------------------------------


def test_evaluate_judges_the_policy_head_and_search_on_every_position(saved_run, capsys):
    assert evaluate.main(["oracle", "--run", str(saved_run), "--budgets", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["positions"], result["can_err"], result["from_own_play"]) == (4520, 3191, 0)
    assert [player["player"] for player in result["scores"]] == ["a random move", "policy head", "2 simulations"]
    for player in result["scores"][1:]:
        assert player["illegal_actions"] == 0
        assert 0 < player["optimal_move_rate"] < 1 and player["value_error"] > 0


@pytest.mark.slow
def test_several_agents_are_judged_as_each_would_be_alone():
    """In tic-tac-toe all positions are judged, as by `examine`; agents that differ in their seed share a program."""
    params = tiny_run.agent().model.init(jax.random.key(0))
    other = jax.tree.map(lambda leaf: leaf + np.sin(np.arange(leaf.size)).reshape(leaf.shape), params)
    agents = [tiny_run.agent(params=weights) for weights in (params, other)]
    found = oracle_evaluation.winning_move_accuracies(agents, num_positions=1, seed=0, report=lambda *_: None)
    candidate = oracle_evaluation.agent_candidates(agents[1], (agents[1].num_simulations,))[1]
    alone = oracle_evaluation.examine(agents[1], [candidate], num_positions=1, seed=0)
    assert found[1] == (alone["scores"][1]["keeps_win_rate"], alone["can_win_and_err"])
    assert found[0] != found[1]
