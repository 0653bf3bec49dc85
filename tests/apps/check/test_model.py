"""`check_model` finds what it says that it finds: one broken model for each sentence, and none in models that work."""

import flax.linen as nn
import jax.numpy as jnp
import pytest

import muzero_jax
from muzero_jax.networks import contract
from muzero_jax.networks import model as networks
from muzero_jax.networks.value_transform import Support
from tests.reference.models import BOARD

S = 5


def make_model(kind="mlp"):
    return networks.make_model(
        BOARD, Support(-1.0, 1.0, S), kind=kind, width=8, num_blocks=1, activation="relu", compute_dtype="float32"
    )


MODEL = make_model()


def with_root(change):
    """The model with another `initial_inference`: `change` of what it returns."""
    return MODEL._replace(initial_inference=lambda *inputs: change(MODEL.initial_inference(*inputs), *inputs))


def with_child(change):
    return MODEL._replace(recurrent_inference=lambda *inputs: change(MODEL.recurrent_inference(*inputs), *inputs))


def with_params(**leaves):
    return MODEL._replace(init=lambda key: MODEL.init(key) | leaves)


def the_one_finding(model):
    (sentence,) = muzero_jax.check_model(model, BOARD)
    assert "\n" not in sentence and sentence[0].islower()
    return sentence


SLOW = [
    pytest.param(kind, marks=pytest.mark.slow) for kind in ("observation", "tower", "attention", "fully_convolutional")
]


@pytest.mark.parametrize("kind", ["mlp", *SLOW])
def test_nothing_is_found_in_our_own_networks(kind):
    assert muzero_jax.check_model(make_model(kind), BOARD) == []


# --- what shapes tell -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, sentence",
    [
        (
            with_root(lambda out, *_: out._replace(policy_logits=out.policy_logits[:, 1:])),
            "initial_inference's policy_logits must be float32 (3, 10), but is float32 (3, 9)",
        ),
        (
            with_child(lambda out, *_: out._replace(reward_logits=out.reward_logits[:, 0])),
            "recurrent_inference's reward_logits must be float32 (3, 5), but is float32 (3,)",
        ),
        (
            with_root(lambda out, *_: out._replace(value_logits=out.value_logits.astype(jnp.bfloat16))),
            "initial_inference's value_logits must be float32 (3, 5), but is bfloat16 (3, 5)",
        ),
        (with_root(lambda out, *_: tuple(out)), "initial_inference returns a tuple, but must return a muzero_jax"),
        (
            with_root(lambda out, *_: out._replace(embedding={"cells": out.embedding})),
            "initial_inference's embedding must be one array whose first axis is the batch, here 3; it is {'cells'",
        ),
        (
            with_child(lambda out, *_: out._replace(embedding=out.embedding.astype(jnp.float16))),
            "embedding is float32 (3, 8) from initial_inference and float16 (3, 8) from recurrent_inference; make them",
        ),
        (
            with_child(lambda out, *_: out._replace(extras={"legal_logits": out.policy_logits})),
            "extras['legal_logits'] is None from initial_inference and float32 (3, 10) from recurrent_inference; make",
        ),
        (
            with_root(lambda out, *_: out._replace(extras={"discount_logits": out.policy_logits[:, :3]})),
            "extras['discount_logits'] is float32 (3, 3) from initial_inference and None from recurrent_inference",
        ),
        (
            with_child(lambda out, *_: out._replace(value_logits=jnp.zeros((3, 7)), reward_logits=jnp.zeros((3, 7)))),
            "value_logits is float32 (3, 5) from initial_inference and float32 (3, 7) from recurrent_inference; make",
        ),
        (with_params(count=jnp.int32(0)), "whatever the arithmetic, but these are not: count (int32)"),
        (
            MODEL._replace(reconstruct=lambda _, embedding: embedding),
            "reconstruct's result must be float32 (3, 3, 3, 2)",
        ),
        (MODEL._replace(to_scalar=lambda logits: logits), "result of logits (3, 2, 5) must be float32 (3, 2)"),
        (MODEL._replace(scalar_loss=lambda logits, target: jnp.sum(target)), "scalar_loss's result of logits"),
    ],
)
def test_a_shape_that_breaks_the_contract_is_named_with_the_one_that_is_wanted(model, sentence):
    found = contract.breaches(model, BOARD)
    assert any(sentence in one for one in found), found


def test_a_function_that_asks_for_a_traced_value_cannot_be_compiled_and_is_named_with_its_line():
    def branch(output, params, observation):
        return output if observation[0, 0, 0, 0] else output._replace(value_logits=-output.value_logits)

    found = the_one_finding(with_root(branch))
    line = branch.__code__.co_firstlineno + 1
    assert found.startswith("initial_inference raised TracerBoolConversionError")
    assert f"test_model.py:{line}); it is compiled, so write jnp.where" in found


def test_an_exception_in_the_model_is_named_with_its_line():
    def fail(output, *_):
        raise KeyError("cells")

    found = the_one_finding(with_child(fail))
    line = fail.__code__.co_firstlineno + 1
    assert found == f"recurrent_inference raised KeyError: 'cells' ({__file__}:{line}); correct it there"


def test_a_model_for_one_batch_size_alone_is_found():
    def fixed(output, *_):
        return output._replace(policy_logits=output.policy_logits[:3] + jnp.zeros((3, 1)))

    assert "policy_logits must be float32 (5, 10)" in the_one_finding(with_root(fixed))


# --- what running it tells --------------------------------------------------------------------------------------------


def test_a_batch_norm_in_training_mode_is_found():
    norm = nn.BatchNorm(use_running_average=False, use_bias=False, use_scale=False)

    def normalised(output, *_):
        value_logits, _ = norm.apply({}, output.value_logits, mutable=["batch_stats"])
        return output._replace(value_logits=value_logits)

    found = the_one_finding(with_root(normalised))
    assert found.startswith("initial_inference mixes the rows of a batch") and "LayerNorm" in found


def test_a_mean_over_the_batch_of_the_dynamics_is_found():
    mean = with_child(lambda out, *_: out._replace(reward_logits=out.reward_logits - out.reward_logits.mean(0)))
    assert the_one_finding(mean).startswith("recurrent_inference mixes the rows of a batch")


def test_a_nan_is_found_at_the_root_and_at_its_imagined_move():
    infinite = with_root(lambda out, *_: out._replace(value_logits=jnp.log(out.value_logits)))
    found = muzero_jax.check_model(infinite, BOARD)
    assert any(one.startswith("initial_inference gives NaN or infinity with fresh parameters") for one in found)
    deeper = with_child(lambda out, params, embedding, action: out._replace(embedding=1e10 * embedding))
    found = muzero_jax.check_model(deeper, BOARD)  # 1e40 is no float32
    assert any(one.startswith("recurrent_inference gives NaN or infinity at imagined move 4") for one in found)


def test_embeddings_that_grow_are_found():
    growing = with_child(lambda out, params, embedding, action: out._replace(embedding=1.2 * embedding))
    found = [one for one in muzero_jax.check_model(growing, BOARD) if one.startswith("embeddings grow")]
    assert found[0].startswith("embeddings grow 32-fold over 20 imagined moves")  # 1.2^19
