"""Environments of gymnax and jumanji, against the libraries' own steps; skipped if they are not installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games import outside_states
from muzero_jax.games.catalogue import needs_key
from muzero_jax.games.environment import make_environment

gymnax, jumanji = pytest.importorskip("gymnax"), pytest.importorskip("jumanji")


def test_cartpole_moves_as_gymnax_moves_it():
    environment = make_environment("gymnax:CartPole-v1", gamma=0.9)
    theirs, params = gymnax.make("CartPole-v1")
    move, action = jax.jit(environment.move), jnp.int32(0)
    assert (environment.num_actions, environment.observation_shape, environment.num_players) == (2, (4,), 1)
    state = jax.jit(environment.init)(jax.random.key(0))
    for index in range(30):
        key = jax.random.key(index)
        observation, _, reward, terminated, _ = theirs.step_env(key, state.state, action, params)
        step = move(state, action, key)
        np.testing.assert_allclose(step.state.observation, observation, rtol=1e-5)
        assert (step.reward, step.is_last) == (reward, terminated)
        assert step.discount == (0.0 if terminated else np.float32(0.9))
        state = step.state
        if terminated:
            break
    assert 5 < index < 15 and state.terminated, "a cart that is pushed to one side loses its pole"


def test_a_time_limit_of_gymnax_is_no_end_by_the_rules():
    environment = make_environment("gymnax:CartPole-v1", gamma=0.9)
    state = jax.jit(environment.init)(jax.random.key(0))
    late = state._replace(state=state.state.replace(time=499))
    step = jax.jit(environment.move)(late, jnp.int32(0), jax.random.key(1))
    assert step.is_last and step.discount == np.float32(0.9) and step.reward == 1


def test_a_maze_of_jumanji_ends_at_its_target_or_is_cut_off():
    environment, theirs = make_environment("jumanji:Maze-v0", gamma=0.9), jumanji.make("Maze-v0")
    move = jax.jit(environment.move)
    state = jax.jit(environment.init)(jax.random.key(0))
    me, target, walls = state.observation[:20], state.observation[20:40], state.observation[40:]
    assert state.observation.dtype == bool and (me.sum(), target.sum()) == (2, 2), "a row and a column, one-hot"
    np.testing.assert_array_equal(walls.reshape(10, 10), state.state.walls)
    np.testing.assert_array_equal(state.legal_action_mask, state.state.action_mask)
    action = jnp.int32(np.flatnonzero(state.legal_action_mask)[0])
    there, _ = theirs.step(state.state, action)
    at_target = state._replace(state=state.state.replace(target_position=there.agent_position))
    won = move(at_target, action, jax.random.key(1))
    assert (won.reward, won.discount, won.is_last) == (1, 0, True)
    late = state._replace(state=state.state.replace(step_count=jnp.int32(99)))
    cut = move(late, action, jax.random.key(1))
    assert (cut.reward, cut.discount, cut.is_last) == (0, np.float32(0.9), True)
    at_last = late._replace(state=at_target.state.replace(step_count=jnp.int32(99)))
    assert move(at_last, action, jax.random.key(1)).discount == 0, "it came there in time"


def test_jumanjis_chance_depends_only_on_the_moves_key_and_tiles_are_boolean_planes():
    environment = make_environment("jumanji:Game2048-v1")
    assert needs_key(environment)
    state = jax.jit(environment.init)(jax.random.key(0))
    assert (environment.observation_shape, state.observation.dtype) == ((4, 4, 18), bool)
    np.testing.assert_array_equal(state.observation.argmax(-1), state.state.board)
    action = jnp.int32(np.flatnonzero(state.legal_action_mask)[0])
    move = jax.jit(environment.move)
    boards = {np.asarray(move(state, action, jax.random.key(seed)).state.observation).tobytes() for seed in range(12)}
    assert len(boards) > 3
    forged = state._replace(state=state.state.replace(key=jax.random.key(7)))
    one, other = (move(x, action, jax.random.key(1)).state.observation for x in (state, forged))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("name", "shape"), [("FrozenLake-misc", (16,)), ("FourRooms-misc", (4, 12))])
def test_integer_observations_of_gymnax_become_one_hot(name, shape):
    environment, (theirs, params) = make_environment(f"gymnax:{name}"), gymnax.make(name)
    state, action, key = jax.jit(environment.init)(jax.random.key(3)), jnp.int32(1), jax.random.key(4)
    numbers, *_ = theirs.step_env(key, state.state, action, params)
    shown = jax.jit(environment.move)(state, action, key).state.observation
    assert (environment.observation_shape, shown.dtype) == (shape, bool)
    np.testing.assert_array_equal(shown, jax.nn.one_hot(numbers, shape[-1]))


def test_the_parts_of_an_observation_become_one_array():
    grid, count = jnp.array([[0, 2], [1, 0]]), jnp.array(3)
    shown = outside_states.seen([(grid, 3), (count, 4)])
    assert shown.dtype == bool and shown.shape == (2 * 2 * 3 + 4,)
    assert np.flatnonzero(shown).tolist() == [0, 5, 7, 9, 15]
    mixed = outside_states.seen([(jnp.array([True, False]), None), (jnp.array([0.5]), None), (jnp.array(100), 101)])
    assert mixed.dtype == jnp.float32 and mixed.tolist() == [1, 0, 0.5, 100], "a hundred values are a number"
    assert outside_states.seen([(jnp.zeros((4, 5, 2)), None)]).shape == (4, 5, 2)
    assert outside_states.num_values(-1, 2) == 3 and outside_states.num_values(-2, 2) is None
    none_and_last = outside_states.seen([(jnp.array([-1, 2]), 3)])
    assert none_and_last.tolist() == [[False] * 3, [False, False, True]], "-1 is none of the values"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gymnax:CartPol", "did you mean CartPole-v1"),
        ("gymnax:list", "gymnax has CartPole-v1, .*Breakout-MinAtar"),
        ("gymnax:Pendulum-v1", "its actions are Box"),
        ("jumanji:RubiksCube-v0", "its actions are of kind MultiDiscreteArray"),
    ],
)
def test_an_unknown_environment_or_one_with_unsupported_actions_is_refused(name, says):
    with pytest.raises(ValueError, match=says):
        make_environment(name)


def test_a_missing_library_gives_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnax", None)
    monkeypatch.delitem(__import__("sys").modules, "muzero_jax.games.gymnax_games", raising=False)
    with pytest.raises(ValueError, match="pip install gymnax six"):
        make_environment("gymnax:CartPole-v1")
