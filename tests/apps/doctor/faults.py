"""Faults in a line each: train.py --algorithm tests/apps/doctor/faults.py --algorithm.options fault=value_sign"""

import jax
import jax.numpy as jnp
import optax

from muzero_jax import Algorithm
from muzero_jax.ops.legal_actions import uniform_legal_action


def change(a: Algorithm, config, fault: str) -> Algorithm:
    """The algorithm with one of the faults."""

    def targets(**changes):
        def make(window, progress):
            found = a.make_targets(window, progress)
            return found._replace(**{name: wrong(getattr(found, name)) for name, wrong in changes.items()})

        return a._replace(make_targets=make)

    def policy_of_next(window, progress):
        found = a.make_targets(window, progress)
        goes_on = jnp.roll(found.alive, -1, axis=1).at[:, -1].set(0)[..., None] > 0
        legal = window.legal_action_mask[:, : found.policy.shape[1]]
        of_next = jnp.where(legal, jnp.roll(found.policy, -1, axis=1) + 1e-3, 0)
        of_next /= of_next.sum(-1, keepdims=True)
        return found._replace(policy=jnp.where(goes_on, of_next, found.policy))

    def without_value(infer):
        def inference(*arguments):
            output = infer(*arguments)
            return output._replace(value_logits=jnp.zeros_like(output.value_logits))

        return inference

    def untrained(learner):
        return learner._replace(params=a.model.init(jax.random.key(0)))

    faults = {
        "none": lambda: a,
        "value_sign": lambda: targets(value=jnp.negative),
        "late_reward": lambda: targets(reward=lambda x: jnp.roll(x, 1, axis=1)),
        "policy_of_the_other": lambda: a._replace(make_targets=policy_of_next),
        "masked_policy": lambda: targets(policy_mask=jnp.zeros_like),
        "no_reconstruction": lambda: a._replace(terms=tuple(t for t in a.terms if t.name != "reconstruction")),
        "stale_reanalyze": lambda: a._replace(
            reanalyze=lambda learner, *rest, **bound: a.reanalyze(untrained(learner), *rest, **bound)
        ),
        "dead_head": lambda: a._replace(
            model=a.model._replace(
                initial_inference=without_value(a.model.initial_inference),
                recurrent_inference=without_value(a.model.recurrent_inference),
            )
        ),
        "high_learning_rate": lambda: a._replace(
            optimiser=optax.chain(optax.with_extra_args_support(a.optimiser), optax.scale(10.0))
        ),
        "low_replay_ratio": lambda: a._replace(
            sample=lambda key, buffer: jax.tree.map(lambda x: x[: max(1, len(x) // 10)], a.sample(key, buffer))
        ),
        "random_moves": lambda: a._replace(
            choose=lambda key, found, legal, moves: (uniform_legal_action(key, legal), jnp.zeros(len(moves), bool))
        ),
    }
    return faults[fault]()
