"""The example games: Nim agrees with Bouton's theorem, and Pig with value iteration in plain NumPy."""

import functools
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from examples import pig
from muzero_jax import presets
from muzero_jax.agent import load_agent
from muzero_jax.apps.commands import train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.apps.evaluation import exhaustive, players
from muzero_jax.config.validation import validate
from muzero_jax.games.own_game import environment_from, load_environment
from tests.reference.pig import hold, roll, win_probability

NIM = Path(__file__).parents[2] / "examples" / "nim.py"
LONG = "--evaluation.interval-minutes 0 --evaluation.final-games 4".split()


@functools.cache
def nim():
    return load_environment(str(NIM))


def state_of(heaps):
    """The position with these heaps, player 0 to move."""
    cells = np.arange(5) < np.array(heaps)[:, None]
    state = nim().init(jax.random.key(0))
    return state._replace(observation=jnp.asarray(cells[:, :, None]), legal_action_mask=jnp.asarray(cells.ravel()))


def test_the_winning_moves_of_nim_are_those_that_leave_a_nim_sum_of_0():
    """Bouton (1901): the mover has lost exactly where the exclusive or of the heaps is 0. All 119 positions.

    A move takes an object and all to its right, so action 5 h + i leaves i objects in heap h; the last object wins.
    """
    everyone = list(itertools.product(range(4), range(5), range(6)))[1:]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(state_of, everyone))
    move = jax.jit(jax.vmap(jax.vmap(nim().move, (None, 0)), (0, None)))
    steps = jax.device_get(move(states, jnp.arange(15)))
    after = steps.state.observation[..., 0].sum(axis=-1)
    value = {(0, 0, 0): -1}  # for the player to move
    for index, heaps in sorted(enumerate(everyone), key=lambda item: sum(item[1])):
        legal = np.flatnonzero(states.legal_action_mask[index])
        for action in legal:
            left = [*heaps[: action // 5], action % 5, *heaps[action // 5 + 1 :]]
            assert after[index, action].tolist() == left
            is_won = sum(left) == 0
            found = steps.reward[index, action], steps.discount[index, action], steps.is_last[index, action]
            assert found == ((1, 0, True) if is_won else (0, -1, False))
        results = {action: -value[tuple(after[index, action].tolist())] for action in legal}
        value[heaps] = max(results.values())
        nim_sums = {action: int(np.bitwise_xor.reduce(after[index, action])) for action in legal}
        assert [action for action in legal if results[action] == 1] == [a for a in legal if nim_sums[a] == 0]
        assert value[heaps] == (1 if np.bitwise_xor.reduce(heaps) else -1)


def test_check_accepts_nim_and_its_preset_is_a_valid_config():
    assert muzero_jax.check(NIM) == []
    config = validate(presets.preset(str(NIM), None))
    assert config.network.kind == "observation" and config.env_name == "nim"
    assert 12 <= config.targets.td_steps <= 19, "about the twelve objects, which are the longest game"


@pytest.mark.slow
def test_nim_is_learned_perfectly_in_the_updates_of_a_minute(tmp_path):
    """The first player can always win: moving first, the agent loses to no sequence of replies."""
    run = str(tmp_path / "run")
    assert report_errors(train.main, ["--env", str(NIM), "--updates", "720", *LONG, "--run-dir", run]) == 0
    agent = load_agent(Path(run))
    assert exhaustive.walk(nim(), players.searching(agent), agent.params, moves_first=True).losses == 0


# --- Pig --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact():
    table = win_probability(pig.TARGET, pig.FACES)
    assert table[0, 0, 0] == pytest.approx(0.5416, abs=1e-4), "it is better to begin"
    return table


def test_the_rules_of_pig_give_the_action_values_of_the_reference(exact):
    """At every position and for both players."""
    environment = environment_from(pig.make(), "pig")
    assert environment.discount is None and environment.chance.num_outcomes == pig.FACES
    own, other, gain = (grid.ravel() for grid in np.indices(exact.shape))
    keep = ~np.isnan(exact.ravel())
    own, other, gain = own[keep], other[keep], gain[keep]
    table = jnp.asarray(np.nan_to_num(2 * exact - 1), jnp.float32)

    def value(state):
        mine, theirs = state.points[state.current_player], state.points[1 - state.current_player]
        index = jnp.minimum(jnp.stack([mine, theirs, state.gain]), pig.TARGET - 1)
        return table[index[0], index[1], index[2]]

    def action_value(points, gain, player, action):
        after = environment.chance.move(pig.position(points, gain, player), action)
        steps = jax.vmap(environment.chance.resolve, (None, 0))(after.state, jnp.arange(pig.FACES))
        expected = (steps.reward + steps.discount * jax.vmap(value)(steps.state)).mean()
        direct = after.discount * value(after.state)
        return after.reward + jnp.where(after.awaits_chance, after.discount * expected, direct)

    values = jax.jit(jax.vmap(jax.vmap(action_value, (None, None, None, 0)), (0, 0, 0, None)))
    for player in (0, 1):
        points = np.stack([own, other] if player == 0 else [other, own], axis=-1).astype(np.int32)
        found = np.asarray(values(points, gain.astype(np.int32), np.full(len(own), player, np.int32), jnp.arange(2)))
        np.testing.assert_allclose(found[:, pig.ROLL], 2 * roll(exact)[own, other, gain] - 1, atol=1e-5)
        held = gain > 0
        np.testing.assert_allclose(found[held, pig.HOLD], 2 * hold(exact)[own, other, gain][held] - 1, atol=1e-5)


def positions_met(exact, num_games=2000, mistakes=0.3):
    """How often each position [own, other, gain] occurs if a share `mistakes` of the moves is random."""
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
def test_pig_is_learned_with_every_model_of_chance(model, exact, tmp_path):
    """Against value iteration: the values that a search of 64 simulations finds, and what its moves lose."""
    flags = f"--updates 2500 --model {model} --self-play.exploration 0.5 --run-dir {tmp_path / 'run'}".split()
    assert report_errors(train.main, ["--env", "examples/pig.py", *LONG, *flags]) == 0
    agent = load_agent(tmp_path / "run")
    met = positions_met(exact)
    own, other, gain = np.nonzero(met)
    points, gains = jnp.asarray(np.stack([own, other], axis=-1), jnp.int32), jnp.asarray(gain, jnp.int32)
    states = jax.vmap(pig.position, (0, 0, None))(points, gains, jnp.int32(0))
    own_type = type(jax.eval_shape(agent.environment.init, jax.random.key(0)))  # the file was loaded anew
    found = jax.jit(agent.search_fn(64))(agent.params, jax.random.key(0), agent.environment.roots(own_type(*states)))
    chosen = np.where(found.action == pig.ROLL, roll(exact)[own, other, gain], hold(exact)[own, other, gain])
    loss, weight = exact[own, other, gain] - chosen, met[own, other, gain]
    errors = np.abs(np.asarray(found.value) - (2 * exact[own, other, gain] - 1))
    assert errors[0] < 0.03  # of the opening, which is the first
    assert np.average(errors, weights=weight) < 0.15
    assert np.average(loss, weights=weight) < 0.01  # winning probability that a move loses
