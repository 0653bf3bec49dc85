"""Opening values of Hex: they are those of the player who moved, the swap is gone, and right ones are counted."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import openings
from muzero_jax.apps.evaluation.exact_play.hex_solver import make_oracle
from muzero_jax.apps.evaluation.players import Agent
from muzero_jax.games.environment import make_environment
from tests.reference import tiny_run


@pytest.mark.parametrize("size", openings.WINS)
def test_the_tables_are_whole_and_look_the_same_after_a_half_turn(size):
    wins = openings.WINS[size]
    assert wins.shape == (size, size) and {3: 5, 4: 4, 5: 13, 6: 24, 7: 27}[size] == wins.sum()
    np.testing.assert_array_equal(wins, wins[::-1, ::-1])


def test_perfect_play_agrees_with_the_table():
    """Our own solver on 3x3: after a winning first move the other player, who cannot swap, loses."""
    environment = make_environment("hex", board_size=3)
    positions = openings.opening_positions(environment)
    legal = np.asarray(positions.legal_action_mask)
    assert (legal[:, :9] == ~np.eye(9, dtype=bool)).all() and not legal[:, 9].any()
    seen = np.asarray(environment.roots(positions).observation)
    best = [max(make_oracle(3).action_values(position).values()) for position in seen]
    np.testing.assert_array_equal(np.reshape(best, (3, 3)) < 0, openings.WINS[3])


def test_a_value_is_right_if_its_sign_is_and_stands_where_its_cell_does():
    values = np.where(openings.WINS[3], 0.5, -0.5)
    values[0, 0] = 0.2
    assert openings.judge(values) == {"right": 8, "solved": 9, "wrong": [[0, 0]]}


class Solver(Agent):
    """Its search knows which first moves of 3x3 win, and gives them the value `params` for who makes them."""

    def search(self, num_simulations=None, *, true_rules=False):
        def search(params, key, asked):
            stone = asked.observation[..., :2].any(-1).reshape(-1, 9).argmax(1)
            won = jnp.asarray(openings.WINS[3].ravel())[stone]
            return SimpleNamespace(value=jnp.where(won, -params, params))

        return search


def solver(size, params=0.5):
    environment = make_environment("hex", board_size=size)
    return Solver(*tiny_run.agent()._replace(environment=environment, params=jnp.float32(params), name="the solver"))


def test_the_command_says_what_the_search_says_from_the_movers_side():
    result = openings.examine(solver(3))
    assert (result["size"], result["num_simulations"], result["right"], result["solved"]) == (3, 2, 9, 9)
    np.testing.assert_array_equal(result["values"], np.where(openings.WINS[3], 0.5, -0.5))
