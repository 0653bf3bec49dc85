"""Oracles are exact: they agree with trying everything, with known results, and with the environments."""

import random
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import exhaustive, openings, positions
from muzero_jax.apps.evaluation.exact_play import connect_four_solver, hex_solver, solved
from muzero_jax.apps.evaluation.exhaustive import WalkResult
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.apps.evaluation.players import Agent
from muzero_jax.games.environment import make_environment
from tests.reference import exact_play, tiny_run
from tests.reference import tic_tac_toe as rules
from tests.reference.nim import best_actions, make_nim, make_state


def test_tic_tac_toe_agrees_with_a_plain_recursion_in_every_position():
    states = positions.enumerate_all(make_environment("tic_tac_toe")).states
    assert len(states.terminated) == 4520  # the 5,478 that can be reached, less the 958 that are over
    oracle, can_err = solved.tic_tac_toe(), 0
    for observation in states.observation:
        board = rules.board_of(observation)
        expected = {action: rules.action_value(board, action) for action in rules.legal_actions(board)}
        assert oracle.action_values(observation) == expected
        can_err += len(set(expected.values())) > 1
    assert can_err == 3191  # positions in which some moves are mistakes


@pytest.mark.parametrize(("size", "most_empty"), [(5, 8), (4, 8), (3, 6)])
def test_hex_agrees_with_filling_the_board_in_every_way(size, most_empty):
    oracle, generator = hex_solver.make_oracle(size), random.Random(0)
    for number in range(50):
        num_empty = most_empty - number % 3
        board = exact_play.random_hex(size, num_empty, generator)
        color = (size * size - num_empty) % 2
        expected = exact_play.hex_action_values(board, color)
        assert oracle.action_values(exact_play.hex_observation(board, color)) == expected, board


def test_connect_four_agrees_with_trying_every_move():
    oracle, generator = connect_four_solver.make_oracle(), random.Random(0)
    for number in range(100):
        columns = exact_play.random_columns(29 + number % 6, generator)
        expected = exact_play.connect_four_action_values(columns)
        assert oracle.action_values(exact_play.connect_four_observation(columns)) == expected, columns


def test_the_reference_shows_connect_four_as_the_environment_does():
    environment, columns = make_environment("connect_four"), ("",) * 7
    state, move = environment.init(jax.random.key(0)), jax.jit(environment.move)
    for number, column in enumerate([3, 3, 4, 0, 3]):
        state, (columns, _) = move(state, column).state, exact_play.drop(columns, column, "xo"[number % 2])
        np.testing.assert_array_equal(exact_play.connect_four_observation(columns), state.observation)


# --- a player against every line of play ------------------------------------------------------------------------------


def test_counts_of_nim_from_six_stones_against_every_reply_by_hand():
    """As first, the player takes 2, and wins from each of 3, 2 and 1 that the other can leave.

    As second, it has 5, 4 or 3 left. It takes 3, and wins; it takes 1 of 5, and of 4, where it is lost. From 4 the
    other leaves 3, 2 or 1, from 3 it leaves 2 or 1, which are no new positions, or takes all.
    """
    best = jnp.array([best_actions(stones)[0] if best_actions(stones) else 0 for stones in range(7)], jnp.int32)
    player, nim = Player("knows nim", lambda params, key, states: params[states.stones]), make_nim(6)
    first, second = (exhaustive.walk(nim, player, best, moves_first=moves) for moves in (True, False))
    assert first == WalkResult(wins=3, draws=0, losses=0, positions=1 + 3)
    assert second == WalkResult(wins=1 + 3, draws=0, losses=1, positions=3 + 3)
    drawn = nim._replace(move=lambda state, action: nim.move(state, action)._replace(reward=jnp.float32(0)))
    assert exhaustive.walk(drawn, player, best, moves_first=False) == WalkResult(0, 5, 0, 6)
    both = exhaustive.examine(nim, player, best)
    counts = {"wins": 7, "draws": 0, "losses": 1, "positions": 10, "games": 8}
    assert both == counts | {"score": 7 / 8, "losses_as_first": 0, "losses_as_second": 1}
    dealt = nim._replace(init=lambda key: make_state(jax.random.randint(key, (), 3, 7), jnp.int32(0)))
    with pytest.raises(ValueError, match="deals at random"):
        exhaustive.examine(dealt, player, best)


# --- opening values of Hex: they are those of the player who moved, and the swap is gone ------------------------------


@pytest.mark.parametrize("size", openings.WINS)
def test_the_opening_tables_have_the_known_wins_and_are_symmetric_under_a_half_turn(size):
    wins = openings.WINS[size]
    assert wins.shape == (size, size) and {3: 5, 4: 4, 5: 13, 6: 24, 7: 27}[size] == wins.sum()
    np.testing.assert_array_equal(wins, wins[::-1, ::-1])


@pytest.mark.parametrize("size", [3, 4])
def test_the_hex_oracle_agrees_with_the_opening_table(size):
    """Our own solver: after a winning first move the other player, who cannot swap, loses."""
    environment = make_environment("hex", board_size=size)
    first_stones = openings.opening_positions(environment)
    legal, cells = np.asarray(first_stones.legal_action_mask), size**2
    assert (legal[:, :cells] == ~np.eye(cells, dtype=bool)).all() and not legal[:, cells].any()
    seen, oracle = np.asarray(environment.roots(first_stones).observation), hex_solver.make_oracle(size)
    best = [max(oracle.action_values(position).values()) for position in seen]
    np.testing.assert_array_equal(np.reshape(best, (size, size)) < 0, openings.WINS[size])


def test_a_swap_takes_the_value_of_the_first_move():
    environment, oracle = make_environment("hex", board_size=3), hex_solver.make_oracle(3)
    opening, move = environment.init(jax.random.key(0)), jax.jit(environment.move)
    seen = [np.asarray(move(opening, cell).state.observation) for cell in range(9)]
    values = [oracle.action_values(shown)[9] for shown in seen]
    np.testing.assert_array_equal(values, np.where(openings.WINS[3].ravel(), 1, -1))


class Solver(Agent):
    """Its search knows which first moves of 3x3 win, and gives them the value `params` for who makes them."""

    def search_fn(self, num_simulations=None, *, true_rules=False, trees=False):
        def search(params, key, asked):
            stone = asked.observation[..., :2].any(-1).reshape(-1, 9).argmax(1)
            won = jnp.asarray(openings.WINS[3].ravel())[stone]
            return SimpleNamespace(value=jnp.where(won, -params, params))

        return search


def test_opening_values_are_search_values_from_the_movers_side():
    environment = make_environment("hex", board_size=3)
    agent = Solver(**vars(tiny_run.agent()))._replace(
        environment=environment, params=jnp.float32(0.5), name="the solver"
    )
    result = openings.examine(agent)
    assert (result["size"], result["num_simulations"], result["right"], result["solved"]) == (3, 2, 9, 9)
    np.testing.assert_array_equal(result["values"], np.where(openings.WINS[3], 0.5, -0.5))
