"""A head that the package does not know, in one file: its target, its training, and the agent that has it."""

import shutil
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from examples.algorithms import moves_left
from muzero_jax import algorithm as algorithms
from muzero_jax.ops import devices
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.storage import agent_file
from muzero_jax.storage.config_groups import AlgorithmConfig
from muzero_jax.types import Targets
from tests.reference.tiny_run import CONFIG
from tests.reference.windows import make_window

FILE = str(Path(moves_left.__file__))
HEAD = replace(CONFIG, algorithm=AlgorithmConfig(FILE))


@pytest.fixture(scope="module")
def trained():
    """(learner, metrics) of some iterations on one device."""
    config = replace(HEAD, self_play=replace(CONFIG.self_play, num_envs=4))
    mesh, algorithm = devices.make_mesh(1), algorithms.make(config)
    state, metrics = make_chunk(algorithm, mesh)(make_init(algorithm, 0, mesh)(), np.zeros(24, np.float32))
    return jax.device_get(state.learner), jax.device_get(metrics)


def test_the_target_counts_the_moves_to_the_first_end_and_is_0_past_it_and_where_there_is_none():
    ends = np.array([[0, 0, 1, 0, 1], [0, 0, 0, 0, 0]], bool)
    window = make_window(np.zeros((2, 5), int), np.where(ends, 0.0, -1.0))._replace(is_last=jnp.asarray(ends))
    zeros = jnp.zeros((2, 4))
    made = Targets(zeros, zeros, zeros, zeros, zeros, zeros, zeros)
    algorithm = algorithms.make(CONFIG)._replace(make_targets=lambda window, progress: made)
    targets = moves_left.change(algorithm, None).make_targets(window, 0)
    left = np.asarray(targets.extras["moves_left"]) * moves_left.MOST
    np.testing.assert_allclose(np.maximum(left, 0), [[3, 2, 1, 0], [0, 0, 0, 0]], rtol=1e-6)


def test_the_checker_finds_nothing():
    assert muzero_jax.check(algorithms.make(HEAD)) == []


def test_its_loss_falls_and_its_head_learns(trained):
    learner, metrics = trained
    learned = metrics["train/moves_left_loss"][metrics["train/updates"] > 0]
    assert learned[-1] < learned[0] / 2
    assert np.abs(learner.params["head"]).max() > 0


def test_its_agent_plays_and_says_how_many_moves_are_left(trained, tmp_path):
    learner, _ = trained
    shutil.copy(FILE, tmp_path)  # an agent's own Python file lies beside it
    agent_file.save(tmp_path / "head.safetensors", HEAD, learner.params, iteration=24)
    agent = muzero_jax.load(f"agent:{tmp_path}/head.safetensors", trust_code=True)
    state = agent.environment.init(jax.random.key(0))
    assert state.legal_action_mask[agent.act(state)]
    output = agent.agent.model.initial_inference(agent.agent.params, state.observation[None])
    assert 0 < output.extras["moves_left"][0] * moves_left.MOST < 9
