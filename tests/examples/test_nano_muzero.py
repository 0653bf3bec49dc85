"""MuZero in one file: short, with the library's own targets and losses, and it learns."""

import ast
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import nano_muzero
from scripts.benchmarks import baseline
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG
from tests.reference.windows import random_window

SOURCE = Path(nano_muzero.__file__).read_text(encoding="utf-8")


def test_it_is_at_most_300_lines_and_knows_nothing_of_ours():
    assert len(SOURCE.splitlines()) <= 300
    imports = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names} | {getattr(node, "module", "") for node in imports}
    assert not any("muzero" in str(name) for name in names)


@pytest.fixture(scope="module")
def window():
    """Windows of two-player games, of which some end and some have random moves; no time limits, which it has not."""
    window = random_window(3, 32, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)
    discount = jnp.where(window.is_last, 0.0, -1.0)
    return window._replace(observation=window.observation > 0.5, discount=discount)


def frames(window):
    return nano_muzero.Frame(
        window.observation,
        window.legal_action_mask,
        window.action,
        window.reward,
        window.discount,
        window.search_policy,
        window.search_value,
        window.explored,
    )


def test_its_targets_are_ours(window):
    ours = tiny_run.algorithm().make_targets(window, jnp.float32(0.0))
    reward, value, policy, alive = nano_muzero.make_targets(frames(window), baseline.settings_of(CONFIG))
    assert 0 < np.asarray(window.is_last).mean() < 1 and 0 < np.asarray(window.explored).mean() < 1
    np.testing.assert_allclose(value, ours.value, atol=1e-6)
    np.testing.assert_allclose(reward, ours.reward, atol=1e-6)
    np.testing.assert_array_equal(alive, ours.alive)
    np.testing.assert_array_equal(policy * alive[..., None], ours.policy * ours.policy_mask[..., None])


def test_its_loss_has_our_gradient(window):
    """The losses differ by the targets' entropy, which we take off and no weight changes."""
    algorithm, key = tiny_run.algorithm(), jax.random.key(5)
    nano = baseline.nano_of(CONFIG, algorithm, algorithm.model)
    generator, shapes = np.random.default_rng(0), jax.eval_shape(algorithm.model.init, key)
    params = jax.tree.map(lambda x: jnp.asarray(generator.normal(size=x.shape) * 0.3, x.dtype), shapes)
    wanted, terms = algorithm.make_targets(window, jnp.float32(0.0)), algorithm.terms
    batch = algorithm.make_batch(window, wanted, jnp.ones(32), key, terms=terms)
    ours = partial(algorithm.loss, model=algorithm.model, terms=terms)
    wanted = jax.jit(jax.grad(lambda params: ours(params, batch)[0]))(params)
    found = jax.jit(jax.grad(lambda params: nano_muzero.loss(params, frames(window), key, nano)))(params)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-6, rtol=1e-4), found, wanted)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted)) > 1e-3


@pytest.mark.slow  # an iteration of the baseline, which is this file, is tried in tests/scripts/test_benchmark.py
def test_an_iteration_plays_remembers_and_learns():
    """Two moves of four games are played into eight frames each; learning waits until these are all played."""
    settings = nano_muzero.Settings(
        num_envs=4, rollout_length=2, replay_length=8, num_simulations=2, unroll_steps=1, td_steps=2, batch_size=4
    )._replace(updates_per_iteration=1)
    nano = nano_muzero.make_nano("tic_tac_toe", None, settings)
    first = nano_muzero.init(jax.random.key(0), nano)
    iterate = jax.jit(lambda state, learns: nano_muzero.iterate(state, learns, nano))
    second, _ = iterate(first, False)
    tiny_run.assert_same(second.learner, first.learner)
    assert np.asarray(second.replay.legal_action_mask[:6] == 0).all()
    played = second.replay.legal_action_mask[6:], second.replay.action[6:]
    assert np.take_along_axis(np.asarray(played[0]), np.asarray(played[1])[..., None], -1).all()
    third, loss = iterate(second, True)
    assert np.isfinite(loss) and loss > 0
    changed = jax.tree.map(lambda x, y: bool((x != y).any()), third.learner[0], second.learner[0])
    assert any(jax.tree.leaves(changed))
    assert 0 <= nano_muzero.match(third.learner[0], jax.random.key(0), nano) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("env", "size", "least"), [("tic_tac_toe", None, 0.94), ("hex", 4, 0.95)])
def test_it_learns_in_five_minutes(env, size, least):
    """Perfect play scores some 97% against random moves at tic-tac-toe, which draws now and then."""
    nano = nano_muzero.make_nano(env, size, nano_muzero.Settings())
    params = nano_muzero.train(nano, minutes=5.0)
    score = jax.jit(lambda key: nano_muzero.match(params, key, nano))
    assert np.mean([score(jax.random.key(seed)) for seed in range(4)]) >= least
