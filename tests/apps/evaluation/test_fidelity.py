"""A model with known faults at nim is told to have exactly those; a perfect one is told to have none."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import fidelity
from muzero_jax.types import Model, NetworkOutput
from tests.reference import tiny_run
from tests.reference.nim import make_nim, make_state

NIM = make_nim(9)


def output_of(stones, reward):
    """Value: the heap over 10. Policy: as good as all on one stone. Embedding: the heap itself."""
    logits = jnp.broadcast_to(jnp.array([50.0, 0.0, 0.0]), (*stones.shape, 3))
    return NetworkOutput(stones, reward, stones / 10, logits)


def step(params, stones, action):
    """The rules where `params` is 0; a model that takes `params` stones too few, and so sees wins too late."""
    left = stones - (action + 1 - params)
    return output_of(jnp.maximum(left, 0), (left <= 0).astype(jnp.float32))


MODEL = Model(
    init=lambda key: 0,
    initial_inference=lambda params, observation: output_of(observation[:, 0], jnp.zeros(observation.shape[0])),
    recurrent_inference=step,
    reconstruct=lambda params, stones: stones[:, None] - 0.5,  # true where stones are left
    to_scalar=lambda logits: logits,
    scalar_loss=lambda logits, target: logits,
)


@pytest.fixture(scope="module")
def columns():
    """`columns(params)`: the table of two lines from 9 and from 2 stones, one stone a move, three moves deep."""
    agent = tiny_run.agent()._replace(environment=NIM, model=MODEL)

    @jax.jit
    def unroll(params):
        states, moves = make_state(jnp.array([9, 2]), jnp.array([0, 1])), jnp.array([False, False])
        return fidelity.unroll(agent, params, jax.random.key(0), states, moves, unroll_steps=3, imagines=True)

    def ask(params):
        rows = fidelity.depth_rows(jax.device_get(unroll(jnp.int32(params))))
        return {name: [row[name] for row in rows] for name in rows[0]}

    return ask


def test_a_perfect_model_does_not_drift_and_finds_every_win(columns):
    """The lines are 9 8 7 6, and 2 1, which can be taken at once."""
    found = columns(0)
    assert max(found["value_drift"] + found["policy_drift"]) < 1e-6
    assert found["false_win_rate"] == found["reward_error_quiet"] == [0] * 4
    assert found["same_observation_rate"] == [1] * 4
    assert (found["lines"], found["wins"]) == ([2, 2, 1, 1], [1, 1, 0, 0])
    assert (found["win_found_rate"], found["reward_error_decisive"]) == ([1, 1, None, None], [0, 0, None, None])


def test_the_value_drifts_by_what_the_dynamics_forgets(columns):
    """It takes no stone where one is taken: a stone a depth, a tenth of value each, and it misses the wins."""
    drift = columns(1)
    np.testing.assert_allclose(drift["value_drift"], [0, 0.1, 0.2, 0.3], atol=1e-6)
    assert (drift["win_found_rate"], drift["reward_error_decisive"]) == ([0, 0, None, None], [1, 1, None, None])


def test_a_reward_predicted_too_early_is_a_false_win(columns):
    """It takes two stones too many: of the three moves from 9 and one from 2 that win nothing, the last looks won."""
    found = columns(-2)
    assert found["win_found_rate"][0] == 1
    assert found["false_win_rate"][0] == found["reward_error_quiet"][0] == 1 / 4


def test_policy_on_illegal_moves_is_counted_apart_from_drift_over_the_legal_ones():
    """Legal are one stone and two; the prior has 1/4, 1/4 and 1/2 on three against 1/3 each."""
    said, true, zeros = jnp.log(jnp.array([[1.0, 1.0, 2.0]])), jnp.zeros((1, 3)), jnp.zeros(1)
    outputs = (NetworkOutput(zeros, zeros, zeros, logits) for logits in (said, true))
    drift = fidelity.compare(MODEL, jnp.array([[True, True, False]]), *outputs)
    np.testing.assert_allclose(drift["policy_drift"], 0, atol=1e-6)
    np.testing.assert_allclose(drift["illegal_prior"], 0.5, atol=1e-6)


def test_nodes_of_a_tree_are_judged_by_replaying_their_lines():
    """From 2 stones. Node 1: take one. Node 2, below it: take two of the one left, illegal. Node 3, below that: illegal
    too. Node 4: take both, which wins. Node 5: a move after that. Priors on illegal moves count in node 1 alone.
    """
    tree = SimpleNamespace(
        parent=jnp.array([0, 0, 1, 2, 0, 4])[:, None],
        action=jnp.array([0, 0, 1, 0, 1, 0])[:, None],
        prior=jnp.tile(jnp.array([0.5, 0.3, 0.2]), (6, 1, 1)),
    )
    faults = fidelity.look_at_tree(NIM, make_state(jnp.array([2]), jnp.array([0])), tree)
    assert {name: int(mean.count[0]) for name, mean in faults.items()} == dict(
        zip(fidelity.TREE, (5, 5, 1), strict=True)
    )
    row = fidelity.tree_row(jax.device_get(faults))
    assert row == pytest.approx({"illegal_visits": 2 / 5, "visits_beyond_end": 1 / 5, "illegal_prior": 0.5})
