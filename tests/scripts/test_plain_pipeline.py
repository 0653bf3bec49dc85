"""The plain pipeline, which the ablation starts from, searches as ours does."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax.storage.config_groups import NetworkConfig
from scripts.benchmarks import plain_pipeline, workloads
from tests.scripts.conftest import noise_params

NUM_SIMULATIONS = 24
NETWORK = NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3)
CONFIG = workloads.workload("tic_tac_toe", NETWORK, num_envs=6, num_simulations=NUM_SIMULATIONS, rollout_length=3)
CONFIG = replace(CONFIG, search=replace(CONFIG.search, policy="puct"))


@pytest.fixture(scope="module")
def algorithm():
    return workloads.algorithm_of(CONFIG)


@pytest.fixture(scope="module")
def params(algorithm):
    return noise_params(algorithm.model)


@pytest.fixture(scope="module")
def game(params):
    """A plain game that has made three moves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "noisy_params", lambda model: params)
        game = plain_pipeline.PlainGame(CONFIG)
    for _ in range(3):
        game.move()
    return game


def test_the_python_tree_is_our_puct_tree_visit_for_visit(algorithm, params, game):
    actor, _ = workloads.random_play(algorithm.environment, jax.random.key(1), num_envs=6, length=3)
    observation, legal = actor.env_state.observation, actor.env_state.legal_action_mask
    search = workloads.search_of(CONFIG, algorithm, noise=False)
    found = jax.jit(search)(params, jax.random.key(0), algorithm.environment.roots(actor.env_state))
    for i in range(6):
        root = game.search(np.asarray(observation[i], np.float32), np.asarray(legal[i]))
        np.testing.assert_array_equal(
            plain_pipeline.visit_counts(root), np.round(found.policy[i] * NUM_SIMULATIONS), err_msg=f"position {i}"
        )
        assert root.value == pytest.approx(float(found.value[i]), abs=1e-5)


def test_a_moves_value_is_taken_back_with_alternating_signs(game):
    """Two levels by hand: Q = r + d V with d = -1, and each node's value is the mean of its visits."""
    root = plain_pipeline.Node([0.5, 0.5], 0.2, 0.0, None)
    child, grandchild = (
        plain_pipeline.Node([0.5, 0.5], value, reward, None) for value, reward in ((0.4, 0.1), (0.6, 0.3))
    )

    class Scripted(plain_pipeline.PlainGame):
        def __init__(self):
            self.discount, self.leaves = game.discount, iter((child, grandchild))

        def select(self, node, actions):
            return 0

        def expand(self, node, action):
            node.children[action] = next(self.leaves)
            return node.children[action]

    scripted = Scripted()
    scripted.simulate(root, [0, 1])
    assert (root.value, root.visits) == (pytest.approx((0.2 + (0.1 - 0.4)) / 2), 2)
    scripted.simulate(root, [0, 1])
    below = 0.3 - 0.6
    assert child.value == pytest.approx((0.4 + below) / 2)
    assert root.value == pytest.approx((0.2 - 0.3 + (0.1 - below)) / 3)
