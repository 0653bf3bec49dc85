"""The scripts that use the package as a library do what they say, and MuZero in one file has our targets and losses."""

import csv
import re
import runpy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import logger, nano_muzero, training_loop
from muzero_jax.agent import load_agent
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.run import metrics, program
from muzero_jax.storage import agent_file
from muzero_jax.storage.checkpoint import checkpoint_steps
from scripts.benchmarks import programs
from tests.reference import tiny_run
from tests.reference.models import random_params
from tests.reference.programs import compiled_before
from tests.reference.tiny_run import CONFIG
from tests.reference.windows import random_window
from tests.run.conftest import DRAWN, draw_matches

EXAMPLES = Path(training_loop.__file__).parent


@pytest.fixture
def tiny_program(monkeypatch):
    """The tiny run's program instead of those that would be compiled, and no matches."""
    made, compiled = tiny_run.make_init(), tiny_run.program()
    ready = compiled_before(lambda: compiled)
    monkeypatch.setattr(program, "make_init", lambda *_: made)
    monkeypatch.setattr(program, "make_chunk", lambda *_, **options: ready)
    own = SimpleNamespace(make_init=lambda *_: made, make_chunk=lambda *_: compiled)
    monkeypatch.setattr(training_loop, "program", own)
    draw_matches(monkeypatch)


def test_a_loop_of_ones_own_trains_an_agent_that_can_be_loaded(tiny_program, tmp_path, capsys):
    file = tmp_path / "mine.safetensors"
    training_loop.main(CONFIG, num_chunks=3, file=str(file))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["2", "4", "6"]
    assert lines[0].endswith("loss 0.000") and not lines[2].endswith("loss 0.000"), "it learns from the second chunk on"
    assert lines[3] == f"python experiments/play.py --agent {file}"
    agent = load_agent(file)
    assert (agent.iteration, agent.config) == (6, CONFIG)
    state = tiny_run.make_init()()
    for _ in range(3):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    tiny_run.assert_same(agent.params, state.learner.params)


def test_a_logger_of_ones_own_has_a_row_for_every_record_and_ends_a_run_that_is_good_enough(
    tiny_program, tmp_path, monkeypatch, capsys
):
    logger.main(replace(CONFIG, max_iterations=4), tmp_path / "run")
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    records = metrics.read_records(tmp_path / "run")
    assert [row["iteration"] for row in rows] == [str(record["iteration"]) for record in records] == ["2", "4", "4"]
    assert list(rows[0]) == list(logger.COLUMNS) and float(rows[1]["train/loss"]) == records[1]["train/loss"]
    monkeypatch.setattr(Arena, "play", lambda *_, **options: DRAWN | {"score": 0.95})
    evaluation = replace(CONFIG.evaluation, interval_minutes=1e-9)
    logger.main(replace(CONFIG, max_iterations=100, evaluation=evaluation), tmp_path / "good")
    assert "good enough: 95% against random play after " in capsys.readouterr().out
    assert checkpoint_steps(tmp_path / "good" / "checkpoints")[-1] < 100


def test_the_analysis_script_prints_a_game_of_moves_with_values(monkeypatch, capsys):
    """With the perfect agent of tic-tac-toe, because Hex's search takes longer to compile."""
    find = agent_file.find
    monkeypatch.setattr(agent_file, "find", lambda name: find(name.replace("hex_5x5", "tic_tac_toe")))
    runpy.run_path(str(EXAMPLES / "analyse.py"))
    moves = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len({move for move, *_ in moves}) == len(moves) == 9, "perfect play ends in a draw, with a full board"
    assert all(abs(float(value)) < 0.1 for _, _, value, *_ in moves)


# --- MuZero in one file -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window():
    """Windows of two-player games, with ends and random moves, and no time limits: nano_muzero has none."""
    window = random_window(3, 32, CONFIG.window_length, 9, (3, 3, 2), gamma=1.0)
    discount = jnp.where(window.is_last, 0.0, -1.0)
    return window._replace(observation=window.observation > 0.5, discount=discount)


def test_nano_muzero_imports_nothing_of_the_package_and_computes_its_targets(window):
    assert not re.search(r"^\s*(?:import|from) .*muzero_jax", Path(nano_muzero.__file__).read_text(), re.MULTILINE)
    ours = tiny_run.algorithm().make_targets(window, jnp.float32(0.0))
    reward, value, policy, alive = nano_muzero.make_targets(programs.frames_of(window), programs.settings_of(CONFIG))
    assert 0 < np.asarray(window.is_last).mean() < 1 and 0 < np.asarray(window.explored).mean() < 1
    np.testing.assert_allclose(value, ours.value, atol=1e-6)
    np.testing.assert_allclose(reward, ours.reward, atol=1e-6)
    np.testing.assert_array_equal(alive, ours.alive)
    np.testing.assert_array_equal(policy * alive[..., None], ours.policy * ours.policy_mask[..., None])


def test_nano_muzeros_loss_has_the_gradient_of_the_packages_loss(window):
    """The losses differ by the targets' entropy, which no weight changes."""
    algorithm, key = tiny_run.algorithm(), jax.random.key(5)
    nano = programs.nano_of(CONFIG, algorithm, algorithm.model)
    params = random_params(algorithm.model)
    wanted, terms = algorithm.make_targets(window, jnp.float32(0.0)), algorithm.terms
    batch = algorithm.make_batch(window, wanted, jnp.ones(32), key, num_frames=algorithm.num_frames)
    ours = partial(algorithm.loss, model=algorithm.model, terms=terms)
    wanted = jax.jit(jax.grad(lambda params: ours(params, batch)[0]))(params)
    frames, action_key = programs.frames_of(window), jax.random.split(key)[0]  # the other half is for codes of chance
    found = jax.jit(jax.grad(lambda params: nano_muzero.loss(params, frames, action_key, nano)))(params)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-6, rtol=1e-4), found, wanted)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("env", "size", "least"), [("tic_tac_toe", None, 0.94), ("hex", 4, 0.95)])
def test_nano_muzero_learns_in_five_minutes(env, size, least):
    """Perfect play scores about 97% against random moves at tic-tac-toe, because some games are drawn."""
    nano = nano_muzero.make_nano(env, size, nano_muzero.Settings())
    params = nano_muzero.train(nano, minutes=5.0)
    score = jax.jit(lambda key: nano_muzero.match(params, key, nano))
    assert np.mean([score(jax.random.key(seed)) for seed in range(4)]) >= least
