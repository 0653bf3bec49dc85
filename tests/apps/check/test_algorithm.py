"""`muzero_jax.check` names what is wrong with an algorithm; it finds nothing in the examples."""

import jax
import jax.numpy as jnp
import pytest

import muzero_jax
from muzero_jax.learning.losses import Term
from muzero_jax.types import SearchOutput
from tests.reference import tiny_run


def check(**changes):
    return muzero_jax.check(tiny_run.algorithm()._replace(**changes))


ZEROS = Term("mine", lambda outputs, batch: jnp.zeros(8), 1.0)


def without_count(learner, batch, progress, **bound):
    return learner.params, {}


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"terms": None}, "reading the terms raised TypeError"),
        ({"terms": (ZEROS, ZEROS)}, "terms holds two losses called mine"),
        ({"make_search": lambda *_: lambda params, key, roots: None}, "the search with noise raised AttributeError"),
        ({"make_targets": lambda window, progress: window}, "make_targets raised AttributeError"),
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


def test_illegal_moves_and_losses_that_run_past_the_end_or_are_no_numbers_are_named_at_once():
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


def test_nothing_is_found_in_an_example_with_options():
    assert muzero_jax.check("examples/algorithms/entropy_bonus.py", tiny_run.algorithm().environment, weight=0.5) == []
