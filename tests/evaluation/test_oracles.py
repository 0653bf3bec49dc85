"""Oracles are exact, and what is said of a player's moves is counted right."""

import functools
import json
import random
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import evaluate
from muzero_jax.evaluation import opponents, oracle_evaluation, players
from muzero_jax.evaluation.oracles import connect_four, hex, positions, score, tic_tac_toe
from muzero_jax.evaluation.oracles.catalogue import make_oracle
from muzero_jax.evaluation.oracles.common import ILLEGAL, Solutions, solve
from muzero_jax.evaluation.players import Agent
from muzero_jax.games.environment import make_environment
from tests.reference import exact_play, tiny_run
from tests.reference import tic_tac_toe as rules

CAN_ERR = 3191  # positions of tic-tac-toe in which some moves are mistakes
MANY = pytest.param(1000, marks=pytest.mark.slow)


def all_positions(environment):
    return positions.enumerate_all(environment).states


def random_positions(environment, min_plies, num_positions):
    player = opponents.random_player(environment)
    drawn = positions.sample(environment, player, None, num_positions=num_positions, min_plies=min_plies, seed=1)
    return drawn.states


def assert_consistent(environment, oracle, states):
    """After every legal move the value is the reward, or what the oracle then says of the other player's position."""
    ask = functools.cache(
        lambda shown: oracle.action_values(np.frombuffer(shown, bool).reshape(environment.observation_shape))
    )
    actions = jnp.arange(environment.num_actions)
    after, reward, _ = jax.device_get(
        jax.jit(jax.vmap(jax.vmap(environment.move, (None, 0)), (0, None)))(states, actions)
    )
    for index in range(len(states.terminated)):
        values = ask(states.observation[index].tobytes())
        assert sorted(values) == np.flatnonzero(states.legal_action_mask[index]).tolist()
        for action, value in values.items():
            if after.terminated[index, action]:
                assert value == reward[index, action]
            else:
                assert value == -max(ask(after.observation[index, action].tobytes()).values())


# --- exactness --------------------------------------------------------------------------------------------------------


def test_tic_tac_toe_agrees_with_a_plain_recursion_in_every_position():
    states = all_positions(make_environment("tic_tac_toe"))
    assert len(states.terminated) == 4520  # the 5,478 that can be reached, less the 958 that are over
    oracle, can_err = tic_tac_toe.make_oracle(), 0
    for observation in states.observation:
        board = rules.board_of(observation)
        expected = {action: rules.action_value(board, action) for action in rules.legal_actions(board)}
        assert oracle.action_values(observation) == expected
        can_err += len(set(expected.values())) > 1
    assert can_err == CAN_ERR


@pytest.mark.parametrize("num_positions", [100, MANY])
@pytest.mark.parametrize(("size", "most_empty"), [(5, 9), (4, 9), (3, 6)])
def test_hex_agrees_with_filling_the_board_in_every_way(size, most_empty, num_positions):
    oracle, generator = hex.make_oracle(size), random.Random(0)
    for number in range(num_positions):
        num_empty = most_empty - number % 3
        board = exact_play.random_hex(size, num_empty, generator)
        color = (size * size - num_empty) % 2
        expected = exact_play.hex_action_values(board, color)
        assert oracle.action_values(exact_play.hex_observation(board, color)) == expected, board


@pytest.mark.parametrize("num_positions", [100, MANY])
def test_connect_four_agrees_with_trying_every_move(num_positions):
    oracle, generator = connect_four.make_oracle(), random.Random(0)
    for number in range(num_positions):
        columns = exact_play.random_columns(29 + number % 6, generator)
        expected = exact_play.connect_four_action_values(columns)
        assert oracle.action_values(exact_play.connect_four_observation(columns)) == expected, columns


def test_every_position_of_hex_3x3_is_consistent_with_the_environment_from_the_opening_and_the_swap_on():
    environment = make_environment("hex", board_size=3)
    states = all_positions(environment)
    assert states.legal_action_mask[:, -1].sum() == 9  # the swap is there: once after each first stone
    assert_consistent(environment, hex.make_oracle(3), states)


@pytest.mark.parametrize(
    ("name", "size", "min_plies"),
    [("hex", 5, 9), pytest.param("hex", 5, 6, marks=pytest.mark.slow), ("connect_four", None, 20)],
)
def test_sampled_positions_are_consistent_with_the_environment(name, size, min_plies):
    environment = make_environment(name, board_size=size)
    assert_consistent(environment, make_oracle(name, size), random_positions(environment, min_plies, 30))


def test_no_first_move_of_hex_wins_since_the_other_side_may_take_it():
    empty = np.zeros((5, 5, 4), bool)
    assert hex.make_oracle(5).action_values(empty) == dict.fromkeys(range(25), -1)


def test_on_4x4_the_first_stones_to_take_are_those_of_the_short_diagonal():
    """A known map of the swap rule. To leave a stone is worth the opposite of taking it."""
    oracle, to_take = hex.make_oracle(4), []
    for first_cell in range(16):
        observation = np.zeros((4, 4, 4), bool)
        observation.reshape(16, 4)[first_cell, 1] = True
        observation[..., 2:] = True
        values = oracle.action_values(observation)
        swap_value = values.pop(16)
        assert swap_value == -max(values.values())
        to_take += [first_cell] if swap_value > 0 else []
    assert to_take == [3, 6, 9, 12]


def test_a_half_turn_of_the_board_turns_the_values():
    board = exact_play.random_hex(5, 14, random.Random(3))
    oracle = hex.make_oracle(5)
    values = oracle.action_values(exact_play.hex_observation(board, 1))
    turned = oracle.action_values(exact_play.hex_observation(board[::-1, ::-1], 1))
    assert turned == {24 - cell: value for cell, value in values.items()}


# --- which games ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "size"), [("hex", 6), ("hex", None), ("go_9x9", None), ("chess", None)])
def test_a_game_without_an_oracle_is_named_in_one_sentence(name, size):
    agent = Agent(replace(tiny_run.CONFIG, env=name, board_size=size), None, 1)  # type: ignore
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
    counts = score.describe(SOLUTIONS, OWN_PLAY)
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
    result = score.score_player("x", np.array([2, 1, 0, 2]), np.array([0.5, 0.0, -1.0, 1.0]), SOLUTIONS, OWN_PLAY)
    assert result["optimal_move_rate"] == 1 / 2  # thrown away in the first position, kept in the second
    assert result["keeps_win_rate"] == result["keeps_win_rate_own_play"] == 0
    assert result["keeps_win_rate_random_play"] is None  # no such position
    assert result["loses_win_rate"] == 1
    assert result["value_error"] == pytest.approx(0.5 / 4)
    low, high = result["optimal_move_rate_ci95"]
    assert low + high == pytest.approx(1) and 0 < low < 0.2  # Wilson: 1 of 2


def test_a_win_turned_into_a_draw_is_a_mistake_but_no_loss():
    result = score.score_player("x", np.array([1, 0, 0, 0]), None, SOLUTIONS, OWN_PLAY)
    assert (result["keeps_win_rate"], result["loses_win_rate"], result["value_error"]) == (0, 0, None)


def test_an_illegal_action_is_counted_and_never_right():
    result = score.score_player("x", np.array([0, 0, 2, 0]), None, SOLUTIONS, OWN_PLAY)
    assert result["illegal_actions"] == 1


def test_a_random_move_keeps_the_value_in_its_share_of_the_moves():
    result = score.score_random(SOLUTIONS, OWN_PLAY)
    assert result["optimal_move_rate"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert result["keeps_win_rate"] == pytest.approx(1 / 3)
    assert result["loses_win_rate"] == pytest.approx(1 / 3)


def test_solving_reports_its_progress():
    seen = []
    observation = np.zeros((2, 3, 3, 2), bool)
    solutions = solve(
        tic_tac_toe.make_oracle(), observation, num_actions=9, report=lambda done, total: seen.append((done, total))
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


def test_another_runs_player_is_judged_with_its_own_weights(saved_run):
    """On the agent's positions; a run against itself, whose searches agree."""
    agent = players.load_agent(saved_run)
    rival = oracle_evaluation.named_candidate(players.parse(f"{saved_run}@4"), agent._replace(params=None), None)
    assert rival.name == f"{saved_run}@4"
    result = oracle_evaluation.examine(
        agent, [*oracle_evaluation.agent_candidates(agent, (4,)), rival], num_positions=1, seed=0
    )
    *_, own, same = result["scores"]
    assert same["optimal_move_rate"] == own["optimal_move_rate"] and same["value_error"] is None


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
