"""`muzero_jax.check` names what is wrong with a network or an algorithm: a broken one for each mistake."""

import re

import jax
import jax.numpy as jnp
import pytest

import muzero_jax
from muzero_jax.apps.check import algorithm_checks
from muzero_jax.learning.losses import Term
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.types import SearchOutput
from tests.reference import tiny_run
from tests.reference.models import BOARD

# --- networks ---------------------------------------------------------------------------------------------------------

MODEL = make_model(
    BOARD, Support(-1.0, 1.0, 5), kind="mlp", width=8, num_blocks=1, activation="relu", compute_dtype="float32"
)


def with_root(change):
    """The model with another `initial_inference`: `change` of what it returns."""
    return MODEL._replace(initial_inference=lambda *inputs: change(MODEL.initial_inference(*inputs), *inputs))


def with_child(change):
    return MODEL._replace(recurrent_inference=lambda *inputs: change(MODEL.recurrent_inference(*inputs), *inputs))


def test_nothing_is_found_in_our_own_network():
    assert muzero_jax.check(MODEL, BOARD) == []


def one_size(output, *_):
    return output._replace(policy_logits=output.policy_logits[:3] + jnp.zeros((3, 1)))


# A model, and words of the finding that names its mistake: first those that shapes show, then those that running shows.
MISTAKES = [
    (with_root(lambda out, *_: out._replace(policy_logits=out.policy_logits[:, 1:])), "policy_logits .* is .*3, 9"),
    (with_child(lambda out, *_: out._replace(reward_logits=out.reward_logits[:, 0])), "recurrent.*reward_logits"),
    (MODEL._replace(init=lambda key: MODEL.init(key) | {"count": jnp.int32(0)}), "count must be float32.* is int32"),
    (MODEL._replace(reconstruct=lambda _, embedding: embedding), "reconstruct"),
    (MODEL._replace(scalar_loss=lambda logits, target: jnp.sum(target)), "scalar_loss"),
    (with_root(one_size), "policy_logits must be float32.5, 10"),
    (with_root(lambda out, params, seen: out if seen[0, 0, 0, 0] else out), r"Tracer.*test_parts.py:\d+.*jnp.where"),
    (
        with_child(lambda out, *_: out._replace(reward_logits=out.reward_logits - out.reward_logits.mean(0))),
        "^recurrent_inference mixes the rows of a batch",
    ),
    (with_root(lambda out, *_: out._replace(value_logits=jnp.log(out.value_logits))), "^initial_inference gives NaN"),
    (with_child(lambda out, _, e, a: out._replace(embedding=1.2 * e)), "^embeddings grow 32-fold over 20"),  # 1.2^19
]


@pytest.mark.parametrize("model, words", MISTAKES)
def test_a_mistake_of_a_network_is_named(model, words):
    sentence, *_ = muzero_jax.check(model, BOARD)
    assert re.search(words, sentence) and "\n" not in sentence and sentence[0].islower()


# --- algorithms -------------------------------------------------------------------------------------------------------


def check(**changes):
    return muzero_jax.check(tiny_run.algorithm()._replace(**changes))


ZEROS = Term("mine", lambda outputs, batch: jnp.zeros(8), 1.0)
USUAL = tiny_run.algorithm()


def with_head(*inputs):
    output = USUAL.model.initial_inference(*inputs)
    return output._replace(extras={"mine": output.policy_logits})


def without_count(learner, batch, progress, **bound):
    return learner.params, {}


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"terms": None}, "reading the terms raised TypeError"),
        ({"terms": (ZEROS, ZEROS)}, "terms holds two losses called mine"),
        ({"make_targets": lambda window, progress: window}, "make_targets raised AttributeError"),
        (
            {"make_targets": lambda *window: USUAL.make_targets(*window)._replace(extras={"mine": jnp.zeros(3)})},
            "make_targets: extras['mine'] must be float32[",
        ),
        (
            {"model": USUAL.model._replace(initial_inference=with_head)},
            "recurrent_inference's extras['mine'], as initial_inference's, must be float32[",
        ),
        ({"terms": (Term("mine", lambda outputs, batch: jnp.zeros(()), 1.0),)}, "the loss mine: one number a window"),
        ({"update": without_count}, "update changes the shapes or the structure"),
        (
            {"update": lambda learner, batch, progress, **bound: (learner, {"loss": jnp.zeros(())})},
            "the name of the metric 'loss' must begin with train/",
        ),
        ({"write_back": lambda *arguments: None}, "write_back raised TypeError"),
    ],
)
def test_a_stage_that_fails_or_returns_something_else_is_named(changes, sentence):
    (found,) = check(**changes)
    assert found.startswith(sentence)


def test_an_index_beyond_the_frames_of_a_window_is_a_doubt():
    """JAX would give the first observation again, and the run would learn it."""

    def late(window, progress):
        targets = USUAL.make_targets(window, progress)
        return targets._replace(extras={"mine": window.observation[:, 2].reshape(8, -1)[:, 0]})

    (sentence,) = check(make_targets=late)
    assert re.search("^doubt: make_targets has an index outside .* index 2 is out of bounds for axis 1", sentence)


def test_illegal_moves_and_losses_past_the_end_or_not_finite_are_all_named():
    usual = tiny_run.algorithm()

    def illegal(params, key, roots):
        action = jnp.argmin(roots.legal_action_mask, axis=1).astype(jnp.int32)
        return SearchOutput(action, jax.nn.one_hot(action, 9), jnp.zeros(action.shape))

    def unmasked(window, progress):
        made = usual.make_targets(window, progress)
        return made._replace(policy_mask=jnp.ones_like(made.policy_mask), value=window.search_value[:, :3])

    broken = Term("mine", lambda outputs, batch: jnp.log(batch.weight - 2), 1.0)
    found = check(make_search=lambda *_: illegal, make_targets=unmasked, terms=(*usual.terms, broken))
    for sentence in (
        "the search without noise makes illegal moves",
        "the loss value depends on what comes after a game's end",
        "the loss policy depends on what comes after a game's end",
        "the loss mine is NaN or infinite",
    ):
        assert any(each.startswith(sentence) for each in found), (sentence, found)


def test_a_file_is_checked_as_the_algorithm_that_its_options_make(monkeypatch):
    monkeypatch.setattr(
        algorithm_checks, "examine", lambda checked: [f"{checked.terms[-1].name} {checked.terms[-1].weight}"]
    )
    found = muzero_jax.check("examples/algorithms/entropy_bonus.py", tiny_run.algorithm().environment, weight=0.5)
    assert found == ["entropy 0.5"]
