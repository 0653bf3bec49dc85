"""Policies without a tree: the regularised improvement by hand and by its objective, and what such a run compiles."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import heads, learning, make_algorithm
from muzero_jax.config.config import Config, with_values
from muzero_jax.config.validation import validate
from muzero_jax.run import flops
from muzero_jax.search import model_free
from muzero_jax.search.simulator import FirstSight, Simulator
from muzero_jax.types import ACTION_VALUES, Batch, SearchRoots, Unrolled
from tests.reference.windows import make_targets, make_window

PRIOR = np.array([[0.5, 0.25, 0.25, 0.0]])
Q = np.array([[0.0, 0.2, -0.2, 5.0]])


def objective(policy, kl_weight, entropy_weight):
    """E[q] - k KL(policy || prior) + h H(policy), over the actions of the prior, by the sum's definition."""
    total = 0.0
    for share, prior, q in zip(policy, PRIOR[0, :3], Q[0, :3], strict=True):
        total += share * q
        if share > 0:
            total -= kl_weight * share * np.log(share / prior) + entropy_weight * share * np.log(share)
    return total


def test_an_improved_policy_by_hand():
    """With weights 0.1 and 0.1 it is proportional to sqrt(prior) exp(5 q)."""
    found = model_free.improved(jnp.array(PRIOR), jnp.array(Q), kl_weight=0.1, entropy_weight=0.1)
    wanted = np.sqrt(PRIOR[0]) * np.exp([0.0, 1.0, -1.0, 0.0])
    np.testing.assert_allclose(found[0], wanted / wanted.sum(), atol=1e-6)
    assert found[0, 3] == 0, "an action of prior 0 stays out, whatever its value"


@pytest.mark.parametrize(("kl_weight", "entropy_weight"), [(0.1, 0.03), (0.0, 0.2), (3.0, 0.01)])
def test_no_other_policy_has_a_larger_objective(kl_weight, entropy_weight):
    weights = {"kl_weight": kl_weight, "entropy_weight": entropy_weight}
    found = np.asarray(model_free.improved(jnp.array(PRIOR), jnp.array(Q), **weights))[0, :3]
    best = objective(found, **weights)
    rng = np.random.default_rng(0)
    near = np.abs(found + rng.normal(size=(200, 3)) * 0.02)
    for other in [*rng.dirichlet(np.ones(3), size=200), *(near / near.sum(axis=1, keepdims=True))]:
        assert objective(other, **weights) <= best + 1e-6


def judging(prior, q):
    """A simulator whose network says the same of every position."""

    def judge(params, roots):
        rows = [jnp.repeat(jnp.asarray(x), len(roots.observation), axis=0) for x in (prior, q)]
        return FirstSight(rows[0], jnp.full(len(roots.observation), 0.7), {ACTION_VALUES: rows[1]})

    return Simulator(lambda *_: None, lambda *_: None, judge=judge)


def roots(num):
    return SearchRoots(jnp.zeros((num, 1)), jnp.ones((num, 4), bool), None)


def test_self_play_draws_its_move_from_the_improved_policy():
    search = model_free.regularised(judging(PRIOR, Q), kl_weight=0.1, entropy_weight=0.1, most_value=3.0)
    found = jax.jit(search)(None, jax.random.key(0), roots(20_000))
    share = np.bincount(found.action, minlength=4) / len(found.action)
    np.testing.assert_allclose(share, found.policy[0], atol=0.015)
    np.testing.assert_allclose(found.value, 3.0 * (found.policy[0] * Q[0]).sum(), rtol=1e-5)
    assert found.simulations is None and found.tree is None


def test_the_policy_head_plays_its_likeliest_move():
    found = model_free.policy_head(judging(PRIOR, Q))(None, jax.random.key(0), roots(2))
    assert found.action.tolist() == [0, 0] and found.value.tolist() == pytest.approx([0.7, 0.7])
    np.testing.assert_allclose(found.policy, np.repeat(PRIOR, 2, axis=0))


def small(**values):
    base = {
        "self_play.num_envs": 4,
        "self_play.rollout_length": 4,
        "replay.replay_length": 16,
        "replay.min_frames": 0,
        "optimiser.batch_size": 4,
        "optimiser.updates_per_iteration": 1,
        "network.width": 16,
        "targets.td_steps": 9,
    }
    return with_values(Config(env="tic_tac_toe"), base | values)


@pytest.mark.parametrize("model", ["rules", "none", "learned"])
def test_self_play_without_a_search_costs_one_look_a_move(model):
    config = small(**{"search.policy": "none", "model": model})
    algorithm = make_algorithm(config)
    environment = algorithm.environment
    params = jax.eval_shape(algorithm.model.init, jax.random.key(0))
    actor = jax.eval_shape(partial(algorithm.init_actor, environment), jax.random.key(0))
    observation = jax.ShapeDtypeStruct((4, *environment.observation_shape), bool)
    look = flops.count(jax.make_jaxpr(algorithm.model.initial_inference)(params, observation))
    played = flops.count(jax.make_jaxpr(algorithm.play)(params, actor, jax.random.key(0)))
    assert sum(played) == 4 * sum(look) > 0


@pytest.mark.parametrize(
    "values",
    [
        {"model": "none"},
        {"search.policy": "none", "replay.reanalyze_fraction": 0.5},
        {"search.policy": "none", "offline": "games.txt", "replay.reanalyze_fraction": 0.0},
        {"search.policy": "none", "self_play.full_search_share": 0.5},
        {"optimiser.advantage_weight": 0.1},
    ],
)
def test_what_needs_a_search_is_refused_without_one(values):
    with pytest.raises(ValueError, match="search"):
        validate(small(**values))


def test_without_a_model_nothing_can_be_searched():
    config = small(**{"search.policy": "none", "model": "none"})
    algorithm = make_algorithm(config)
    simulator = algorithm.make_simulator(algorithm.environment, algorithm.model)
    found = jax.eval_shape(
        algorithm.search(64),
        jax.eval_shape(algorithm.model.init, jax.random.key(0)),
        jax.random.key(0),
        SearchRoots(jnp.zeros((3, *algorithm.environment.observation_shape), bool), jnp.ones((3, 9), bool), None),
    )
    assert found.simulations is None, "play and evaluation use the policy head"
    with pytest.raises(TypeError):
        simulator.expand(None, None, None, None)


def test_only_the_played_action_teaches_its_value_and_only_where_the_return_is_known():
    """Values in shares of the largest return; a game's last frame counts, what follows it does not."""
    short = {"targets.td_steps": 2, "targets.unroll_steps": 2}
    config = small(**{"search.policy": "none", "model": "learned", "network.support_range": 2.0} | short)
    action = [[3, 7, 0, 0, 0]]
    window = make_window([[0, 1, 0, 0, 0]], [[-1, 0, -1, -1, -1]], num_actions=9, action=action)
    wanted = learning.build_targets(config)(window, jnp.float32(0))
    q = np.asarray(wanted.by_action["action_value"])[0]
    known = ~np.isnan(q)
    assert known.sum(axis=-1).tolist() == [1, 1, 0]
    np.testing.assert_allclose([q[0, 3], q[1, 7]], [-0.5, 0.5])


def test_a_random_move_teaches_no_value_and_the_searchs_own_value_has_no_share():
    """A return stops at a random move, with the value of the position before it, whatever was played."""
    short = {"targets.td_steps": 2, "targets.unroll_steps": 2, "targets.search_value_weight": 0.5}
    config = small(**{"search.policy": "none", "model": "learned"} | short)
    leaves = {"explored": [[1, 0, 0, 0, 0]], "search_value": [[0.9, 0.8, 0, 0, 0]]}
    window = make_window([[0, 1, 0, 0, 0]], [[-1, 0, -1, -1, -1]], num_actions=9, action=[[3, 7, 0, 0, 0]], **leaves)
    q = np.asarray(learning.build_targets(config)(window, jnp.float32(0)).by_action["action_value"])[0]
    assert np.isnan(q[0]).all() and np.isnan(q[2]).all()
    assert q[1, 7] == 1 and (~np.isnan(q)).sum() == 1


def test_sampled_advantages_make_up_for_wrong_predicted_values():
    """The gradient towards the improved policy of wrong values, and theirs, are that of true values to first order.

    Windows of one position each, in which each action was played as often as the policy says, with its true value.
    """
    q, true = np.float32([0.3, -0.2, 0.1]), np.float32([-0.4, 0.5, 0.1])
    weights = {"kl_weight": 30.0, "entropy_weight": 10.0}
    logits = jnp.float32([0.2, -0.1, 0.5])
    prior = jax.nn.softmax(logits)
    named = {f"search.{name}": weight for name, weight in weights.items()}
    config = small(**named, **{"search.policy": "none", "model": "none", "optimiser.advantage_weight": 0.1})
    term = next(term for term in make_algorithm(config).terms if term.name == "advantage")

    def improvement(values):
        return np.asarray(model_free.improved(prior[None], jnp.asarray(values)[None], **weights)[0] - prior)

    played = jnp.where(jnp.eye(3, dtype=bool), true, jnp.nan)[:, None]
    targets = make_targets(0)._replace(by_action={"action_value": played})
    batch = Batch(jnp.zeros((3, 1, 1)), jnp.ones((3, 1, 3), bool), jnp.zeros((3, 0), jnp.int32), targets, jnp.ones(3))

    @jax.grad
    def gradient(logits):
        none = jnp.zeros((3, 1, 1))
        outputs = Unrolled(none, none, none, jnp.tile(logits, (3, 1, 1)), {ACTION_VALUES: jnp.tile(q, (3, 1, 1))})
        return jnp.sum(prior * term.loss(outputs, batch))

    assert np.abs(improvement(true) - improvement(q)).max() > 3e-3
    np.testing.assert_allclose(improvement(q) - gradient(logits), improvement(true), atol=5e-4)


def test_values_of_actions_that_were_not_played_get_no_gradient():
    target = jnp.array([[jnp.nan, 0.5, jnp.nan]])
    predicted = jnp.array([[3.0, 0.0, -3.0]])
    assert heads.known_squares(predicted, target)[0] == pytest.approx(0.25)
    gradient = jax.grad(lambda x: heads.known_squares(x, target)[0])(predicted)
    np.testing.assert_allclose(gradient, [[0.0, -1.0, 0.0]])
