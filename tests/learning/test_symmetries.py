"""What a random symmetry does to a batch, image by image."""

from functools import partial

import jax
import numpy as np
import pytest

from muzero_jax.games.environment import make_environment
from muzero_jax.learning.symmetries import augment
from muzero_jax.types import Batch, Targets

N, FRAMES, K = 64, 3, 2


@pytest.fixture(scope="module")
def hex_batch():
    """64 random windows on a 3x3 board of Hex, as a batch before and after `augment`, and the board's symmetries."""
    symmetries = make_environment("hex", board_size=3).board.symmetries
    generator = np.random.default_rng(0)
    batch = Batch(
        observation=generator.random((N, FRAMES, 3, 3, 4)) < 0.5,
        legal_action_mask=generator.random((N, K + 1, 10)) < 0.5,
        actions=generator.integers(0, 10, (N, K)),
        targets=Targets(
            reward=generator.normal(size=(N, K)),
            value=generator.normal(size=(N, K + 1)),
            policy=generator.random((N, K + 1, 10)),
            policy_mask=generator.random((N, K + 1)),
            alive=generator.random((N, K + 1)),
            mask=generator.random((N, K + 1)),
            discount=generator.normal(size=(N, K)),
            by_action={"q": generator.normal(size=(N, K + 1, 10))},
        ),
        weight=generator.random(N),
    )
    batch = jax.device_put(batch)
    turned = jax.jit(partial(augment, symmetries=symmetries))(batch, jax.random.key(0))
    return jax.device_get((batch, turned, symmetries))


def image_of(batch, row, index, symmetries):
    """Observation, legal actions, actions, policies of one window under one symmetry, by the words of `Symmetries`."""
    permutation, flip = symmetries.observation_permutation[index], symmetries.observation_flip[index]
    to = symmetries.action_permutation[index]
    observation = [(frame.ravel()[permutation] ^ flip).reshape(3, 3, 4) for frame in batch.observation[row]]
    mask, policy = np.empty_like(batch.legal_action_mask[row]), np.empty_like(batch.targets.policy[row])
    q = np.empty_like(policy)
    for action in range(10):
        mask[:, to[action]] = batch.legal_action_mask[row, :, action]
        policy[:, to[action]] = batch.targets.policy[row, :, action]
        q[:, to[action]] = batch.targets.by_action["q"][row, :, action]
    return np.stack(observation), mask, to[batch.actions[row]], policy, q


def test_all_of_a_window_is_turned_by_one_symmetry_and_every_symmetry_occurs(hex_batch):
    batch, turned, symmetries = hex_batch
    used = []
    for row in range(N):
        targets = turned.targets
        found = turned.observation, turned.legal_action_mask, turned.actions, targets.policy, targets.by_action["q"]
        images = [image_of(batch, row, index, symmetries) for index in range(4)]
        matches = [
            index
            for index, image in enumerate(images)
            if all((leaf[row] == wanted).all() for leaf, wanted in zip(found, image, strict=True))
        ]
        assert len(matches) == 1, row
        used += matches
    assert set(used) == {0, 1, 2, 3}


def test_symmetries_do_not_change_values_rewards_masks_and_weights(hex_batch):
    batch, turned, _ = hex_batch
    for name in ("reward", "value", "policy_mask", "alive", "mask", "discount"):
        np.testing.assert_array_equal(getattr(turned.targets, name), getattr(batch.targets, name))
    np.testing.assert_array_equal(turned.weight, batch.weight)
    assert turned.observation.dtype == bool


def test_known_outcomes_are_permuted_with_the_board_and_codes_of_an_encoder_are_not(hex_batch):
    """Three outcomes, of which the second symmetry exchanges two; code 3 says that chance had no part."""
    batch, symmetries = jax.device_put((hex_batch[0], hex_batch[2]))
    codes = np.random.default_rng(1).integers(0, 4, (N, K))
    batch = batch._replace(extras={"codes": codes})
    permutation = np.array([[0, 1, 2], [1, 0, 2], [0, 1, 2], [2, 0, 1]])
    turn = jax.jit(augment)
    known = turn(batch, jax.random.key(0), symmetries=symmetries._replace(outcome_permutation=permutation))
    index = np.asarray(jax.random.randint(jax.random.key(0), (N,), 0, 4))
    expected = [[[*permutation[g], 3][code] for code in row] for g, row in zip(index, codes, strict=True)]
    np.testing.assert_array_equal(known.extras["codes"], expected)
    found = turn(batch, jax.random.key(0), symmetries=symmetries)
    np.testing.assert_array_equal(found.extras["codes"], codes)
