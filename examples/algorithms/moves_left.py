"""A head of your own, which predicts how many moves are left in the game, at every position, real or unrolled.

    python experiments/train.py --env tic_tac_toe --algorithm examples/algorithms/moves_left.py

`with_head` adds the head to the network that the flags configure; `change` also adds its target and its loss.
"""

import jax
import jax.numpy as jnp

from muzero_jax.learning.losses import Term, over_depths

MOST = 42.0
"""The number of moves that the head represents as 1, so that its outputs are small."""
OF_PARAMS = "reconstruct project predict_projection encode_chance".split()


def with_head(base, observation_shape):
    """The network `base` with a linear head on its embedding: `extras["moves_left"]`, [N]."""

    def init(key):
        params = base.init(key)
        empty = jnp.zeros((1, *observation_shape))
        embedding = jax.eval_shape(base.initial_inference, params, empty).embedding
        return {"base": params, "head": jnp.zeros(embedding.size + 1)}  # the last one is the bias

    def headed(infer):
        def inferred(params, *inputs):
            output = infer(params["base"], *inputs)
            features = jax.nn.sigmoid(output.embedding.reshape(len(output.embedding), -1).astype(jnp.float32))
            left = features @ params["head"][:-1] + params["head"][-1]
            return output._replace(extras=output.extras | {"moves_left": left})

        return infer and inferred

    def of_base(function):
        return function and (lambda params, *inputs: function(params["base"], *inputs))

    heads = {name: headed(getattr(base, name)) for name in ("initial_inference", "recurrent_inference", "follow_code")}
    return base._replace(init=init, **heads, **{name: of_base(getattr(base, name)) for name in OF_PARAMS})


def change(algorithm, config, weight=1.0):
    """Adds the head, its target and its loss. Windows without the end of a game have no target."""

    def make_targets(window, progress):
        targets = algorithm.make_targets(window, progress)
        end = jnp.argmax(window.is_last, axis=1, keepdims=True)  # the first one
        left = jnp.where(window.is_last.any(axis=1, keepdims=True), end + 1 - jnp.arange(window.is_last.shape[1]), 0)
        return targets._replace(extras=targets.extras | {"moves_left": left[:, : targets.value.shape[1]] / MOST})

    def loss(outputs, batch):
        wanted = batch.targets.extras["moves_left"]
        return over_depths((wanted > 0) * jnp.square(outputs.extras["moves_left"] - wanted))

    return algorithm._replace(
        model=with_head(algorithm.model, algorithm.environment.observation_shape),
        make_targets=make_targets,
        terms=(*algorithm.terms, Term("moves_left", loss, weight)),
    )
