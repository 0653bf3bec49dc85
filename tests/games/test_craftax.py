"""Craftax-Classic, against the library's own steps; skipped if it is not installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.environment import make_environment

pytest.importorskip("craftax")
craftax_games = pytest.importorskip("muzero_jax.games.craftax_games")

MAP = 7 * 9 * 21
STEPS = craftax_games.steps_to(1.0)


@pytest.fixture(scope="module")
def environment():
    return make_environment("craftax:classic", gamma=0.9)


@pytest.fixture(scope="module")
def move(environment):
    return jax.jit(environment.move)


@pytest.fixture(scope="module")
def start(environment):
    return jax.jit(environment.init)(jax.random.key(0))


def numbers_of(bits):
    """The number in tenths that each row of steps shows, as the library's own are (in Craftax-Classic)."""
    reached = bits.reshape(-1, len(STEPS)).sum(axis=1)
    between = np.append(STEPS, np.inf)[reached], np.insert(STEPS, 0, -np.inf)[reached]
    return [tenth for high, low in zip(*between, strict=True) for tenth in range(11) if low < tenth / 10 <= high]


def test_a_game_is_the_librarys_own_moves(environment, move, start):
    theirs = craftax_games.library_of("classic").environment
    step = jax.jit(theirs.step_env)
    actions = np.random.default_rng(0).integers(0, environment.num_actions, 60)
    state, inner = start, start.state
    for index, action in enumerate(actions):
        key = jax.random.key(index)
        observation, inner, reward, done, _ = step(jax.random.key_data(key), inner, int(action), theirs.default_params)
        moved = move(state, jnp.int32(action), key)
        state = moved.state
        assert (moved.reward, moved.is_last) == (pytest.approx(float(reward)), done)
        np.testing.assert_array_equal(state.observation[:MAP], observation[:MAP])
        wanted = np.round(np.asarray(observation[MAP:-2], float) * 10).astype(int)
        assert numbers_of(np.asarray(state.observation[MAP:]))[: len(wanted)] == wanted.tolist()
    for one, other in zip(jax.tree.leaves(state.state), jax.tree.leaves(inner), strict=True):
        np.testing.assert_array_equal(one, other)


def test_craftax_itself_and_its_pixels_have_rules_of_one_shape():
    """`make_environment` compares a start with a move; the full game has floors, and darkness that hides cells."""
    full, pixels = make_environment("craftax:full"), make_environment("craftax:classic-pixels")
    assert (full.num_actions, full.observation_shape, full.costly_start) == (43, (9_747,), True)
    assert (pixels.num_actions, pixels.observation_shape) == (17, (63, 63, 3))
    picture = jax.eval_shape(pixels.init, jax.random.key(0)).observation
    assert picture.dtype == jnp.uint8, "a byte for each number in the buffer"


def test_numbers_of_the_full_game_are_told_apart_up_to_two():
    """A sword without an enchantment, of fire and of ice are 0, 1 and 2, and energy may have 21 of ten."""
    numbers = np.float32([0, 0.9, 1, 2, 2.1])
    assert len(set((numbers[:, None] > craftax_games.steps_to(2.1)).sum(axis=1).tolist())) == len(numbers)


def test_an_episode_ends_by_death_and_is_cut_off_by_time(move, start):
    def after(**changed):
        return move(start._replace(state=start.state.replace(**changed)), jnp.int32(0), jax.random.key(1))

    late = after(timestep=jnp.full_like(start.state.timestep, 9_999))
    assert late.is_last and late.discount == np.float32(0.9)
    dead = after(player_health=jnp.full_like(start.state.player_health, -9))
    assert dead.is_last and dead.discount == 0
    both = after(
        timestep=jnp.full_like(start.state.timestep, 9_999), player_health=jnp.full_like(start.state.player_health, -9)
    )
    assert both.is_last and both.discount == 0, "the end by the rules counts"


def test_chance_comes_from_the_key_of_the_move_alone(move, start):
    """A search with the ground-truth model cannot foresee it."""
    forged = start._replace(state=start.state.replace(state_rng=start.state.state_rng + 7))
    one, other = (move(state, jnp.int32(5), jax.random.key(1)).state.observation for state in (start, forged))
    np.testing.assert_array_equal(one, other)
    same_key = {np.asarray(move(start, jnp.int32(0), jax.random.key(0)).state.state.map).tobytes() for _ in range(3)}
    moved = {
        np.asarray(move(start, jnp.int32(0), jax.random.key(k)).state.state.cows.position).tobytes() for k in range(9)
    }
    assert len(same_key) == 1 and len(moved) > 1


def test_pictures_show_what_the_player_sees(environment, start):
    view = game_of(environment).view
    squares = view.squares(start)
    assert (len(squares), len(squares[0]), squares[3][4]) == (7, 9, "@")
    map_around = np.asarray(start.state.map)
    row, column = np.asarray(start.state.player_position).tolist()
    signs = {"GRASS": ".", "WATER": "~", "TREE": "T", "STONE": "s"}
    from craftax.craftax_classic.constants import BlockType

    for (i, j), sign in ((cell, squares[cell[0]][cell[1]]) for cell in np.ndindex(7, 9)):
        block = BlockType(int(map_around[row + i - 3, column + j - 4])).name
        assert sign in (signs.get(block, sign), *"ZCS*@")
    assert view.caption(start) == "health 9, food 9, drink 9, energy 9"
    notation = make_notation(environment)
    assert [notation.write(start, action) for action in (0, 5, 16)] == ["noop", "do", "make_iron_sword"]
