"""Values stay in the range of a game's returns: by hand, and in every tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm, playing
from muzero_jax.search.bounded import bounded
from muzero_jax.search.simulator import Simulator, learned_model
from muzero_jax.types import SearchRoots
from tests.reference import gamble, tiny_run
from tests.reference.tabular import TABULAR, make_table
from tests.search import test_tree


def path(rewards, values, discount=-1.0):
    """The nodes of a line of moves in a bounded world, the root first: what `values` [n + 1] and `rewards` become."""
    states = np.arange(len(values))
    reward = [[reward] for reward in (*rewards, 0.0)]
    table = make_table(reward, [[min(state + 1, states[-1])] for state in states], values)
    world, key, action = bounded(learned_model(TABULAR, discount), 1.0), jax.random.key(0), jnp.zeros(1, jnp.int32)
    nodes = [world.root(table, jax.tree.map(jnp.asarray, SearchRoots(jnp.zeros((1, 1), int), None, None)))]  # type: ignore
    for _ in rewards:
        nodes.append(world.expand(table, key, action, nodes[-1].embedding))
    return [float(node.value[0]) for node in nodes], [float(node.reward[0]) for node in nodes[1:]]


def test_a_won_move_is_worth_no_more_than_the_win():
    """The loser values the position after it at -0.85: 1 + 0.85 becomes 1 + 0, and 0.9 + 0.8 becomes 0.9 + 0.1."""
    assert path([1.0], [0.2, -0.85])[0] == pytest.approx([0.2, 0.0])
    assert path([0.9], [0.2, -0.8])[0] == pytest.approx([0.2, -0.1])


def test_values_and_rewards_within_bounds_do_not_change():
    """A loss predicted by half, and a game that goes on; with a positive discount too."""
    for discount in (-1.0, 1.0):
        values, rewards = path([0.0, -0.5, 0.0], [0.3, -0.4, 0.4, 0.1], discount)
        assert values == pytest.approx([0.3, -0.4, 0.4, 0.1]) and rewards == [0.0, -0.5, 0.0]


def test_bounds_reach_through_the_moves_below():
    """0.9 leaves the mover's opponent [-0.1, 1]. Its move with reward -0.5 then leaves the next mover [-1, -0.4]:

    the 0.9 that the model says there becomes -0.4, and the opponent's move is worth -0.5 + 0.4 = -0.1 instead of -1.4.
    """
    values, rewards = path([0.9, -0.5], [0.0, 0.0, 0.9])
    assert values == pytest.approx([0.0, 0.0, -0.4]) and rewards == pytest.approx([0.9, -0.5])
    assert rewards[0] - (rewards[1] - values[2]) == pytest.approx(1.0)


def test_a_reward_that_no_value_could_make_up_for_is_bounded_too():
    """A scalar head says 2.7, or predicts the end: then reward + 0 x value is the reward."""
    values, rewards = path([2.7], [3.0, 0.0])
    assert values == pytest.approx([1.0, 1.0]) and rewards == pytest.approx([2.0])
    values, rewards = path([2.7], [0.0, 0.3], discount=0.0)
    assert rewards == pytest.approx([1.0]) and abs(values[1]) <= 1


def test_no_value_in_a_thousand_trees_leaves_the_range_of_returns():
    """Rewards are normally distributed: unbounded, values leave the range in most trees, and some exceed 2."""
    plain, _ = test_tree.found_in_tables("gumbel", "own", False)
    assert (np.abs(plain.tree.q).max((0, 2)) > 1).mean() > 0.5 and np.abs(plain.tree.q).max() > 2
    search = test_tree.gumbel(bounded(test_tree.WORLD, 1.0))
    found = jax.device_get(jax.jit(search)(*test_tree.inputs_of(False)))
    for numbers in (found.tree.q, found.tree.value, found.value):
        assert 0.5 < np.abs(numbers).max() <= 1 + 1e-5


def bound_of(config, environment, model, monkeypatch):
    """The bound of the world that the configured search plans in; None where there is none."""
    asked: list[float | None] = [None]

    def note(world: Simulator, bound: float) -> Simulator:
        asked.append(bound)
        return world

    monkeypatch.setattr(playing, "bounded", note)
    make_algorithm(config, environment, model).search()
    return asked[-1]


def test_two_player_games_are_bounded_by_the_support_and_single_player_games_are_not(monkeypatch):
    algorithm, config = tiny_run.algorithm(), tiny_run.CONFIG
    assert bound_of(config, algorithm.environment, algorithm.model, monkeypatch) == 1.0
    assert bound_of(config, algorithm.environment, algorithm.model._replace(bound=None), monkeypatch) is None
    assert bound_of(config, gamble.GAMBLE, algorithm.model, monkeypatch) is None
