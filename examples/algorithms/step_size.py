"""A learning rule with an additional metric: how far each update moves the weights."""

import jax
import optax


def change(algorithm, config):
    """Takes the usual step and measures it; `train/step_norm` goes into metrics.jsonl and TensorBoard."""

    def update(learner, batch, progress, **bound):
        after, metrics = algorithm.update(learner, batch, progress, **bound)
        step = jax.tree.map(lambda new, old: new - old, after.params, learner.params)
        return after, metrics | {"train/step_norm": optax.tree.norm(step)}

    return algorithm._replace(update=update)
