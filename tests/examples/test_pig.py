"""Pig, the example with dice, against value iteration in plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import pig
from muzero_jax import agent as agents
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.games.own_game import environment_from, load_environment
from tests.reference.pig import hold, roll, win_probability


@pytest.fixture(scope="module")
def exact():
    return win_probability(pig.TARGET, pig.FACES)


def test_its_turns_do_not_alternate_and_its_chance_has_three_faces():
    environment = load_environment("examples/pig.py")
    assert environment.discount is None and environment.chance.num_outcomes == pig.FACES
    assert (environment.num_players, environment.num_actions, environment.observation_shape) == (2, 2, (3, 15))


def test_the_reference_satisfies_bellmans_equation_and_both_actions_are_best_somewhere(exact):
    possible = ~np.isnan(exact)
    np.testing.assert_allclose(np.maximum(roll(exact), hold(exact))[possible], exact[possible], atol=1e-9)
    assert exact[0, 0, 0] == pytest.approx(0.5416, abs=1e-4)  # it is better to begin
    better_held = hold(exact) > roll(exact)
    assert 100 < (better_held & possible).sum() < possible.sum() / 2


def test_the_rules_lead_where_the_reference_says(exact):
    """At every position and for both players: the value of an action by the rules is that of the reference."""
    environment = environment_from(pig.make(), "pig")
    own, other, gain = (grid.ravel() for grid in np.indices(exact.shape))
    keep = ~np.isnan(exact.ravel())
    own, other, gain = own[keep], other[keep], gain[keep]
    table = jnp.asarray(np.nan_to_num(2 * exact - 1), jnp.float32)

    def value(state):
        mine, theirs = state.points[state.current_player], state.points[1 - state.current_player]
        index = jnp.minimum(jnp.stack([mine, theirs, state.gain]), pig.TARGET - 1)
        return table[index[0], index[1], index[2]]

    def action_value(points, gain, player, action):
        state = pig.position(points, gain, player)
        after = environment.chance.move(state, action)
        outcomes = jnp.arange(pig.FACES)
        steps = jax.vmap(environment.chance.resolve, (None, 0))(after.state, outcomes)
        expected = (steps.reward + steps.discount * jax.vmap(value)(steps.state)).mean()
        direct = after.discount * value(after.state)
        return after.reward + jnp.where(after.awaits_chance, after.discount * expected, direct)

    values = jax.jit(jax.vmap(jax.vmap(action_value, (None, None, None, 0)), (0, 0, 0, None)))
    for player in (0, 1):
        points = np.stack([own, other] if player == 0 else [other, own], axis=-1).astype(np.int32)
        players = np.full(len(own), player, np.int32)
        found = np.asarray(values(points, gain.astype(np.int32), players, jnp.arange(2)))
        np.testing.assert_allclose(found[:, pig.ROLL], 2 * roll(exact)[own, other, gain] - 1, atol=1e-5)
        held = gain > 0
        np.testing.assert_allclose(found[held, pig.HOLD], 2 * hold(exact)[own, other, gain][held] - 1, atol=1e-5)


def positions_met(exact, num_games=2000, mistakes=0.3):
    """How often each position [own, other, gain] comes in games of players who play a random move that often."""
    best, met, generator = roll(exact) > hold(exact), np.zeros(exact.shape), np.random.default_rng(0)
    for _ in range(num_games):
        own = other = gain = 0
        while own + gain < pig.TARGET:
            met[own, other, gain] += 1
            errs = generator.random() < mistakes and gain > 0
            if generator.integers(2) if errs else best[own, other, gain]:
                face = generator.integers(pig.FACES) + 1
                own, other, gain = (other, own, 0) if face == 1 else (own, other, gain + face)
            else:
                own, other, gain = other, own + gain, 0
    return met


@pytest.mark.slow
@pytest.mark.parametrize("model", ["rules", "learned_outcomes", "learned"])
def test_it_is_learned_with_every_model_of_chance(model, exact, tmp_path):
    """Against value iteration: what a search of 64 simulations says of the opening, and what its moves lose."""
    budget = "--updates 2500 --evaluation.interval-minutes 0 --evaluation.final-games 4 --no-tensorboard".split()
    flags = ["--model", model, "--self-play.exploration", "0.5", "--run-dir", str(tmp_path / "run")]
    assert report_errors(train.main, ["--env", "examples/pig.py", *budget, *flags]) == 0
    agent = agents.load_agent(tmp_path / "run")
    met = positions_met(exact)
    own, other, gain = np.nonzero(met)
    points, gains = jnp.asarray(np.stack([own, other], axis=-1), jnp.int32), jnp.asarray(gain, jnp.int32)
    states = jax.vmap(pig.position, (0, 0, None))(points, gains, jnp.int32(0))
    own_type = type(jax.eval_shape(agent.environment.init, jax.random.key(0)))  # the file was loaded anew
    found = jax.jit(agent.search(64))(agent.params, jax.random.key(0), agent.environment.roots(own_type(*states)))
    chosen = np.where(found.action == pig.ROLL, roll(exact)[own, other, gain], hold(exact)[own, other, gain])
    loss, weight = exact[own, other, gain] - chosen, met[own, other, gain]
    errors = np.abs(np.asarray(found.value) - (2 * exact[own, other, gain] - 1))
    assert errors[0] < 0.03  # of the opening, which is the first
    assert np.average(errors, weights=weight) < 0.15
    assert np.average(loss, weights=weight) < 0.01  # of a game, by a move
