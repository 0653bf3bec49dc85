"""The network for games with chance: its shapes, its two kinds of steps, and what stays as it was without chance."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from muzero_jax.networks import contract
from muzero_jax.networks.contract import MUZERO, Abilities
from tests.reference.models import BOARD, make_network, random_params

N, S, A, C = 4, 3, BOARD.num_actions, 5
CODES = Abilities(num_codes=C, encodes_chance=True)
make_model = partial(make_network, abilities=CODES)


@pytest.fixture(scope="module", params=["mlp", "tower"])
def case(request):
    model = make_model(request.param)
    params = random_params(model)
    observation = jnp.asarray(np.random.default_rng(1).random((N, 3, 3, 2)) > 0.5)
    root = jax.jit(model.initial_inference)(params, observation)
    return model, params, observation, jax.jit(model.recurrent_inference), root


def test_a_move_and_a_code_have_outputs_of_one_shape(case):
    _, params, _, recurrent, root = case
    for index in (jnp.arange(N), A + jnp.arange(N)):
        output = recurrent(params, root.embedding, index)
        assert output.extras["chance_logits"].shape == (N, C)
        assert output.value_logits.shape == output.reward_logits.shape == (N, S)
        assert output.policy_logits.shape == (N, A) and output.embedding.shape == root.embedding.shape
    assert root.extras["chance_logits"].shape == (N, C)


def test_embeddings_after_moves_and_after_codes_are_scaled(case):
    _, params, _, recurrent, root = case
    for index in (jnp.arange(N), A + jnp.arange(N)):
        flat = np.reshape(recurrent(params, root.embedding, index).embedding, (N, -1))
        np.testing.assert_allclose([flat.min(axis=1), flat.max(axis=1)], [[0] * N, [1] * N], atol=1e-3)


def test_every_move_and_code_has_its_own_embedding_and_no_index_gives_nan(case):
    _, params, _, recurrent, root = case
    one = jnp.broadcast_to(root.embedding[:1], root.embedding.shape)
    outputs = [recurrent(params, one, jnp.full(N, index)) for index in range(A + C)]
    assert len({np.asarray(output.embedding[0]).tobytes() for output in outputs}) == A + C
    for index in (-7, A + C, 10**6):
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(recurrent(params, one, jnp.full(N, index))))


def test_a_one_hot_code_leads_where_its_index_does_and_passes_a_gradient(case):
    model, params, _, recurrent, root = case
    codes = jnp.arange(N) % C
    followed = jax.jit(model.follow_code)(params, root.embedding, jax.nn.one_hot(codes, C))
    chex.assert_trees_all_close(followed, recurrent(params, root.embedding, A + codes), rtol=1e-7, atol=1e-5)

    def total(code):
        return jnp.sum(model.follow_code(params, root.embedding, code).value_logits[:, 0])

    assert np.abs(jax.jit(jax.grad(total))(jax.nn.one_hot(codes, C))).min(axis=-1).max() > 0


def test_afterstate_values_have_outputs_of_their_own(case):
    model, params, _, recurrent, root = case
    heads = params["prediction_heads"]["Dense_0"]
    own = slice(A + S, A + 2 * S)  # policy and value come first
    moved = params | {
        "prediction_heads": params["prediction_heads"] | {"Dense_0": heads | {"bias": heads["bias"].at[own].add(1.0)}}
    }
    for index, expected in ((jnp.arange(N), 1.0), (A + jnp.arange(N), 0.0)):
        one, other = (recurrent(each, root.embedding, index).value_logits for each in (params, moved))
        np.testing.assert_allclose(other - one, expected, atol=1e-5)


def test_the_encoder_reads_the_observations_before_and_after_chance(case):
    """If either observation changes, so do the logits."""
    model, params, observation, *_ = case
    encode = jax.jit(model.encode_chance)
    one = encode(params, observation, observation)
    for other in (encode(params, observation, ~observation), encode(params, ~observation, observation)):
        assert np.abs(one - other).max(axis=-1).min() > 1e-3
    assert one.shape == (N, C)


@pytest.mark.parametrize("kind", ["observation", "fully_convolutional"])
def test_networks_that_imagine_observations_are_refused_with_chance_codes(kind):
    with pytest.raises(ValueError, match="--network.kind"):
        make_model(kind)


# --- the user's own networks ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_check_accepts_a_model_with_chance_codes():
    assert muzero_jax.check(make_model("mlp"), BOARD) == []


def test_a_model_that_lacks_codes_or_an_encoder_is_refused_if_they_are_needed():
    no_encoder = make_model("mlp")._replace(encode_chance=None)
    contract.check(no_encoder, BOARD, Abilities(num_codes=C))
    for model, says in (
        (make_model("mlp", abilities=MUZERO), "chance_logits"),
        (no_encoder, "`encode_chance` and `follow_code`"),
    ):
        with pytest.raises(ValueError, match=says):
            contract.check(model, BOARD, CODES)
