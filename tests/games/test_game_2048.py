"""2048 by hand: what merges, what a move earns, where tiles may come, and when the game ends."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games import game_2048
from muzero_jax.games.catalogue import make_notation
from tests.reference.games import with_compiled_chance

LEFT, UP, RIGHT, DOWN = range(4)


@pytest.fixture(scope="module")
def environment():
    return with_compiled_chance("2048")


@functools.cache
def opening():
    return jax.jit(with_compiled_chance("2048").init)(jax.random.key(0))


def position(*rows):
    """The state with these tiles, given as their numbers, row by row."""
    board = jnp.array([number and number.bit_length() - 1 for row in rows for number in row], jnp.int32)
    legal = jax.jit(game_2048.play2048._legal_action_mask)(board.reshape(4, 4))
    return opening().replace(_board=board, observation=game_2048.observe(board), legal_action_mask=legal)


def tiles(state):
    return [[int(cell) if cell != "." else 0 for cell in row] for row in game_2048.squares(state)]


NOTHING = (0, 0, 0, 0)


@pytest.mark.parametrize(
    "row, left, gain, right",
    [
        ((2, 2, 2, 2), [4, 4, 0, 0], 8, [0, 0, 4, 4]),
        ((0, 2, 2, 2), [4, 2, 0, 0], 4, [0, 0, 2, 4]),
        ((4, 2, 2, 0), [4, 4, 0, 0], 4, [0, 0, 4, 4]),
        ((2, 0, 0, 2), [4, 0, 0, 0], 4, [0, 0, 0, 4]),
        ((0, 8, 0, 2), [8, 2, 0, 0], 0, [0, 0, 8, 2]),
        ((1024, 1024, 0, 2), [2048, 2, 0, 0], 2048, [0, 0, 2048, 2]),
    ],
)
def test_a_row_slides_and_a_pair_merges_once_from_the_side_it_slides_to(environment, row, left, gain, right):
    for action, expected in ((LEFT, left), (RIGHT, right)):
        after = environment.chance.move(position(row, NOTHING, NOTHING, NOTHING), jnp.int32(action))
        assert (tiles(after.state)[0], float(after.reward)) == (expected, gain)
        assert (after.awaits_chance, after.discount, after.is_last) == (True, 1, False)


def test_columns_slide_up_and_down(environment):
    state = position((2, 0, 0, 0), (2, 0, 0, 4), NOTHING, (4, 0, 0, 4))
    up, down = (environment.chance.move(state, jnp.int32(action)) for action in (UP, DOWN))
    assert tiles(up.state) == [[4, 0, 0, 8], [4, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert tiles(down.state) == [[0, 0, 0, 0], [0, 0, 0, 0], [4, 0, 0, 0], [4, 0, 0, 8]]
    assert float(up.reward) == float(down.reward) == 12


def test_a_tile_comes_to_an_empty_cell_nine_times_in_ten_as_a_2(environment):
    state = position((2, 4, 8, 16), (4, 8, 16, 32), (8, 16, 32, 64), (16, 32, 0, 0))
    probabilities = np.asarray(environment.chance.probabilities(state))
    expected = np.zeros(32)
    expected[28:] = [0.45, 0.05, 0.45, 0.05]  # a 2 and a 4 in cell 14, then in cell 15
    np.testing.assert_allclose(probabilities, expected, atol=1e-7)
    step = environment.chance.resolve(state, jnp.int32(31))
    assert tiles(step.state)[3] == [16, 32, 0, 4]
    assert (step.reward, step.discount, step.is_last) == (0, 1, False)


def test_the_game_ends_after_the_tile_and_only_if_it_leaves_no_move(environment):
    state = position((2, 4, 8, 16), (4, 8, 16, 32), (2, 4, 8, 16), (8, 2, 64, 0))
    after = environment.chance.move(state, jnp.int32(RIGHT))
    assert (after.awaits_chance, after.is_last, after.discount) == (True, False, 1)
    alive, lost = (environment.chance.resolve(after.state, jnp.int32(outcome)) for outcome in (24, 25))
    assert (tiles(alive.state)[3], tiles(lost.state)[3]) == ([2, 8, 2, 64], [4, 8, 2, 64])
    assert (alive.discount, alive.is_last, alive.state.terminated, alive.reward) == (1, False, False, 0)
    assert (lost.discount, lost.is_last, lost.state.terminated, lost.reward) == (0, True, True, 0)
    assert lost.state.legal_action_mask.all()


def test_moves_are_read_as_keys_too(environment):
    notation = make_notation(environment)
    assert [notation.read(opening(), key) for key in "awds"] == [0, 1, 2, 3]
    assert notation.read(opening(), "Down") == 3
