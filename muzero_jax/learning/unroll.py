"""The model along the K moves of a window: what it says of each position that it imagines.

One detail is easily got wrong (MuZero's appendix G): the gradient is halved at the *input of the dynamics* only, so
that the heads' gradient into an embedding stays whole. With chance a step is two applications of the dynamics, and only
the first one's input is halved. The unroll is a `scan` written out: a loop would stack what the backward pass needs of
every step and take it apart again (a fifth of an update's time on a CPU, MLPs and towers, K = 4 and 5), and compile
hardly sooner.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from muzero_jax.learning import chance
from muzero_jax.types import Batch, Model, Params, Unrolled


def unroll(
    model: Model,
    params: Params,
    batch: Batch,
    *,
    reconstruct: bool = False,
    consistency: bool = False,
    checkpoint: bool = False,
    abreast: bool = False,
) -> Unrolled:
    """The model's outputs for each window's first position, and after each of the K actions; K may be 0.

    Args:
      batch: N windows; observations [N, F, *obs] and actions [N, K] are read, and with chance the codes after them.
      reconstruct: read the observations out of the embeddings too.
      consistency: project the embeddings too, those imagined and those of the observations that came.
      checkpoint: the gradient keeps of each unrolled step the embedding alone and computes the step anew on its way
        back (`jax.checkpoint`): the memory of K steps becomes that of one and of K embeddings, for about a third more
        arithmetic.
      abreast: for a model that rounds its embeddings: imagine all K moves at once, when it is known where each starts:
        the same, with a third of the kernels, for about a tenth more arithmetic.
    """

    def of_position(output):
        return {
            "value_logits": output.value_logits,
            "policy_logits": output.policy_logits,
            "legal_logits": output.legal_logits,
            "extras": output.extras,
            "observation_logits": model.reconstruct(params, output.embedding) if reconstruct else None,
        }

    def of_move(moved, output):
        return {
            "reward_logits": moved.reward_logits,
            "discount_logits": output.discount_logits,
            "projection": _predict_projection(model, params, output.embedding) if consistency else None,
            "afterstate_value_logits": None if codes is None else moved.value_logits,
            "chance_logits": None if codes is None else moved.chance_logits,
        }

    def imagine(embedding, step):
        action, code = step
        moved = model.recurrent_inference(params, scale_gradient(embedding, 0.5), action)
        output = moved if code is None else chance.follow(model, params, moved, code)
        return output.embedding, (of_move(moved, output), of_position(output))

    root = model.initial_inference(params, batch.observation[:, 0])
    first = jax.tree.map(lambda x: x[:, None], of_position(root))
    if not batch.actions.shape[1]:
        return Unrolled(None, **first)
    codes, code_probabilities = chance.encode(model, params, batch)
    if abreast:
        starts = _starts(model, params, root.embedding, batch.actions)
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (starts, batch.actions))
        _, steps = imagine(rows[0], (rows[1], None))
        moves, rest = jax.tree.map(lambda x: x.reshape(*batch.actions.shape, *x.shape[1:]), steps)
    else:
        if checkpoint:
            imagine = jax.checkpoint(imagine, prevent_cse=False)  # in a loop nothing could be merged
        steps = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), (batch.actions, codes))
        _, steps = jax.lax.scan(imagine, root.embedding, steps, unroll=not checkpoint)
        moves, rest = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), steps)
    positions = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), first, rest)
    observed = _observed(model, params, batch.observation[:, 1:]) if consistency else None
    return Unrolled(**moves, **positions, observed_projection=observed, code_probabilities=code_probabilities)


def _starts(model: Model, params: Params, root: Array, actions: Int[Array, "N K"]) -> Float[Array, "N K *e"]:
    """The embedding that each of the K moves starts from, without a gradient."""
    starts = [root]
    for k in range(actions.shape[1] - 1):
        starts.append(model.recurrent_inference(params, starts[-1], actions[:, k]).embedding)
    return jax.lax.stop_gradient(jnp.stack(starts, axis=1))


def _predict_projection(model: Model, params: Params, embedding: Array) -> Float[Array, "N D"]:
    """The predicted projection of the next observation, from an imagined embedding [N, ...]."""
    if model.project is None or model.predict_projection is None:
        raise ValueError("--optimiser.consistency-weight needs a network with `project` and `predict_projection`")
    return model.predict_projection(params, model.project(params, embedding))


def _observed(model: Model, params: Params, observation: Array) -> Float[Array, "N K D"]:
    """The projections of the embeddings of K observations that came."""
    assert model.project is not None  # `_predict_projection` has required
    leading = observation.shape[:2]
    embedding = model.initial_inference(params, observation.reshape(-1, *observation.shape[2:])).embedding
    return model.project(params, embedding).reshape(*leading, -1)


def scale_gradient(x: Array, scale: float) -> Array:
    """x itself, with its gradient multiplied by `scale`."""
    return x * scale + jax.lax.stop_gradient(x) * (1.0 - scale)
