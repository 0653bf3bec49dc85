"""Unrolls the model along the K moves of a window: its outputs for each position that it imagines.

One detail is easily got wrong (MuZero's appendix G): the gradient is halved at the *input of the dynamics* only, so
that the heads' gradient into an embedding stays whole. With chance a step is two applications of the dynamics, and only
the first one's input is halved.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from muzero_jax.learning import chance
from muzero_jax.types import Batch, Model, Params, Unrolled

StepFn = Callable[[Array, Any], tuple[Array, Any]]
"""(embeddings [N, *e], moves [N, ...]) -> the next embeddings, and the model's outputs [N, ...]."""


def unroll(model: Model, params: Params, batch: Batch, *, checkpoint: bool = False, batched: bool = False) -> Unrolled:
    """The model's outputs for each window's first position, and after each of the K actions; K may be 0.

    Args:
      batch: N windows; it reads the first observation, the actions, with chance the codes, with an encoder all frames.
      checkpoint, batched: compute the same outputs `in_turn` with less memory, or all `at_once`.
    """

    def step(embedding: Array, move: Any) -> tuple[Array, Any]:
        action, code = move
        output = model.recurrent_inference(params, scale_gradient(embedding, 0.5), action)
        of_chance = {}
        if model.num_codes:
            output, of_chance = chance.follow(model, params, output, code)
        return output.embedding, (output, of_chance)

    root = model.initial_inference(params, batch.observation[:, 0])
    first = jax.tree.map(lambda x: x[:, None], root)
    if not batch.actions.shape[1]:
        return Unrolled(*first, params=params)

    codes, of_encoder = chance.encode(model, params, batch) if model.num_codes else (None, {})
    moves = batch.actions, codes
    if batched:
        outputs, of_chance = at_once(step, start_embeddings(model, params, root.embedding, batch.actions), moves)
    else:
        outputs, of_chance = in_turn(step, root.embedding, moves, checkpoint=checkpoint)

    stacked = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), first, outputs)
    return Unrolled(*stacked._replace(extras=stacked.extras | of_chance | of_encoder), params=params)


def in_turn(step: StepFn, embedding: Array, moves: Any, *, checkpoint: bool) -> Any:
    """The outputs [N, K, ...] of K steps, each of which starts from the embedding that the one before led to.

    The `scan` is written out, because a loop would stack what the backward pass needs of every step and take it apart
    again (a fifth of an update's time on a CPU, MLPs and towers, K = 4 and 5), and compile hardly sooner. With
    `checkpoint` it is a loop that keeps only the embedding of each step, and the backward pass computes the step again:
    memory for one step and K embeddings instead of K steps, for about a third more arithmetic.
    """
    if checkpoint:
        step = jax.checkpoint(step, prevent_cse=False)  # in a loop nothing could be merged
    in_time = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), moves)
    _, outputs = jax.lax.scan(step, embedding, in_time, unroll=not checkpoint)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), outputs)


def at_once(step: StepFn, embeddings: Float[Array, "N K *e"], moves: Any) -> Any:
    """The outputs [N, K, ...] of K steps from given embeddings, as one step of N K rows.

    For a model that rounds its embeddings, so that no gradient passes from step to step: a third of the kernels, for
    about a tenth more arithmetic.
    """
    shape = embeddings.shape[:2]
    rows = jax.tree.map(lambda x: jax.lax.collapse(x, 0, 2), (embeddings, moves))
    _, outputs = step(*rows)
    return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), outputs)


def start_embeddings(model: Model, params: Params, root: Array, actions: Int[Array, "N K"]) -> Float[Array, "N K *e"]:
    """The embedding that each of the K moves starts from, without a gradient."""
    embeddings = [root]
    for k in range(actions.shape[1] - 1):
        embeddings.append(model.recurrent_inference(params, embeddings[-1], actions[:, k]).embedding)
    return jax.lax.stop_gradient(jnp.stack(embeddings, axis=1))


def scale_gradient(x: Array, scale: float) -> Array:
    """x itself, with its gradient multiplied by `scale`."""
    return x * scale + jax.lax.stop_gradient(x) * (1.0 - scale)
