"""Symmetries commute with the rules: a transformed game is the game of the transformed actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games import environment
from muzero_jax.games.game_2048 import GAME_2048
from muzero_jax.games.layout import Layout, carried, turns_and_mirrors
from muzero_jax.learning.symmetries import transform_observation, transform_policy
from tests.reference.games import MOVES, environment_of, random_games


def images(name, transform, leaves):
    """All symmetric images [T, games, symmetries, ...] of leaves [T, games, ...]."""
    symmetries = environment_of(name).board.symmetries
    indices = jnp.arange(len(symmetries.action_permutation))
    one = jax.vmap(transform, in_axes=(None, 0, None))
    return np.asarray(jax.jit(jax.vmap(jax.vmap(one, (None, None, 0)), (None, None, 0)))(symmetries, indices, leaves))


@pytest.mark.parametrize("name", MOVES)
def test_playing_the_transformed_actions_gives_the_transformed_games(name):
    games = random_games(name)
    expected = images(name, transform_observation, games.next_observation[:, :, 0])
    assert expected.dtype == games.next_observation.dtype
    np.testing.assert_array_equal(games.next_observation, expected)
    np.testing.assert_array_equal(games.mask, images(name, transform_policy, games.mask[:, :, 0]))
    for leaf in (games.reward, games.discount, games.ended):
        np.testing.assert_array_equal(leaf, np.broadcast_to(leaf[:, :, :1], leaf.shape))


def test_the_compared_games_include_a_pass_a_swap_and_ends():
    othello = random_games("othello")
    assert ((othello.action == 64) & ~othello.over).any(), "a pass"
    assert (random_games("hex").action[1] == 25).any(), "a swap"
    assert random_games("tic_tac_toe").ended[-1].all()
    assert random_games("connect_four").ended[-1].all()
    assert random_games("hex").ended[-1].all()


@pytest.mark.parametrize(
    ("name", "number"), [("tic_tac_toe", 8), ("othello", 8), ("go_9x9", 8), ("hex", 4), ("connect_four", 2)]
)
def test_symmetries_are_distinct_permutations_that_start_with_the_identity(name, number):
    observation_permutation, observation_flip, action_permutation = map(
        np.asarray, environment_of(name).board.symmetries[:3]
    )
    assert len(action_permutation) == len(np.unique(observation_permutation, axis=0)) == number
    for permutation in (observation_permutation, action_permutation):
        np.testing.assert_array_equal(permutation[0], np.arange(permutation.shape[1]))
        np.testing.assert_array_equal(np.sort(permutation, axis=1), np.broadcast_to(permutation[0], permutation.shape))
    assert not observation_flip[0].any()


def test_hex_turns_by_180_degrees_and_transposes_with_the_colors_swapped():
    """Worked on 2x2 (cells 0 1 / 2 3, action 4 swaps): an own stone on 1, white to move, who may swap."""
    symmetries = environment.make_environment("hex", board_size=2).board.symmetries
    observation = np.zeros((2, 2, 4), bool)
    observation[0, 1, 0] = True
    observation[..., 2:] = True
    expected_cells, expected_colors = [1, 2, 2, 1], [1, 1, 0, 0]
    for index in range(4):
        image = np.asarray(transform_observation(symmetries, jnp.int32(index), jnp.asarray(observation)))
        assert np.flatnonzero(image[..., 0]).tolist() == [expected_cells[index]]
        assert (image[..., 2] == expected_colors[index]).all()
        assert image[..., 3].all()
    assert symmetries.action_permutation.tolist() == [
        [0, 1, 2, 3, 4],
        [3, 2, 1, 0, 4],
        [0, 2, 1, 3, 4],
        [3, 1, 2, 0, 4],
    ]


def test_a_layouts_outcome_location_gives_the_symmetries_of_outcomes():
    """In 2048 every symmetry moves a new tile with its cell; of a cell's two outcomes, each keeps its rank."""
    layout = Layout(
        action_location=lambda shape, num_actions: np.full(num_actions, -1),
        symmetries=turns_and_mirrors,
        outcome_location=lambda shape, num_outcomes: np.arange(num_outcomes) // 2,
    )
    symmetries = environment.environment_of(GAME_2048._replace(layout=layout)).board.symmetries
    sources = np.asarray(symmetries.observation_permutation).reshape(8, 16, 31)[..., 0] // 31
    for turned, source in zip(np.asarray(symmetries.outcome_permutation), sources, strict=True):
        for rank in (0, 1):  # tiles of 2 and of 4
            np.testing.assert_array_equal(turned[2 * source + rank], 2 * np.arange(16) + rank)
    with pytest.raises(ValueError, match="another number"):
        carried(np.array([0, 1, 1]), np.array([1, 0]))
