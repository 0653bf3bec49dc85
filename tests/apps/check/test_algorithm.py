"""`check_algorithm` names what is wrong, in one sentence each; it finds nothing in the examples."""

import jax
import jax.numpy as jnp
import pytest

import muzero_jax
from muzero_jax.learning.losses import Term
from muzero_jax.types import SearchOutput
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG


def check(**changes):
    return muzero_jax.check_algorithm(tiny_run.algorithm()._replace(**changes), tiny_run.world(), CONFIG)


@pytest.mark.slow
def test_a_rule_that_forgets_the_other_devices_or_to_count_is_named():
    """The gradient of a device's own windows moves its weights alone."""

    def alone(learner, batch, *, loss, optimiser):
        gradients, metrics = jax.grad(loss, has_aux=True)(learner.params, batch)
        params = jax.tree.map(lambda x, dx: x - 0.1 * dx, learner.params, gradients)
        return learner._replace(params=params), metrics

    found = check(update=alone)
    assert [sentence.partition(":")[0].partition(";")[0] for sentence in found] == [
        "update must count itself",
        "update gives each device other weights",
    ]


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"terms": None}, "terms must hold"),
        ({"write_back": lambda *arguments: None}, "write_back must return two things"),
        (
            {"update": lambda learner, batch, **bound: (learner, {"loss": jnp.zeros(())})},
            "update: the metric 'loss' must be one number, and its name must begin with train/",
        ),
    ],
)
def test_results_of_another_form_are_one_sentence(changes, sentence):
    assert check(**changes)[0].startswith(sentence)


@pytest.mark.slow
def test_every_fault_of_the_values_is_named_at_once():
    """Illegal moves, a policy and a value learned past a game's end, a loss that is no number."""
    usual = tiny_run.algorithm()

    def illegal(params, key, roots):
        action = jnp.argmin(roots.legal_action_mask, axis=1).astype(jnp.int32)
        return SearchOutput(action, jax.nn.one_hot(action, 9), jnp.zeros(action.shape))

    def unmasked(window, num_updates):
        made = usual.make_targets(window, num_updates)
        return made._replace(policy_mask=jnp.ones_like(made.policy_mask), value=window.search_value[:, :3])

    broken = Term("mine", lambda outputs, batch: jnp.log(batch.weight - 1), 1.0)
    found = check(self_play_search=illegal, make_targets=unmasked, terms=(*usual.terms, broken))
    for sentence in (
        "self_play_search chooses illegal moves",
        "choose makes illegal moves",
        "the loss value depends on what comes after a game's end",
        "the loss policy depends on what comes after a game's end",
        "the loss mine is NaN or infinite",
    ):
        assert any(each.startswith(sentence) for each in found), sentence


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"terms": (Term("mine", lambda outputs, batch: jnp.zeros(()), 1.0),)},
            "the loss mine (one number a window) must be float32 (8,), but is float32 ()",
        ),
        (
            {"make_search": lambda n: lambda params, key, roots: None},
            "the search of make_search returns a NoneType, but must return a muzero_jax.types.SearchOutput",
        ),
        ({"terms": (Term("mine", None, 1.0, "some"),)}, "the term mine reads the frames 'some', but may read"),
        ({"optimiser": 3}, "optimiser must be an Optax optimiser, with init and update"),
    ],
)
def test_a_fault_of_the_shapes_is_named_before_anything_is_compiled(changes, sentence):
    assert check(**changes)[0].startswith(sentence)
