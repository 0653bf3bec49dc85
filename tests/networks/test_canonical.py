"""A model with canonical observations: what it says of a position and of its mirror image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm.heads import LEGALITY
from muzero_jax.games.environment import make_environment
from muzero_jax.networks import canonical
from muzero_jax.networks.contract import Abilities
from tests.reference.models import BOARD, make_network, random_params

HEX = make_environment("hex", board_size=3)
N = 6


def make_model(kind="observation", *, canonical=True):
    return make_network(kind, HEX, abilities=Abilities(heads=(LEGALITY,), canonical=canonical))


@pytest.fixture(scope="module")
def positions():
    """Observations of Hex 3x3, of both colours, and what each looks like with the colours exchanged."""
    observations = np.random.default_rng(0).random((N, *HEX.observation_shape)) > 0.6
    observations[:, :, :, 2] = (np.arange(N) % 2 == 1)[:, None, None]
    mirrored = observations.swapaxes(1, 2).copy()
    mirrored[..., 2] ^= True
    return observations, mirrored


@pytest.fixture(scope="module", params=["observation", "fully_convolutional"])
def compiled(request):
    model = make_model(request.param)
    params = random_params(model)

    @jax.jit
    def unroll(observation, action):
        root = model.initial_inference(params, observation)
        return root, model.recurrent_inference(params, root.embedding, action)

    return unroll


MIRROR = np.append(np.arange(9).reshape(3, 3).T.ravel(), 9)  # of actions; the last is the swap


def test_a_position_and_its_mirror_image_with_the_colours_exchanged_are_judged_alike(compiled, positions):
    actions = np.array([0, 1, 2, 5, 7, 9], np.int32)
    for one, other in zip(compiled(positions[0], actions), compiled(positions[1], MIRROR[actions]), strict=True):
        np.testing.assert_allclose(one.value_logits, other.value_logits, rtol=1e-5)
        np.testing.assert_allclose(one.reward_logits, other.reward_logits, rtol=1e-5)
        np.testing.assert_allclose(one.policy_logits, other.policy_logits[:, MIRROR], rtol=1e-5)
        np.testing.assert_allclose(one.extras["legal_logits"], other.extras["legal_logits"][:, MIRROR], rtol=1e-5)
        turned = np.array(other.embedding.swapaxes(1, 2))
        turned[..., 2] *= -1
        np.testing.assert_allclose(one.embedding, turned, rtol=1e-5)


def test_an_imagined_position_is_judged_as_the_same_position_seen():
    """The heads after a move are those of the root that it leads to, whichever colour moves there."""
    model = make_model()
    params = random_params(model)
    embedding = 20.0 * np.where(np.random.default_rng(3).random((N, *HEX.observation_shape)) > 0.6, 1.0, -1.0)
    embedding[..., 2] = 20.0 * np.where(np.arange(N) % 2, 1, -1)[:, None, None]

    @jax.jit
    def both(embedding):
        child = model.recurrent_inference(params, embedding, jnp.arange(N))
        return child, model.initial_inference(params, child.embedding > 0)

    child, root = both(embedding.astype(np.float32))
    np.testing.assert_allclose(child.policy_logits, root.policy_logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(child.value_logits, root.value_logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(child.extras["legal_logits"], root.extras["legal_logits"], rtol=1e-5, atol=1e-6)


def test_positions_of_the_first_colour_are_seen_as_they_are(positions):
    plain, turned = make_model(canonical=False), make_model()
    params = random_params(plain)
    one, other = jax.jit(lambda x: (plain.initial_inference(params, x), turned.initial_inference(params, x)))(
        positions[0]
    )
    second = np.arange(N) % 2 == 1
    np.testing.assert_allclose(one.policy_logits[~second], other.policy_logits[~second], rtol=1e-5)
    assert np.abs(one.policy_logits - other.policy_logits)[second].max() > 1e-3


def test_a_roots_embedding_holds_the_observation_that_was_seen(compiled, positions):
    root, _ = compiled(positions[0], np.zeros(N, np.int32))
    np.testing.assert_array_equal(root.embedding > 0, positions[0])


def test_a_game_whose_symmetries_keep_the_colours_is_refused():
    with pytest.raises(ValueError, match="--network.canonical"):
        canonical.colour_swap_of(BOARD)


def test_the_colour_swap_transposes_the_board_and_undoes_itself():
    swap = canonical.colour_swap_of(HEX)
    np.testing.assert_array_equal(swap.action, MIRROR)
    observation, flipped = np.array(swap.observation), np.array(swap.flipped)
    np.testing.assert_array_equal(observation[observation], np.arange(36))
    np.testing.assert_array_equal(flipped.reshape(3, 3, 4).any(axis=(0, 1)), [False, False, True, False])
