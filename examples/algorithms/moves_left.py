"""A head of your own, which predicts how many moves are left in the game, at every position, real or unrolled.

    python experiments/train.py --env tic_tac_toe --algorithm examples/algorithms/moves_left.py

`with_head` adds the head to the network that the flags configure; `change` also adds its target and its loss.
"""

import math

import jax
import jax.numpy as jnp

from muzero_jax.learning.losses import Term, over_depths
from muzero_jax.networks.own_head import with_head

MOST = 42.0
"""The number of moves that the head represents as 1, so that its outputs are small."""


def init(key, embedding_shape):
    """The weights of a linear head; the last one is the bias."""
    return jnp.zeros(math.prod(embedding_shape) + 1)


def apply(weights, embedding):
    features = jax.nn.sigmoid(embedding.reshape(len(embedding), -1).astype(jnp.float32))
    return features @ weights[:-1] + weights[-1]


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
        model=with_head(algorithm.model, algorithm.environment, "moves_left", init, apply),
        make_targets=make_targets,
        terms=(*algorithm.terms, Term("moves_left", loss, weight)),
    )
