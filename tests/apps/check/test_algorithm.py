"""`check_algorithm` names what is wrong, in one sentence each; it finds nothing in the examples."""

import jax
import jax.numpy as jnp
import pytest

import muzero_jax
from muzero_jax import algorithm as algorithms
from muzero_jax.learning.losses import Term
from muzero_jax.types import SearchOutput
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG


def check(**changes):
    return muzero_jax.check_algorithm(tiny_run.algorithm()._replace(**changes), CONFIG)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"terms": None}, "terms must hold"),
        ({"write_back": lambda *arguments: None}, "write_back must return two things"),
        (
            {"update": lambda learner, batch, progress, **bound: (learner, {"loss": jnp.zeros(())})},
            "update: the metric 'loss' must be one number, and its name must begin with train/",
        ),
    ],
)
def test_results_of_another_form_are_one_sentence(changes, sentence):
    assert check(**changes)[0].startswith(sentence)


@pytest.mark.slow
def test_every_fault_of_the_values_is_named_at_once():
    """Illegal moves, a policy and a value learned past a game's end, a loss that is no number, a lost count."""
    usual = tiny_run.algorithm()

    def illegal(params, key, roots):
        action = jnp.argmin(roots.legal_action_mask, axis=1).astype(jnp.int32)
        return SearchOutput(action, jax.nn.one_hot(action, 9), jnp.zeros(action.shape))

    def unmasked(window, progress):
        made = usual.make_targets(window, progress)
        return made._replace(policy_mask=jnp.ones_like(made.policy_mask), value=window.search_value[:, :3])

    def uncounted(learner, batch, progress, **bound):
        return learner, {}

    broken = Term("mine", lambda outputs, batch: jnp.log(batch.weight - 1), 1.0)
    found = check(make_search=lambda *_: illegal, make_targets=unmasked, terms=(*usual.terms, broken), update=uncounted)
    for sentence in (
        "self-play makes illegal moves",
        "the loss value depends on what comes after a game's end",
        "the loss policy depends on what comes after a game's end",
        "the loss mine is NaN or infinite",
        "update must count itself",
    ):
        assert any(each.startswith(sentence) for each in found), (sentence, found)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"terms": (Term("mine", lambda outputs, batch: jnp.zeros(()), 1.0),)},
            "the loss mine (one number a window) must be float32 (8,), but is float32 ()",
        ),
        (
            {"make_search": lambda *_: lambda params, key, roots: None},
            "the search with noise returns a NoneType, but must return a muzero_jax.types.SearchOutput",
        ),
        ({"make_search": lambda simulator: None}, "the search with noise raised TypeError"),
        ({"terms": (Term("mine", None, 1.0, "some"),)}, "the term mine reads the frames 'some', but may read"),
        ({"optimiser": 3}, "optimiser must be an Optax optimiser, with init and update"),
    ],
)
def test_a_fault_of_the_shapes_is_named_before_anything_is_compiled(changes, sentence):
    assert check(**changes)[0].startswith(sentence)


def test_a_symmetry_that_cannot_turn_a_batch_is_named():
    environment, model = tiny_run.algorithm()[:2]
    symmetries = environment.board.symmetries
    short = symmetries._replace(observation_permutation=symmetries.observation_permutation[:, 1:])
    turned = environment._replace(board=environment.board._replace(symmetries=short))
    found = muzero_jax.check_algorithm(algorithms.make(CONFIG, turned, model), CONFIG)
    assert found[0].startswith("augment raised")
