"""MuZero's loss: against loops, and its weights and gradients by hand."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from muzero_jax.algorithm.heads import DISCOUNT, LEGALITY
from muzero_jax.learning import losses, targets, unroll
from muzero_jax.learning.losses import Term
from muzero_jax.types import Batch, Model, NetworkOutput
from tests.reference import losses as reference
from tests.reference.models import BOARD, make_network, make_tanh_model, random_params
from tests.reference.windows import make_batch, make_targets, random_window, said_of_two_moves, two_moves

N, K, A = 6, 3, 3
LEGAL = np.array([[[True, False, True], [True, True, True], [False, False, True]]])
MODEL = make_tanh_model()
WEIGHTS = {"reward": 3.0, "value": 0.5, "policy": 2.0, "root_value": 0.0, "reconstruction": 0.25}


def loss_of(params, batch, model=MODEL, weights=WEIGHTS, **how):
    """The losses that `weights` names, of a batch."""
    named = {
        "reward": losses.reward_loss,
        "value": losses.value_loss,
        "policy": losses.policy_loss,
        "root_value": losses.root_value_loss,
        "reconstruction": losses.reconstruction_loss,
    }
    terms = [Term(name, named[name], weight) for name, weight in weights.items()]
    return losses.loss(params, batch, model=model, terms=terms, **how)


@jax.jit
def loss_and_gradient(params, observation, legal_action_mask, actions, wanted, weight=None):
    weight = jnp.ones(len(actions)) if weight is None else weight
    batch = Batch(observation, legal_action_mask, actions, wanted, weight)
    return jax.value_and_grad(loss_of, has_aux=True)(params, batch)


@pytest.fixture(scope="module")
def batch():
    """params, observation, legal_action_mask, actions, targets of six windows, of which several see an end."""
    window = random_window(0, N, K + 3, end_probability=0.3)
    wanted = jax.jit(partial(targets.make, unroll_steps=K, td_steps=2, td_lambda=1.0, stop_at_exploration=True))(window)
    assert 0 < float(wanted.policy_mask.sum()) < wanted.policy_mask.size
    params, window, wanted = jax.device_get((MODEL.init(jax.random.key(0)), window, wanted))
    observation = window.observation[:, : K + 1] > 0.5
    return params, observation, window.legal_action_mask[:, :1], window.action[:, :K], wanted


def line_model():
    """Embedding p o, dynamics w s, value u s, all numbers: gradients can be worked by hand. Scalar heads."""

    def output(params, embedding):
        zeros = jnp.zeros_like(embedding)
        return NetworkOutput(embedding, zeros, params["u"] * embedding, jnp.zeros((len(embedding), A)))

    return Model(
        init=None,  # type: ignore
        initial_inference=lambda params, observation: output(params, params["p"] * observation),
        recurrent_inference=lambda params, embedding, action: output(params, params["w"] * embedding),
        to_scalar=lambda logits: logits[..., 0],
        reconstruct=None,  # type: ignore
        scalar_loss=lambda logits, target: 0.5 * (logits[..., 0] - target) ** 2,
    )


@jax.jit
def line_loss(params, wanted):
    actions = jnp.zeros(wanted.reward.shape, jnp.int32)
    batch = Batch(jnp.ones((1, 1, 1)), jnp.ones((1, 1, A), bool), actions, wanted, jnp.ones(1))
    weights = {"reward": 1.0, "value": 1.0, "policy": 1.0, "root_value": 0.0}
    return loss_of(params, batch, line_model(), weights)


# --- the whole --------------------------------------------------------------------------------------------------------


def test_loss_equals_plain_loops_over_windows_steps_and_bins(batch):
    params, observation, legal, actions, wanted = jax.tree.map(np.asarray, batch)

    def heads(s):
        return s @ params["value"], s @ params["policy"] + params["bias"]

    def initial(observation):
        s = np.tanh(observation @ params["representation"])
        return s, *heads(s)

    def recurrent(s, action):
        s = np.tanh(s @ params["dynamics"] + params["action"][action])
        return s, s @ params["reward"], *heads(s)

    def reconstruct(s):
        return s @ params["decoder"]

    inputs = (initial, recurrent, reconstruct, observation, legal[:, 0], actions, wanted)
    parts = reference.muzero_loss(*inputs, low=-1.0, high=1.0)
    (total, metrics), _ = loss_and_gradient(*batch)
    for name, part in parts.items():
        np.testing.assert_allclose(metrics[f"train/{name}_loss"], part, rtol=1e-4)
    expected = 3.0 * parts["reward"] + 0.5 * parts["value"] + 2.0 * parts["policy"] + 0.25 * parts["reconstruction"]
    np.testing.assert_allclose([total, metrics["train/loss"]], expected, rtol=1e-4)


@pytest.mark.usefixtures("strict_rank_promotion")
def test_root_has_weight_1_and_each_unrolled_step_1_over_k():
    """u p = 1, then 2 and 4 by w = 2; errors 1, 1, 2: 0.5 + (0.5 + 2) / 2."""
    params = {"p": jnp.float32(1), "w": jnp.float32(2), "u": jnp.float32(1)}
    total, metrics = line_loss(params, make_targets(2, value=[0.0, 1.0, 2.0]))
    np.testing.assert_allclose(total, 1.75)
    np.testing.assert_allclose(metrics["train/root_value_loss"], 0.5)


# --- gradients --------------------------------------------------------------------------------------------------------


def test_gradient_is_halved_at_the_input_of_the_dynamics_and_nowhere_else():
    """Errors e = 1, 1, 2 of u p, u w p, u w w p with p = u = 1, w = 2; unrolled steps weigh 1/2, each g halves s.

    u (a head): whole. 1 p + (1 w p + 2 w w p) / 2 = 1 + (2 + 8) / 2 = 6.
    p (h): 1 u + (1 u w / 2 + 2 u w w / 4) / 2 = 1 + (1 + 2) / 2 = 2.5; 6 without halving.
    w (g): (1 u p + 2 (u w p + u w p / 2)) / 2 = (1 + 6) / 2 = 3.5; the last g whole, the one before through one half.
    """
    params = {"p": jnp.float32(1), "w": jnp.float32(2), "u": jnp.float32(1)}
    (gradient, _) = jax.jit(jax.grad(line_loss, has_aux=True))(params, make_targets(2, value=[0.0, 1.0, 2.0]))
    np.testing.assert_allclose([gradient["u"], gradient["p"], gradient["w"]], [6.0, 2.5, 3.5], rtol=1e-6)


def test_the_gradient_of_a_checkpointed_unroll_is_the_same(batch):
    params, *inputs = batch
    windows = Batch(*inputs, jnp.ones(N))
    loss = partial(loss_of, checkpoint=True)
    assert "remat" in str(jax.make_jaxpr(loss)(params, windows))
    (_, metrics), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(params, windows)
    (_, expected_metrics), expected = loss_and_gradient(*batch)
    chex.assert_trees_all_close((metrics, gradient), (expected_metrics, expected), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["observation", pytest.param("fully_convolutional", marks=pytest.mark.slow)])
def test_unrolling_all_at_once_equals_unrolling_in_turn_if_embeddings_are_rounded(kind):
    model = make_network(kind, width=4, num_blocks=0)
    assert model.rounds_embeddings and not MODEL.rounds_embeddings
    window = random_window(0, N, 5, BOARD.num_actions, BOARD.observation_shape)
    windows = make_batch(window, jax.random.key(0), unroll_steps=2)
    params = random_params(model)

    def found(batched):
        loss = partial(loss_of, model=model, batched=batched)
        return jax.jit(jax.value_and_grad(loss, has_aux=True))(params, windows)

    chex.assert_trees_all_close(found(True), found(False), rtol=1e-4, atol=1e-4)


# --- masks ------------------------------------------------------------------------------------------------------------


def test_illegal_actions_are_masked_at_the_root(batch):
    """However large the logit of an illegal action, the loss is the same and no gradient reaches it."""
    params, observation, _, actions, wanted = batch
    legal, policy = np.ones((N, 1, A), bool), np.array(wanted.policy)
    legal[:, 0, 1], policy[:, 0] = False, [0.75, 0.0, 0.25]
    only_root = np.float32(np.arange(K + 1) == 0) * np.ones((N, 1), np.float32)
    rest = observation, legal, actions, wanted._replace(policy=policy, policy_mask=only_root)
    (_, one), gradient = jax.device_get(loss_and_gradient(params, *rest))
    (_, other), _ = loss_and_gradient(params | {"bias": params["bias"] + np.float32([0, 50, 0])}, *rest)
    np.testing.assert_allclose(one["train/policy_loss"], other["train/policy_loss"], rtol=1e-6)
    assert gradient["bias"][1] == 0 and (gradient["policy"][:, 1] == 0).all()
    assert gradient["bias"][0] != 0


def test_unrolled_policies_are_masked_too_if_the_model_predicts_legal_moves():
    batch = two_moves()._replace(legal_action_mask=LEGAL)
    logits = jax.jit(losses.legal_policy_logits)
    for heads, is_masked in (
        ({}, ~LEGAL & (np.arange(3) == 0)[:, None]),
        ({"legal_logits": np.zeros((1, 3, A), np.float32)}, ~LEGAL),
    ):
        np.testing.assert_array_equal(np.less(logits(said_of_two_moves(**heads), batch), 0), is_masked)


def test_nothing_past_a_time_limit_is_learned_from_and_everything_before_it_is(batch):
    """An end by the rules teaches zeros, a time limit nothing at all."""
    params, observation, legal, actions, wanted = batch
    first, late = np.arange(N)[:, None] == 0, np.arange(K + 1) >= 2
    mask = np.float32(~(first & late))
    wanted = wanted._replace(mask=mask, policy_mask=wanted.policy_mask * mask)
    value, reward = (np.where(first & late[: x.shape[1]], np.float32(0.9), x) for x in (wanted.value, wanted.reward))
    beyond = wanted._replace(value=value, reward=reward)
    before = wanted._replace(value=np.where(first & (np.arange(K + 1) == 1), np.float32(0.9), wanted.value))
    one, same, other = (
        loss_and_gradient(params, observation, legal, actions, targets)[0][0] for targets in (wanted, beyond, before)
    )
    assert one == same and one != other


def test_of_the_move_that_a_time_limit_cut_off_reward_and_discount_are_learned():
    """The first of two moves has errors of 1 / 2 and ln 3, and the second is not known."""
    batch = two_moves(reward=[1.0, 7.0], mask=[1, 0, 0])
    outputs = said_of_two_moves(discount_logits=np.zeros((1, 3, 3), np.float32))
    model = line_model()
    found = jax.jit(lambda outputs, batch: losses.reward_loss(outputs._replace(model=model), batch))(outputs, batch)
    np.testing.assert_allclose(found, 0.5 / 2)
    np.testing.assert_allclose(
        jax.jit(partial(losses.head_loss, head=DISCOUNT))(outputs, batch), np.log(3) / 2, rtol=1e-6
    )


def test_a_windows_weight_counts_in_every_loss(batch):
    """The mean over windows of weight times loss: weights 2 and 0 are a batch without the windows of weight 0."""
    params, *inputs = batch
    weight = np.float32([2.0, 0.0] * (N // 2))
    kept = jax.tree.map(lambda x: x[::2], tuple(inputs))
    (_, weighted), gradient = loss_and_gradient(params, *inputs, weight)
    (_, alone), expected = loss_and_gradient(params, *kept)
    chex.assert_trees_all_close((weighted, gradient), (alone, expected), rtol=1e-4, atol=1e-6)


# --- the policy's part ------------------------------------------------------------------------------------------------


def test_policy_loss_is_a_kl_divergence_and_0_at_the_target():
    target = jax.device_put(np.float32([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]))
    cross_entropy = jax.jit(partial(losses.cross_entropy, target=target))
    np.testing.assert_allclose(cross_entropy(jnp.log(target)), 0, atol=1e-6)  # logits of -inf included
    np.testing.assert_allclose(cross_entropy(np.zeros((2, 4), np.float32)), np.log([2.0, 4.0]), rtol=1e-6)


def test_policy_loss_is_computed_in_float32():
    logits = jax.random.normal(jax.random.key(0), (8, 25)).astype(jnp.bfloat16)
    target = jax.nn.softmax(jax.random.normal(jax.random.key(1), (8, 25)))
    expected = losses.cross_entropy(logits.astype(jnp.float32), target)
    np.testing.assert_array_equal(losses.cross_entropy(logits, target), expected)


# --- the reconstruction's part ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bit", [0.0, 1.0])
def test_binary_cross_entropy_and_its_gradient_are_exact_for_logits_of_any_size(bit):
    logits = np.float32([-1e4, -100.0, -20.0, -1.0, 0.0, 0.5, 3.0, 20.0, 100.0, 1e4])
    bits = np.full(logits.shape, bit, np.float32)

    @jax.jit
    def both(logits):
        loss, pullback = jax.vjp(losses.binary_cross_entropy, logits, jnp.asarray(bits))
        wanted = optax.losses.sigmoid_binary_cross_entropy(logits, bits), jax.nn.sigmoid(logits) - bits
        return (loss, pullback(jnp.ones_like(logits))[0]), wanted

    for found, wanted in zip(*both(logits), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(both(20.0 * (2 * bits - 1))[0][0], 0)


# --- what options add -------------------------------------------------------------------------------------------------


def test_legality_loss_by_hand():
    """Two of three right for certain and one unknown costs ln 2 / 3; past the end nothing counts."""
    logits, loss = (
        np.float32([[[100, -100, 0], [100] * 3, [100] * 3]]),
        jax.jit(partial(losses.head_loss, head=LEGALITY)),
    )
    outputs, past, none_past = said_of_two_moves(legal_logits=logits), two_moves(alive=[1, 1, 0]), two_moves()
    found, more = (loss(outputs, b._replace(legal_action_mask=LEGAL)) for b in (past, none_past))
    np.testing.assert_allclose(found, np.log(2) / 3, rtol=1e-6)
    assert more > 30


def test_discount_loss_by_hand():
    """The classes are the other's turn, the end, one's own turn: known for certain costs 0, a guess ln 3.

    Past the end the end is still learned.
    """
    sure = np.float32([[[0, 0, 0], [100, 0, 0], [0, 0, 100]]])  # a root has no move
    loss = jax.jit(partial(losses.head_loss, head=DISCOUNT))
    sure, guess = (said_of_two_moves(discount_logits=logits) for logits in (sure, 0 * sure))
    np.testing.assert_allclose(loss(sure, two_moves(discount=[-0.9, 0.9])), 0, atol=1e-6)
    np.testing.assert_allclose(loss(sure, two_moves(discount=[0.0, 0.9])), 50.0)
    past_the_end = two_moves(discount=[0.0, 0.0], alive=[1, 0, 0])
    np.testing.assert_allclose(loss(guess, past_the_end), np.log(3), rtol=1e-6)


OBSERVED = np.float32([[[3.0, 4.0], [0.0, 2.0]]])
IMAGINED = np.float32([[[4.0, -3.0], [0.0, -1.0]]])
"""After two moves: at a right angle to what is observed, then the other way round."""


@jax.jit
def consistency_loss(imagined, observed, batch, factor=1.0):
    """Params are a factor of the embeddings; projection and its prediction are the identity."""
    model = line_model()._replace(
        initial_inference=lambda factor, observation: NetworkOutput(factor * observation, *[None] * 3),  # type: ignore
        project=lambda params, embedding: embedding,
        predict_projection=lambda params, projection: projection,
    )
    embedding, observation = (jnp.concatenate([jnp.zeros((1, 1, 2)), x], axis=1) for x in (imagined, observed))
    outputs = said_of_two_moves()._replace(embedding=embedding, params=factor, model=model)
    return losses.consistency_loss(outputs, batch._replace(observation=observation))[0]


def test_consistency_loss_is_1_minus_the_cosine_and_trains_only_the_imagined_side():
    np.testing.assert_allclose(consistency_loss(2.0 * OBSERVED, OBSERVED, two_moves()), 0, atol=1e-6)
    np.testing.assert_allclose(consistency_loss(IMAGINED, OBSERVED, two_moves()), (1 + 2) / 2, rtol=1e-6)
    gradient = jax.jit(jax.grad(consistency_loss, argnums=(0, 1, 3)))
    imagined, *seen = gradient(np.float32([[[1, 0], [1, 1]]]), OBSERVED, two_moves(), 2.0)
    assert np.abs(imagined).max() > 0 and not any(np.asarray(x).any() for x in seen)


def test_consistency_loss_compares_nothing_with_the_first_frame_of_the_next_game():
    """The second move ends the game."""
    ended = two_moves(discount=[-1.0, 0.0], alive=[1, 1, 0])
    np.testing.assert_allclose(consistency_loss(IMAGINED, OBSERVED, ended), (1 + 0) / 2, rtol=1e-6)


def test_without_moves_to_unroll_the_dynamics_are_never_called(batch):
    """K = 0, as in AlphaZero: the value loss is the root's, at its whole weight."""
    params, observation, legal, actions, wanted = batch
    model = MODEL._replace(recurrent_inference=None)  # type: ignore
    root = jax.tree.map(lambda x: x[:, :1], wanted)._replace(reward=wanted.reward[:, :0])
    batch = Batch(observation, legal, actions[:, :0], root, jnp.ones(N))
    outputs = jax.jit(partial(unroll.unroll, model))(params, batch)
    value = jax.jit(lambda outputs, batch: losses.value_loss(outputs._replace(model=MODEL), batch))(outputs, batch)
    expected = jax.jit(MODEL.scalar_loss)(np.asarray(outputs.value_logits)[:, 0], wanted.value[:, 0])
    np.testing.assert_array_equal(value, expected)
    assert outputs.policy_logits.shape == (N, 1, A)
