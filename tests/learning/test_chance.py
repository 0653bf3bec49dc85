"""Codes of chance: where they come from, the gradient that passes straight through them, and their losses by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm.learning import build_terms
from muzero_jax.config.config import Config
from muzero_jax.learning import chance, losses, targets, unroll
from muzero_jax.networks.contract import Abilities
from muzero_jax.types import Model, NetworkOutput
from tests.reference.models import BOARD, make_network, random_params
from tests.reference.windows import make_batch, make_window, random_window, said_of_two_moves, two_moves

K, C = 2, 3


def batch_of(codes=(0, 0), **wanted):
    """One window of two moves, and what chance did after them."""
    return two_moves(**wanted)._replace(extras={"codes": jax.device_put(np.int32([codes]))})


chance_loss, commitment_loss = jax.jit(chance.chance_loss), jax.jit(chance.commitment_loss)


# --- codes ------------------------------------------------------------------------------------------------------------


def test_known_outcomes_are_followed_and_past_the_end_codes_are_sampled():
    """2 actions and 10 codes. The last move's outcome is known, and -1, no outcome, has the last code."""
    discount = np.ones((400, 4))
    discount[:, 1] = 0.0
    outcome = np.full((400, 4), 7)
    outcome[:, 1] = -1
    window = make_window(np.zeros((400, 4)), discount, num_actions=2)._replace(outcome=jnp.asarray(outcome, jnp.int32))
    alive = targets.alive_frames(window.is_last)[:, :4].astype(jnp.float32)
    codes = np.asarray(chance.sample_codes(window, alive, jax.random.key(0), num_codes=10, known=True))
    assert (codes[:, 0] == 7).all() and (codes[:, 1] == 9).all()
    assert set(codes[:, 2]) == set(range(10))


def test_with_an_encoder_sampled_codes_are_random_but_for_the_end_of_a_game():
    discount = np.ones((300, 3))
    discount[:100, 1] = 0
    window = make_window(np.zeros((300, 3)), discount)
    alive = jnp.ones((300, 3)).at[:200, 2].set(0)  # the second hundred is cut off by a time limit
    codes = np.asarray(chance.sample_codes(window, alive, jax.random.key(0), num_codes=21, known=False))
    assert codes.shape == (300, 2) and (codes[:100, 1] == 20).all()
    assert set(codes[:, 0]) == set(codes[100:, 1]) == set(range(20))


def test_the_code_of_a_final_move_is_masked_for_an_encoder_but_not_for_known_outcomes():
    batch = batch_of(alive=[1, 1, 0])
    np.testing.assert_array_equal(chance.code_mask(batch, encoded=True), [[1, 0]])
    np.testing.assert_array_equal(chance.code_mask(batch, encoded=False), [[1, 1]])


def test_an_afterstate_learns_how_likely_the_game_is_to_end():
    """Of the encoder's probabilities nothing counts there; after a time limit nothing is known."""
    logits = np.log(np.float32([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]]))
    found = np.float32([[[0, 1, 0], [1, 0, 0]]])
    outputs = said_of_two_moves(chance_logits=logits, code_probabilities=found)
    over = chance_loss(outputs, batch_of([0, 2], alive=[1, 1, 0], discount=[1, 0]))
    np.testing.assert_allclose(over, [(np.log(4) + np.log(2)) / 2], rtol=1e-6)
    cut_off = chance_loss(outputs, batch_of([0, 2], alive=[1, 1, 0], discount=[1, 1]))
    np.testing.assert_allclose(cut_off, [np.log(4) / 2], rtol=1e-6)


def test_straight_through_is_a_one_hot_with_the_gradient_of_the_probabilities():
    probabilities, weights = jnp.array([[0.2, 0.5, 0.3]]), jnp.array([[3.0, -1.0, 2.0]])
    np.testing.assert_array_equal(chance.straight_through(probabilities), [[0, 1, 0]])
    gradient = jax.grad(lambda p: jnp.sum(chance.straight_through(p) * weights))(probabilities)
    np.testing.assert_array_equal(gradient, weights)


def test_a_code_that_is_likeliest_everywhere_is_not_the_one_of_every_move():
    """The third move is not known, and does not count in the mean; without any known move nothing becomes NaN."""
    logits = jnp.array([[5.0, 1.0], [5.0, 3.0], [-9.0, 100.0]])
    found = chance.centred(logits, jnp.array([True, True, False]))
    np.testing.assert_allclose(found[:2], [[0, -1], [0, 1]])
    assert np.isfinite(chance.centred(logits, jnp.zeros(3, bool))).all()


# --- losses by hand ---------------------------------------------------------------------------------------------------


def test_chance_loss_by_hand():
    """Codes 1 and 2 of probability 1/4 and 1/2: (ln 4 + ln 2) / 2; past the end nothing counts."""
    logits = np.log(np.float32([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]]))
    found = chance_loss(said_of_two_moves(chance_logits=logits), batch_of([1, 2]))
    np.testing.assert_allclose(found, [1.5 * np.log(2)], rtol=1e-6)
    past = chance_loss(said_of_two_moves(chance_logits=logits), batch_of([1, 2], alive=[1, 0, 0]))
    np.testing.assert_allclose(past, [np.log(4) / 2], rtol=1e-6)


def test_chance_loss_trains_the_afterstate_towards_the_encoders_code_and_not_the_encoder():
    probabilities = np.float32([[[0.1, 0.2, 0.7], [0.6, 0.4, 0.0]]])

    def loss(logits, probabilities):
        outputs = said_of_two_moves(chance_logits=logits, code_probabilities=probabilities)
        return chance.chance_loss(outputs, batch_of([1, 1]))[0]

    gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
    of_logits, of_probabilities = gradient(np.zeros((1, K, C), np.float32), probabilities)
    expected = (1 / 3 - np.array([[[0, 0, 1], [1, 0, 0]]])) / K  # softmax less the code
    np.testing.assert_allclose(of_logits, expected, rtol=1e-6)
    assert not np.asarray(of_probabilities).any()


def test_commitment_loss_by_hand():
    """(0.2^2 + 0.2^2) and (0.4^2 + 0.3^2 + 0.1^2), a mean over the moves whose code is known."""
    outputs = said_of_two_moves(code_probabilities=np.float32([[[0.8, 0.2, 0.0], [0.3, 0.6, 0.1]]]))
    np.testing.assert_allclose(commitment_loss(outputs, batch_of()), [(0.08 + 0.26) / 2], rtol=1e-5)
    known = batch_of(alive=[1, 1, 0])
    np.testing.assert_allclose(commitment_loss(outputs, known), [0.08 / 2], rtol=1e-5)


@pytest.mark.parametrize(
    ("discount", "value", "expected"),
    [
        ([-1.0, -1.0], [0.0, 0.5, -0.25], [-0.5, 0.25]),  # the other player moves next
        ([0.9, 0.9], [0.0, 0.5, -0.25], [0.45, -0.225]),  # the same player does
        ([-1.0, 0.0], [0.0, 0.5, 7.0], [-0.5, 0.0]),  # the second move ends the game: nothing comes after its reward
    ],
)
def test_afterstate_value_target_is_the_signed_discount_times_the_next_value(discount, value, expected):
    """The move's reward is no part of it, because it is earned before the afterstate."""
    batch = batch_of(discount=discount, value=value, reward=[0.3, 0.9])
    model = line_model()._replace(scalar_loss=lambda logits, target: target + 0 * logits[..., 0])
    outputs = said_of_two_moves(afterstate_value_logits=jnp.zeros((1, K, 1)))._replace(model=model)
    found = chance.afterstate_value_loss(outputs, batch)
    np.testing.assert_allclose(found, [np.mean(expected)], rtol=1e-6)


def test_afterstate_value_is_not_learned_from_a_move_cut_off_by_a_time_limit():
    model = line_model()._replace(scalar_loss=lambda logits, target: target**2)
    outputs = said_of_two_moves(afterstate_value_logits=jnp.zeros((1, K, 1)))._replace(model=model)
    found = chance.afterstate_value_loss(outputs, batch_of(value=[0.0, 0.5, 0.5], mask=[1, 1, 0]))
    np.testing.assert_allclose(found, [0.25 / 2])


# --- the unroll -------------------------------------------------------------------------------------------------------


def line_model():
    """Embedding p o; a move multiplies it by w, code c by v[c]; the afterstate's value is q s, a position's u s."""

    def output(params, embedding, head):
        logits = params[head] * embedding
        return NetworkOutput(
            embedding, logits, logits, jnp.zeros((len(embedding), 2)), {"chance_logits": embedding + 0}
        )

    def recurrent(params, embedding, index):
        is_move = (index < 2)[:, None]
        factor = jnp.where(is_move, params["w"], params["v"][jnp.clip(index - 2, 0, C - 1)][:, None])
        logits = jnp.where(is_move, params["q"], params["u"]) * embedding * factor
        return output(params, embedding * factor, "u")._replace(value_logits=logits, reward_logits=logits)

    return Model(
        init=None,  # type: ignore
        initial_inference=lambda params, observation: output(params, params["p"] * observation, "u"),
        recurrent_inference=recurrent,
        reconstruct=None,  # type: ignore
        to_scalar=lambda logits: logits[..., 0],
        scalar_loss=lambda logits, target: 0.5 * (logits[..., 0] - target) ** 2,
        num_codes=C,
    )


PARAMS = jax.tree.map(np.float32, {"p": 1.0, "w": 2.0, "q": 5.0, "u": 1.0, "v": np.array([1.0, 3.0, -1.0])})


def test_a_step_is_a_move_to_an_afterstate_and_a_code_to_the_next_position():
    """Codes 1 and 2: 1, then 2 and 2 * 3 = 6, then 12 and -12."""
    batch = batch_of([1, 2])._replace(observation=jnp.ones((1, 1, 1)))
    outputs = jax.device_get(jax.jit(partial(unroll.unroll, line_model()))(PARAMS, batch))
    np.testing.assert_array_equal(outputs.value_logits[0, :, 0], [1, 6, -12])
    np.testing.assert_array_equal(outputs.extras["afterstate_value_logits"][0, :, 0], [10, 60])
    np.testing.assert_array_equal(outputs.extras["chance_logits"][0, :, 0], [2, 12])
    np.testing.assert_array_equal(outputs.reward_logits[0, 1:, 0], [10, 60])  # of the move, not of the code
    assert "code_probabilities" not in outputs.extras


def test_the_gradient_is_halved_once_per_step_at_the_input_of_the_move():
    """The last value is u w^2 v1 v2 p = -12. To p it passes two moves: -12 / 4. To v1 one: w^2 v2 / 2 = -2."""
    batch = batch_of([1, 2])._replace(observation=jnp.ones((1, 1, 1)))

    def last_value(params):
        return unroll.unroll(line_model(), params, batch).value_logits[0, -1, 0]

    gradient = jax.jit(jax.grad(last_value))(PARAMS)
    np.testing.assert_allclose(gradient["p"], -3.0)
    np.testing.assert_allclose(gradient["v"], [0.0, -2.0, 12.0])
    np.testing.assert_allclose(gradient["u"], -12.0)


@pytest.mark.parametrize(("num_actions", "num_codes", "encodes"), [(2, 10, False), (156, 21, True)])
def test_the_unroll_equals_a_plain_loop_and_every_loss_is_finite(num_actions, num_codes, encodes):
    environment = BOARD._replace(
        board=None, observe=lambda state: jnp.zeros(2), num_actions=num_actions, observation_shape=(2,)
    )
    abilities = Abilities(num_codes=num_codes, encodes_chance=encodes)
    model = make_network("mlp", environment, width=16, abilities=abilities)
    window = random_window(0, 5, 6, num_actions)
    outcome = np.random.default_rng(0).integers(-1, num_codes - 1, window.action.shape)
    window = window._replace(outcome=jnp.asarray(outcome, jnp.int32))
    sample = partial(chance.sample_codes, num_codes=num_codes, known=not encodes)

    def by_hand(params, batch):
        output, found = model.initial_inference(params, batch.observation[:, 0]), []
        all_codes = batch.extras["codes"]
        if encodes:  # the likeliest code but the last, after the mean over the known moves of all windows is taken away
            pairs = [(batch.observation[:, k], batch.observation[:, k + 1]) for k in range(K)]
            seen = jnp.stack([model.encode_chance(params, *pair) for pair in pairs], axis=1)[..., :-1]
            known = batch.targets.alive[:, 1:] > 0
            seen -= seen.mean(axis=(0, 1), where=known[..., None])
            all_codes = jnp.where(known, jnp.argmax(seen, axis=-1), all_codes)
        for k in range(K):
            codes = all_codes[:, k]
            moved = model.recurrent_inference(params, output.embedding, batch.actions[:, k])
            output = model.recurrent_inference(params, moved.embedding, num_actions + codes)
            expected = moved.extras["chance_logits"]
            found.append((moved.reward_logits, moved.value_logits, expected, output.value_logits))
        return found

    @jax.jit
    def look(params):
        batch = make_batch(window, jax.random.key(1), unroll_steps=K, sample_codes=sample)
        outputs = unroll.unroll(model, params, batch)
        learned = jax.grad(lambda params: unroll.unroll(model, params, batch).value_logits[:, -1].sum())
        gradient = learned(params) if encodes else None
        found = losses.total(outputs._replace(model=model), batch, build_terms(Config(), model))
        return outputs, found, by_hand(params, batch), gradient

    outputs, (total, metrics), wanted, gradient = look(random_params(model))
    afterstate_value, codes = (outputs.extras[f"{name}_logits"] for name in ("afterstate_value", "chance"))
    heads = outputs.reward_logits[:, 1:], afterstate_value, codes, outputs.value_logits[:, 1:]
    for k in range(K):
        for found, expected in zip(heads, wanted[k], strict=True):
            np.testing.assert_allclose(found[:, k], expected, rtol=1e-4, atol=1e-5)
    assert np.isfinite(total) and all(np.isfinite(x) for x in metrics.values())
    if encodes:  # and the encoder learns from the values that follow its codes
        assert all(x.any() for x in jax.tree.leaves([gradient[name] for name in ("chance_trunk", "chance_head")]))
