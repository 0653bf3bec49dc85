"""A head of one's own on any network's embeddings, so that a new prediction is a few lines."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.networks.contract import observation_of
from muzero_jax.types import Environment, Model, NetworkOutput, Params

OF_PARAMS = ("reconstruct", "project", "predict_projection", "encode_chance")
INFERENCES = ("initial_inference", "recurrent_inference", "follow_code")


def with_head(
    model: Model,
    environment: Environment,
    name: str,
    init: Callable[[Array, tuple[int, ...]], Params],
    apply: Callable[[Params, Array], Array],
) -> Model:
    """The model with one more read-out of every position, real or unrolled: `extras[name]`, [N, ...].

    Args:
      environment: the game, whose observations decide the shape of an embedding.
      name: in `NetworkOutput.extras`, where a loss finds it.
      init: (key, shape [*e] of an embedding) -> the head's weights, a pytree of float32.
      apply: (the head's weights, embeddings [N, *e]) -> what it predicts [N, ...].
    """

    def init_both(key: Array) -> Params:
        model_key, head_key = jax.random.split(key)
        params = model.init(model_key)
        seen = observation_of(environment)
        output = jax.eval_shape(model.initial_inference, params, jnp.zeros((1, *seen.shape), seen.dtype))
        return {"model": params, "head": init(head_key, output.embedding.shape[1:])}

    def read_out(inference: Any) -> Any:
        def inferred(params: Params, *inputs: Any) -> NetworkOutput:
            output = inference(params["model"], *inputs)
            return output._replace(extras=output.extras | {name: apply(params["head"], output.embedding)})

        return inference and inferred

    def of_model(function: Callable[..., Array] | None) -> Any:
        return function and (lambda params, *inputs: function(params["model"], *inputs))

    changed = {field: read_out(getattr(model, field)) for field in INFERENCES}
    changed |= {field: of_model(getattr(model, field)) for field in OF_PARAMS}
    return model._replace(init=init_both, **changed)
