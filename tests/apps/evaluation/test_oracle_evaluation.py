"""Players against exact play: positions are drawn, and what is said of a player's moves is counted, right."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.evaluation import opponents, oracle_evaluation, positions
from muzero_jax.apps.evaluation.exact_play import solved
from muzero_jax.apps.evaluation.exact_play.oracle import ILLEGAL, Solutions, solve
from muzero_jax.games.environment import make_environment
from tests.reference import tiny_run

CAN_ERR = 3191  # positions of tic-tac-toe in which some moves are mistakes


def random_positions(environment, min_plies, num_positions):
    player = opponents.random_player(environment)
    drawn = positions.sample(environment, player, None, num_positions=num_positions, min_plies=min_plies, seed=1)
    return drawn.states


# --- which games ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size"), [("hex", 6), ("hex", None), ("go_9x9", None), ("chess", None)])
def test_a_game_without_an_oracle_is_named_in_one_sentence(name, size):
    config, environment = replace(tiny_run.CONFIG, env=name, board_size=size), make_environment("tic_tac_toe")
    agent = tiny_run.agent()._replace(config=config, environment=environment._replace(name=name))
    with pytest.raises(ValueError, match=r"has no oracle: exact play is known for tic_tac_toe.*instead"):
        oracle_evaluation.examine(agent, [], num_positions=10, seed=0)


# --- positions --------------------------------------------------------------------------------------------------------


def test_sampled_positions_are_distinct_undecided_late_enough_and_the_same_for_the_same_seed():
    environment = make_environment("tic_tac_toe")
    first, again = (random_positions(environment, 3, 40) for _ in range(2))
    stones = first.observation.reshape(len(first.terminated), -1)
    assert len(np.unique(stones, axis=0)) == len(stones) == 40
    assert not first.terminated.any()
    assert stones.sum(axis=1).min() >= 3
    np.testing.assert_array_equal(first.observation, again.observation)


# --- scores -----------------------------------------------------------------------------------------------------------

# Won by action 0 alone; drawn by actions 0 and 1; lost whatever is done; won whatever is done.
SOLUTIONS = Solutions(
    np.array([1, 0, -1, 1], np.int8),
    np.array([[1, 0, -1], [0, 0, -1], [-1, -1, ILLEGAL], [1, 1, 1]], np.int8),
)
OWN_PLAY = np.array([True, False, False, False])


def test_positions_are_counted_by_value_and_by_whether_a_move_can_be_a_mistake():
    counts = oracle_evaluation.describe(SOLUTIONS, OWN_PLAY)
    assert counts == {
        "positions": 4,
        "from_own_play": 1,
        "won": 2,
        "drawn": 1,
        "lost": 1,
        "can_err": 2,
        "can_win_and_err": 1,
    }


def test_rates_are_over_positions_in_which_a_move_can_be_a_mistake():
    result = oracle_evaluation.score_player(
        "x", np.array([2, 1, 0, 2]), np.array([0.5, 0.0, -1.0, 1.0]), SOLUTIONS, OWN_PLAY
    )
    assert result["optimal_move_rate"] == 1 / 2  # thrown away in the first position, kept in the second
    assert result["keeps_win_rate"] == result["keeps_win_rate_own_play"] == 0
    assert result["keeps_win_rate_random_play"] is None  # no such position
    assert result["loses_win_rate"] == 1
    assert result["value_error"] == pytest.approx(0.5 / 4)
    low, high = result["optimal_move_rate_ci95"]
    assert low + high == pytest.approx(1) and 0 < low < 0.2  # Wilson: 1 of 2


def test_a_win_turned_into_a_draw_is_a_mistake_but_no_loss():
    result = oracle_evaluation.score_player("x", np.array([1, 0, 0, 0]), None, SOLUTIONS, OWN_PLAY)
    assert (result["keeps_win_rate"], result["loses_win_rate"], result["value_error"]) == (0, 0, None)


def test_an_illegal_action_is_counted_and_never_right():
    result = oracle_evaluation.score_player("x", np.array([0, 0, 2, 0]), None, SOLUTIONS, OWN_PLAY)
    assert result["illegal_actions"] == 1


def test_a_random_move_keeps_the_value_in_its_share_of_the_moves():
    result = oracle_evaluation.score_random(SOLUTIONS, OWN_PLAY)
    assert result["optimal_move_rate"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert result["keeps_win_rate"] == pytest.approx(1 / 3)
    assert result["loses_win_rate"] == pytest.approx(1 / 3)


def test_solving_reports_its_progress():
    seen = []
    observation = np.zeros((2, 3, 3, 2), bool)
    solutions = solve(
        solved.tic_tac_toe(), observation, num_actions=9, report=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 2), (2, 2)]
    assert solutions.value.tolist() == [0, 0]


# --- the command ------------------------------------------------------------------------------------------------------


def test_evaluate_judges_the_policy_head_and_search_on_every_position(saved_run, capsys):
    assert evaluate.main(["oracle", "--run", str(saved_run), "--budgets", "2", "4", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["positions"], result["can_err"], result["from_own_play"]) == (4520, CAN_ERR, 0)
    names = [player["player"] for player in result["scores"]]
    assert names == ["a random move", "policy head", "2 simulations", "4 simulations"]
    for player in result["scores"][1:]:
        assert player["illegal_actions"] == 0
        assert 0 < player["optimal_move_rate"] < 1 and player["value_error"] > 0


def test_evaluate_judges_another_player_and_prints_a_table(saved_run, capsys):
    assert evaluate.main(["oracle", "--run", str(saved_run), "--player", "random"]) == 0
    yardstick, judged = capsys.readouterr().out.splitlines()[-2:]
    assert yardstick.split()[:3] == ["a", "random", "move"] and judged.split()[0] == "random"
    expected, measured = (float(line.split("%")[0].split()[-1]) for line in (yardstick, judged))
    assert measured == pytest.approx(expected, abs=4)  # some 3,000 positions: a standard error of one percent


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--budgets", "0"], "--budgets"),
        (["--budgets", "4", "--num-simulations", "4"], "not both"),
        (["--positions", "0"], "--positions is 0"),
        (["--player", "stockfish"], "no player 'stockfish': choose agent"),
    ],
)
def test_a_mistake_is_a_value_error_with_a_reason(saved_run, flags, reason):
    with pytest.raises(ValueError, match=reason):
        evaluate.main(["oracle", "--run", str(saved_run), *flags])


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
