"""MinAtar against pgx's own step: the same games, but the last action is observed and time limits keep the discount."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from muzero_jax.games import minatar
from muzero_jax.games.catalogue import game_of, needs_key
from muzero_jax.games.environment import make_environment

NAMES = tuple(minatar.GAMES_OF_MINATAR)
each_game = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", [n if n == "breakout" else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_our_step_is_pgxs_and_the_observation_shows_the_last_action(name):
    """64 games of 40 random moves."""
    environment, rules = make_environment(f"minatar-{name}", gamma=0.5), pgx.make(f"minatar-{name}")
    numbers = jnp.array(minatar.GAMES_OF_MINATAR[name][1])
    planes = rules.observation_shape[-1]

    def move(states, key):
        ours, theirs = states
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, environment.num_actions)
        step, theirs = environment.move(ours, action, step_key), rules.step(theirs, action, step_key)
        seen = step.state.observation
        same = (seen[..., :planes] == theirs.observation).all() & (step.reward == theirs.rewards[0])
        same &= (seen[..., planes:] == (numbers == theirs._last_action)).all()
        same &= (step.discount == jnp.where(theirs.terminated, 0.0, 0.5)) & (step.is_last == theirs.terminated)
        return (step.state, theirs), (same, theirs._last_action != numbers[action], theirs.terminated)

    def play(key):
        state = rules.init(key)
        start = environment.init(key), state
        return jax.lax.scan(move, start, jax.random.split(key, 40))[1]

    same, repeated, over = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 64))
    before_the_end = np.cumsum(over, axis=1) - over == 0
    assert np.asarray(same)[before_the_end].all()
    assert 0.02 < np.asarray(repeated)[before_the_end].mean() < 0.12, "one in ten is the action before, often another"


def test_the_hidden_variant_observes_what_pgx_observes():
    environment = make_environment("minatar-breakout:hidden")
    rules, key = pgx.make("minatar-breakout"), jax.random.key(0)
    ours = jax.jit(lambda key: environment.observe(environment.init(key)))(key)
    assert environment.observation_shape == rules.observation_shape
    np.testing.assert_array_equal(ours, jax.jit(rules.init)(key).observation)
    assert game_of(environment).title == "Breakout"


@pytest.mark.parametrize(("name", "late"), [("freeway", {"_terminate_timer": 0}), ("breakout", {"_step_count": 4999})])
def test_a_time_limit_ends_play_but_keeps_the_discount(name, late):
    environment = make_environment(f"minatar-{name}", gamma=0.9)
    move = jax.jit(environment.move)
    state = jax.jit(environment.init)(jax.random.key(0)).replace(**{field: jnp.int32(x) for field, x in late.items()})
    step = move(state, 0, jax.random.key(1))
    assert step.is_last and step.discount == np.float32(0.9)
    assert step.state.terminated, "for matches and play the game is over"
    after = move(step.state, 1, jax.random.key(2))
    assert (after.reward, after.discount) == (0, 0)


@each_game
def test_a_position_is_drawn_with_the_games_own_signs(name):
    environment = make_environment(f"minatar-{name}")
    state = jax.jit(environment.init)(jax.random.key(0))
    assert needs_key(environment) and environment.chance is None and environment.num_players == 1
    picture = game_of(environment).view.squares(state)
    signs = minatar.GAMES_OF_MINATAR[name][2]
    assert len(signs) == environment.observation_shape[-1] - environment.num_actions  # the last action is seen too
    assert {cell for row in picture for cell in row} <= {".", *signs}
    assert sum(row.count(signs[0]) for row in picture) == 1, "the player"


def test_nothing_under_the_gpl_is_imported_before_it_is_asked_for():
    program = "import sys, muzero_jax.games.catalogue; print([m for m in sys.modules if m.startswith('pgx.minatar')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
