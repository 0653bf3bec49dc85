"""Atari games against ale-py's own emulator; skipped if it is not installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.environment import make_environment

ale_py = pytest.importorskip("ale_py")
atari_games = pytest.importorskip("muzero_jax.games.atari_games")

WAIT, FIRE = ale_py.Action.NOOP, ale_py.Action.FIRE


@pytest.fixture(scope="module")
def environment():
    return make_environment("atari:breakout", gamma=0.9)


@pytest.fixture(scope="module")
def start(environment):
    return jax.jit(environment.init)(jax.random.key(0))


@pytest.fixture(scope="module")
def move(environment):
    return jax.jit(environment.move)


def emulator_after(waits):
    """An emulator of our own, with its actions in our order, after so many frames and one of "fire"."""
    emulator = ale_py.ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("random_seed", 0)
    emulator.loadROM(str(ale_py.roms.get_rom_path("breakout")))
    emulator.reset_game()
    for _ in range(waits):
        emulator.act(WAIT)
    emulator.act(FIRE)
    return emulator, [action for action in emulator.getMinimalActionSet() if action != WAIT] + [WAIT]


def shrunk(screen):
    """Means of 84 x 84 areas, by plain loops over the pixels that an area touches."""
    found = np.zeros((84, 84))
    for row, column in np.ndindex(84, 84):
        weights = []
        for size, index in zip(screen.shape, (row, column), strict=True):
            low, high = index * size / 84, (index + 1) * size / 84
            weights.append([max(0.0, min(high, i + 1) - max(low, i)) for i in range(size)])
        area = np.outer(*weights)
        found[row, column] = (area * screen).sum() / area.sum()
    return found


def test_a_game_is_the_emulators_own_frames(start, move):
    """A whole game: the pictures of some moves, and the reward and the end of each."""
    memories = [memory.tobytes() for memory in atari_games.console_of("breakout").starts()[0]]
    emulator, actions = emulator_after(memories.index(np.asarray(start.state.memory).tobytes()) + 1)
    generator, state, number = np.random.default_rng(0), start, 0
    while not emulator.game_over():
        action = generator.integers(len(actions))
        reward, screens = 0, []
        for _ in range(4):
            reward += emulator.act(actions[action])
            screens.append(emulator.getScreenGrayscale())
        before, moved = state, move(state, jnp.int32(action))
        state, number = moved.state, number + 1
        assert (moved.reward, moved.is_last) == (reward, emulator.game_over())
        np.testing.assert_array_equal(state.observation[..., :3], before.observation[..., 1:])
        if number in (1, 60):
            newest = np.asarray(state.observation[..., 3], float)
            np.testing.assert_allclose(newest, shrunk(np.maximum(*screens[2:])), atol=0.51)
    assert moved.discount == 0 and number > 50


def test_a_batch_of_games_is_its_games(environment, start, move):
    """Also when several threads of XLA ask for an emulator, and however often the compiled program runs."""
    keys, actions = jax.random.split(jax.random.key(3), 5), jnp.arange(5) % environment.num_actions
    states = jax.vmap(environment.init)(keys)
    together = jax.jit(jax.vmap(environment.move))(states, actions).state
    for game in range(5):
        alone = move(jax.tree.map(lambda x: x[game], states), actions[game]).state  # noqa: B023
        for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_array_equal(one, other[game])
    again, once = (move(start, jnp.int32(0)).state.state.memory for _ in range(2))
    np.testing.assert_array_equal(again, once)


def test_games_start_after_different_numbers_of_frames_and_are_cut_off_by_time(environment, start, move):
    states = jax.vmap(environment.init)(jax.random.split(jax.random.key(1), 64))
    assert len({memory.tobytes() for memory in np.asarray(states.state.memory)}) > 20
    assert start.observation.dtype == jnp.uint8 and start.observation.shape == environment.observation_shape
    late = start._replace(state=start.state._replace(moves=jnp.int32(atari_games.MOST_MOVES - 1)))
    moved = move(late, jnp.int32(0))
    assert moved.is_last and moved.discount == np.float32(0.9), "values bootstrap across a time limit"


def test_no_game_is_offered_for_which_the_emulator_ends_the_process():
    assert set(ale_py.roms.get_all_rom_ids()) - set(atari_games.NAMES) == atari_games.FOR_TWO
    assert {"pong", "breakout", "freeway"} < set(atari_games.NAMES)


def test_a_game_has_words_for_its_actions_and_a_picture(environment, start):
    notation = make_notation(environment)
    assert [notation.write(start, action) for action in range(4)] == ["fire", "right", "left", "noop"]
    squares = game_of(environment).view.squares(start)
    assert (len(squares), len(squares[0])) == (84, 84)
    assert {cell for row in squares for cell in row} == set("#+.")
