"""The network whose parameters do not depend on the board: what it knows of sizes, of actions, of far cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games.environment import make_environment
from muzero_jax.networks import convolutional, imagining, layers
from muzero_jax.networks.contract import MUZERO
from muzero_jax.networks.model import _board_of
from tests.networks.test_model import SIZES, key, randomised
from tests.reference.models import BOARD, make_network, random_params

N = 4


def make_model(env, board_size=None):
    environment = make_environment(env, board_size=board_size)
    return environment, make_network("fully_convolutional", environment)


def test_the_same_weights_answer_on_every_board_size():
    params = jax.eval_shape(make_model("hex", 3)[1].init, jax.random.key(0))
    for size in (2, 4, 19):
        environment, model = make_model("hex", size)
        assert jax.eval_shape(model.init, jax.random.key(0)) == params
        observation = jnp.zeros((N, *environment.observation_shape), bool)
        root = jax.eval_shape(model.initial_inference, params, observation)
        assert root.policy_logits.shape == (N, size**2 + 1) and root.embedding.shape == observation.shape


def test_without_dynamics_numbers_are_seen_as_they_are_and_bits_as_by_a_network_that_imagines():
    imagines, judges = (
        make_network("fully_convolutional", abilities=MUZERO._replace(dynamics=d)) for d in (True, False)
    )
    params = random_params(imagines)
    needed = {name: params[name] for name in jax.eval_shape(judges.init, jax.random.key(0))}
    assert len(needed) < len(params)
    judge = jax.jit(judges.initial_inference)
    bits = np.random.default_rng(0).random((N, *BOARD.observation_shape)) < 0.5
    expected = imagines.initial_inference(params, bits)
    np.testing.assert_allclose(judge(needed, bits).policy_logits, expected.policy_logits, atol=1e-6)
    seen = [np.asarray(judge(needed, np.float32(bits) * share).value_logits) for share in (0.0, 0.3, 0.4)]
    assert np.abs(seen[1] - seen[0]).max() > 0.01 and np.abs(seen[2] - seen[1]).max() > 0.01


def test_only_what_is_imagined_must_be_bits():
    chess = make_environment("gardner_chess")
    with pytest.raises(ValueError, match="planes of bits"):
        make_network("fully_convolutional", chess)
    model = make_network("fully_convolutional", chess, abilities=MUZERO._replace(dynamics=False))
    params = jax.eval_shape(model.init, jax.random.key(0))
    observation = jnp.zeros((N, *chess.observation_shape))
    assert jax.eval_shape(model.initial_inference, params, observation).policy_logits.shape == (N, chess.num_actions)


# --- actions ----------------------------------------------------------------------------------------------------------


def test_an_actions_kind_is_its_rank_on_a_cell_or_its_number_among_actions_without_one():
    """Two actions on cell 0, none on cell 1, one on cell 2, and two that touch no cell; outputs are cell by cell."""
    kinds = convolutional.kinds_of(layers.BoardLayout((1, 3), (0, -1, 2, 0, -1)))
    assert (kinds.num_cell, kinds.num_free) == (2, 2)
    np.testing.assert_array_equal(kinds.kind, [0, 2, 0, 1, 3])
    np.testing.assert_array_equal(kinds.output, [0, 6, 4, 1, 7])


@pytest.mark.parametrize("env, size", [("hex", 3), ("tic_tac_toe", None), ("othello", None)])
def test_if_each_action_is_a_cell_the_outputs_are_in_the_order_of_the_actions(env, size):
    environment, _ = make_model(env, size)
    kinds = convolutional.kinds_of(_board_of(environment, "fully_convolutional"))
    np.testing.assert_array_equal(kinds.output, np.arange(environment.num_actions))
    assert kinds.num_cell == 1 and kinds.num_free == (env != "tic_tac_toe")


def test_an_actions_logit_is_read_at_its_cell():
    """One linear map of a cell's channels, alike in every cell; the pass's comes from the whole board."""
    board = layers.BoardLayout((2, 2), (3, 0, -1, 2, 1))
    heads = convolutional.CellHeads(SIZES, convolutional.kinds_of(board), ("policy",), {"value": 3})
    x = jax.random.normal(key(1), (N, 2, 2, 4))
    params, answer = randomised(jax.jit(heads.init)(key(0), x)), jax.jit(heads.apply)
    logits, vector = answer(params, x).values()
    assert logits.shape == (N, 5) and vector.shape == (N, 3)
    swapped = x[:, ::-1]  # rows exchanged: cells 0 and 2, 1 and 3
    other, same = answer(params, swapped).values()
    np.testing.assert_allclose(other, logits[:, [4, 3, 2, 1, 0]], rtol=1e-5)
    np.testing.assert_allclose(same, vector, rtol=1e-5)


# --- what a cell knows ------------------------------------------------------------------------------------------------


def test_pooling_is_the_mean_and_the_maximum_of_each_channel():
    x = jnp.array([[[[1.0, -2.0], [3.0, 0.0]], [[5.0, 2.0], [-1.0, 4.0]]]])
    np.testing.assert_allclose(convolutional.pooled(x), [[2.0, 1.0, 5.0, 4.0]])


def test_pooling_carries_a_stone_in_one_corner_to_the_opposite_one():
    """Three convolutions see three cells far; on 9x9 only the pooling reaches the opposite corner."""
    trunk = imagining.pooled_trunk(SIZES)
    empty = jnp.zeros((1, 9, 9, 2))
    params, answer = randomised(jax.jit(trunk.init)(key(0), empty)), jax.jit(trunk.apply)
    changed = answer(params, empty.at[0, 0, 0].set(5.0)) - answer(params, empty)
    assert np.abs(changed[0, 8, 8]).max() > 1e-3


def test_on_a_square_board_the_dynamics_also_see_the_mirror_image():
    """What Hex's swap needs: a stone in one corner decides what is imagined in the mirrored one, far from it."""
    environment, model = make_model("hex", 9)
    params = jax.device_get(random_params(model))
    params = jax.tree.map_with_path(lambda path, x: x * ("middles" not in str(path)), params)  # pooling off
    params = jax.device_put(params)
    empty = np.zeros((2, *environment.observation_shape), bool)
    empty[1, 0, 8, 1] = True  # one stone
    imagined = jax.jit(lambda x: model.recurrent_inference(params, 20.0 * (2.0 * x - 1), jnp.array([81, 81])).embedding)
    difference = np.abs(np.subtract(*imagined(empty))).max(axis=-1)
    assert difference[8, 0] > 0 and difference[0, 8] > 0 and difference[4, 4] == 0
