"""Games of octax, against the library's own loop; skipped if it is not installed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games import outside_states
from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.environment import make_environment

pytest.importorskip("octax")
octax_games = pytest.importorskip("muzero_jax.games.octax_games")

FIRST_LEVELS = [name for name in octax_games.NAMES if not name[-1].isdecimal() or name.endswith("1")]
MOVES = 1000


@pytest.mark.parametrize(
    "name", ["pong", *(pytest.param(name, marks=pytest.mark.slow) for name in FIRST_LEVELS if name != "pong")]
)
def test_a_game_is_octaxs_own_loop_bit_for_bit(name):
    """A thousand random moves, also past the end of an episode, because octax continues there."""
    environment, theirs = make_environment(f"octax:{name}", gamma=0.9), octax_games._environment(name)
    actions = jax.random.randint(jax.random.key(0), (MOVES,), 0, theirs.num_actions)
    keys = jax.random.split(jax.random.key(1), MOVES)
    rules = octax_games.OctaxRules(name)

    def ours(state, move):
        state = rules.step(state, *move)
        return state, (state.observation, state.rewards[0], state.terminated, state.truncated)

    def loop(state, move):
        action, key = move
        state = state.replace(rng=jax.random.key_data(jax.random.split(key)[0]))
        state, frames, reward, terminated, truncated, _ = theirs.step(state, action)
        return outside_states.strict(state), (frames, reward, terminated, truncated)

    @jax.jit
    def both():
        start = outside_states.strict(theirs.cached_reset_state)
        return jax.lax.scan(ours, rules.init(jax.random.key(2)), (actions, keys)), jax.lax.scan(
            loop, start, (actions, keys)
        )

    with octax_games._quiet():
        (last, seen), (emulator, wanted) = both()
    frames, *others = wanted
    np.testing.assert_array_equal(seen[0], np.asarray(frames).transpose(0, 3, 2, 1))
    for one, other in zip(seen[1:], others, strict=True):
        np.testing.assert_array_equal(one, np.asarray(other, one.dtype))
    for one, other in zip(jax.tree.leaves(last.state.emulator), jax.tree.leaves(emulator), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (environment.num_actions, environment.observation_shape) == (theirs.num_actions, (32, 64, 4))
    assert make_notation(environment).write(last, theirs.num_actions - 1) == octax_games.WAIT, "a word for each key"


class Emulated(NamedTuple):
    """A state of `Emulator`, in octax's form."""

    rng: jax.Array
    time: jax.Array

    def replace(self, rng):
        return self._replace(rng=rng)


class Emulator:
    """A minimal emulator: the reward is the key that is held; the end comes at 9 moves, the time limit at 3."""

    num_actions = 3

    def reset(self, rng):
        return Emulated(rng, jnp.int32(0)), jnp.zeros((4, 64, 32), bool), {}

    def step(self, state, action):
        time = state.time + 1
        frames = jnp.zeros((4, 64, 32), bool).at[0, 7, 2].set(True).at[-1, 5, 2].set(True)
        return Emulated(state.rng, time), frames, action * 1.0, time == 9, time == 3, {}


@pytest.fixture
def emulator(monkeypatch):
    monkeypatch.setattr(octax_games, "_environment", lambda game: Emulator())


def test_sticky_actions_repeat_the_last_move_a_quarter_of_the_time(emulator):
    keys = jax.random.split(jax.random.key(0), 1000)
    for options, share in (([], 0.0), (["sticky"], octax_games.SHARE_REPEATED)):
        rules = octax_games.OctaxRules("pong", *options)
        move = jax.jit(jax.vmap(rules.step, (0, None, 0)))
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (1000, *x.shape)), rules.init(jax.random.key(1)))
        first = move(start, jnp.int32(0), keys)
        assert abs(np.mean(first.rewards == 2) - share) < 0.05, "before its first move a game waits"
        second = move(first, jnp.int32(1), keys[::-1])
        assert abs(np.mean(second.rewards == first.rewards) - share) < 0.05
        assert np.all((second.rewards == 1) | (second.rewards == first.rewards))


def test_a_score_that_passes_255_costs_nothing(emulator):
    """Blinky's count of pills goes from 246 to 247 and on to 0 when the maze is finished; other scores overflow."""
    rules = octax_games.OctaxRules("pong")
    start = rules.init(jax.random.key(0))
    rewards = [0, 1, 127, -1, -128, -255, -247, 255]
    earned = [float(rules.step(start, jnp.int32(reward), jax.random.key(1)).rewards[0]) for reward in rewards]
    assert earned == [0, 1, 127, -1, -128, 1, 9, -1]
    stars = octax_games.OctaxRules("shooting_stars")  # its score is 0 above 128, so it goes to 128 and back in one move
    assert [stars.step(start, jnp.int32(reward), jax.random.key(1)).rewards[0] for reward in (128, -128)] == [128, -128]


def test_an_action_is_held_for_some_moves_but_not_beyond_the_end(emulator):
    """The emulator's time limit comes with the third move, so that the rewards of later moves do not count."""
    for options, rewards, over in ((["hold2"], [4, 2], 1), (["hold4", "sticky"], [6], 0)):
        rules = octax_games.OctaxRules("pong", *options)
        state = rules.init(jax.random.key(0))
        for index, reward in enumerate(rewards):
            state = rules.step(state, jnp.int32(2), jax.random.key(1))
            assert (float(state.rewards[0]), bool(state.truncated)) == (reward, index == over)
            assert not state.terminated
    rules = octax_games.OctaxRules("pong", "hold2")
    seen = rules.step(rules.init(jax.random.key(0)), jnp.int32(2), jax.random.key(1)).observation
    assert np.argwhere(seen).tolist() == [[2, 5, 1], [2, 5, 3]], "of eight pictures every second one"


def test_octaxs_time_limit_is_no_end_by_the_rules(emulator):
    environment = make_environment("octax:pong", gamma=0.9)
    move, state = jax.jit(environment.move), environment.init(jax.random.key(0))
    steps = []
    for index in range(3):
        steps.append(move(state, jnp.int32(0), jax.random.key(index)))
        state = steps[-1].state
    assert [bool(step.is_last) for step in steps] == [False, False, True]
    assert steps[-1].discount == np.float32(0.9), "values bootstrap across it"


def test_a_screen_shows_the_newest_frame_and_fading_pixels_and_its_keys_have_names(emulator):
    environment = make_environment("octax:cavern1:sticky")
    state = environment.move(environment.init(jax.random.key(0)), jnp.int32(0), jax.random.key(1)).state
    game = game_of(environment)
    squares = game.view.squares(state)
    lit = {(row, column): sign for row, signs in enumerate(squares) for column, sign in enumerate(signs) if sign != "."}
    assert lit == {(2, 5): "#", (2, 7): "+"} and (len(squares), len(squares[0])) == (32, 64)
    assert game.title == "Cavern 1, sticky"
    notation = make_notation(environment)
    assert [notation.write(state, action) for action in range(5)] == ["up", "left", "right", "down", "wait"]
    assert notation.read(state, "a") == 1


def test_a_held_game_is_named_so_and_runs_at_the_same_speed_and_unknown_options_are_refused(emulator):
    facts, plain = octax_games.facts("worm", "hold7"), octax_games.facts("worm")
    assert facts["title"] == "SuperWorm, moves of 7" and facts["view"].pace == 7 * plain["view"].pace
    with pytest.raises(ValueError, match="octax has no option 'slow'; it has sticky, hold2, hold3"):
        make_environment("octax:pong:slow")
    with pytest.raises(ValueError, match="octax:pong:hold2:hold3 has two options of one kind"):
        make_environment("octax:pong:hold2:hold3")
