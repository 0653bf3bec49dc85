"""Listed chance: our steps equal pgx's, in moves and in distribution, and the functions accept any input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest
from scipy.stats import chi2

from muzero_jax.games import chance, states
from muzero_jax.games.backgammon import observe
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import load_environment
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import Afterstate, Chance, Step

NAMES = "2048", "backgammon"
OWN = "examples/pig.py"
environment_of = functools.cache(make_environment)
each_game = pytest.mark.parametrize("name", NAMES)


def outcome_between(name, after, following):
    """What chance did between an afterstate and pgx's next state."""
    if name == "2048":
        cell = jnp.argmax(after._board != following._board)
        return 2 * cell + following._board[cell] - 1
    low, high = following._dice.min(), following._dice.max()
    return jnp.argmax((jnp.array(ROLLS) == jnp.stack([low, high])).all(-1))


ROLLS = [(low, high) for low in range(6) for high in range(low, 6)]


def comparable(name, state):
    """The leaves of a state; in backgammon the two dice have no order."""
    if name == "backgammon":
        dice, playable = jnp.sort(state._dice), jnp.sort(state._playable_dice)
        state = state.replace(_dice=dice, _playable_dice=playable)
    return jax.tree.leaves(state)


@functools.cache
def opening_with_an_illegal_move(name):
    openings = jax.jit(jax.vmap(environment_of(name).init))(jax.random.split(jax.random.key(3), 64))
    index = np.flatnonzero(~np.asarray(openings.legal_action_mask).all(-1))[0]
    return jax.tree.map(lambda leaf: leaf[index], jax.device_get(openings))


@functools.cache
def walk(name, num_games, num_moves):
    """Random games by pgx's step and by ours: (moves played, moves that differ, moves that chance answered, ends).

    The last entry is the chi-squared statistic of pgx's outcomes, and its degrees of freedom: observed minus expected
    counts, weighted by the covariance that our probabilities give for the positions that occurred.
    """
    environment, rules = environment_of(name), pgx.make(name)

    def move(state, key):
        play_key, reset_key = jax.random.split(key)
        action = uniform_legal_action(play_key, state.legal_action_mask[None])[0]
        following = rules.step(state, action, play_key)
        if name == "backgammon":
            following = following.replace(observation=observe(following))  # our own view
        after = environment.chance.move(state, action)
        step = chance.with_outcome(environment.chance, after, outcome_between(name, after.state, following))
        pairs = zip(comparable(name, step.state), comparable(name, following), strict=True)
        same = jnp.stack([(ours == theirs).all() for ours, theirs in pairs]).all()
        sign = jnp.where(following.current_player == state.current_player, 1.0, -1.0)
        same &= step.discount == jnp.where(following.terminated, 0.0, sign)
        same &= (step.reward == following.rewards[state.current_player]) & (step.is_last == following.terminated)
        fresh = environment.init(reset_key)
        state = jax.tree.map(lambda old, new: jnp.where(following.terminated, old, new), fresh, following)
        counts = jnp.stack([~same, after.awaits_chance, following.terminated]).astype(jnp.int32)
        expected = environment.chance.probabilities(after.state) * after.awaits_chance
        came = jax.nn.one_hot(step.outcome, environment.chance.num_outcomes) * after.awaits_chance
        return state, (counts, came, expected)

    @jax.jit
    def run(key):
        start_key, move_key = jax.random.split(key)
        start = jax.vmap(environment.init)(jax.random.split(start_key, num_games))

        def one(states, key):
            states, (counts, came, expected) = jax.vmap(move)(states, jax.random.split(key, num_games))
            covariance = jnp.diag(expected.sum(0)) - expected.T @ expected
            return states, (counts.sum(0), (came - expected).sum(0), covariance)

        return jax.lax.scan(one, start, jax.random.split(move_key, num_moves))[1]

    counts, excess, covariance = (np.asarray(x, np.float64).sum(0) for x in run(jax.random.key(0)))
    statistic = float(excess @ np.linalg.pinv(covariance, rcond=1e-6) @ excess)
    return num_games * num_moves, *counts.astype(int).tolist(), (statistic, len(excess) - 1)


@pytest.mark.parametrize(
    "name, num_games, num_moves",
    [("2048", 128, 160), ("backgammon", 128, 40)]
    + [pytest.param(name, 2048, 512, marks=pytest.mark.slow) for name in NAMES],  # games of backgammon end here too
)
def test_our_step_is_pgxs_given_the_outcome_and_in_distribution(name, num_games, num_moves):
    moves, different, answered, ended, (statistic, freedom) = walk(name, num_games, num_moves)
    assert (moves, different) == (num_games * num_moves, 0) and chi2.sf(statistic, freedom) > 1e-3
    assert answered > moves / 5 and (ended > 50 or num_moves == 40)


@each_game
def test_move_probabilities_and_resolve_are_defined_for_every_state_and_number(name):
    environment, opening = environment_of(name), opening_with_an_illegal_move(name)
    move = jax.jit(environment.chance.move)
    lost, between = (move(opening, choose(opening.legal_action_mask)).state for choose in (np.argmin, np.argmax))
    numbers = np.array([-1000, -1, 0, 1, environment.num_actions, environment.chance.num_outcomes, 1000])
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *map(jax.device_get, (opening, lost, between)))

    @jax.jit
    def ask(state, number):
        after = environment.chance.move(state, number)
        weights = environment.chance.probabilities(after.state), environment.chance.probabilities(state)
        return after, weights, environment.chance.resolve(state, number)

    answers = jax.device_get(jax.vmap(jax.vmap(ask, (None, 0)), (0, None))(states, numbers))
    for leaf in jax.tree.leaves(answers):
        assert np.isfinite(leaf.astype(np.float64)).all()
    for weight in answers[1]:
        np.testing.assert_allclose(weight.sum(-1), 1, atol=1e-6)
    after, _, then = jax.tree.map(lambda leaf: leaf[1], answers)  # of the lost game
    assert not after.awaits_chance.any() and after.is_last.all() and then.is_last.all()
    for moved in (after, then):
        assert (moved.reward == 0).all() and (moved.discount == 0).all() and moved.state.terminated.all()


@pytest.mark.parametrize("awaits, expected", [(True, (3, -0.5, True, 7)), (False, (1, 0.25, False, -1))])
def test_a_step_combines_the_move_with_the_outcome_only_if_chance_acts(awaits, expected):
    after = Afterstate(jnp.int32(4), jnp.float32(1), jnp.float32(1 if awaits else 0.25), False, jnp.bool_(awaits))
    then = Step(jnp.int32(5), jnp.float32(2), jnp.float32(-0.5), jnp.bool_(True))
    listed = Chance(9, None, None, lambda state, outcome: then)
    step = chance.with_outcome(listed, after, jnp.int32(7))
    assert (step.reward, step.discount, step.is_last, step.outcome) == expected and step.state == 4 + awaits


def test_seated_and_final_states_keep_chance():
    """Bare states, which name no player, get the fields that matches read, in afterstates too."""
    pig = load_environment(OWN)
    bare = pig._replace(
        init=lambda key: pig.init(key)._replace(current_player=jnp.int32(0)),
        observe=lambda state: state.observation,
    )
    environment = states.final(states.wrapped(bare))
    state = environment.init(jax.random.key(0))
    after = environment.chance.move(state, jnp.int32(1))
    assert (after.awaits_chance, after.discount, after.state.current_player) == (True, 1, 0)
    np.testing.assert_allclose(environment.chance.probabilities(after.state), np.full(3, 1 / 3), atol=1e-6)
    then = environment.chance.resolve(after.state, jnp.int32(0))
    assert (then.discount, then.state.current_player, then.state.terminated) == (-1, 1, False)
    then = environment.chance.resolve(after.state, jnp.int32(2))
    assert (then.discount, then.state.current_player, then.state.gain) == (1, 0, 3)
