"""The library's MLP and tower as one would first write them, from the library's own parameters, to compare with.

For MLPs the functions take what NumPy, PyTorch and jax.numpy have in common; a tower's convolutions are XLA's own. A
test holds them to the library's numbers.
"""

from collections.abc import Mapping
from typing import Any

import jax

LAYER_NORM_EPSILON = 1e-6
MIN_MAX_EPSILON = 1e-5
Params = Mapping[str, Any]


def root(library: Any, params: Params, observation: Any) -> tuple[Any, Any]:
    """f(h(o)): policy and value logits side by side [N, A + S], and the embedding.

    Args:
      library: `numpy`, `torch` or `jax.numpy`, whose arrays all others are.
      observation: [N, O] float32; of a tower [N, H, W, C].
    """
    embedding = _min_max_scale(library, _residual(library, params["representation"], observation))
    return _predict(library, params, embedding), embedding


def step(library: Any, params: Params, embedding: Any, action: Any) -> tuple[Any, Any, Any]:
    """f(g(s, a)): reward logits [N, S], policy and value logits [N, A + S], and the embedding.

    `action` is integers [N]; of a tower, those and the planes [N, H, W, 1] with a one at the cell that each touches.
    """
    trunk = _residual(library, params["dynamics"], embedding, _encode(params["action_encoder"], action))
    embedding = _min_max_scale(library, trunk)
    return _heads(library, params["reward_head"], trunk), _predict(library, params, embedding), embedding


def _predict(library, params, embedding):
    return _heads(library, params["prediction_heads"], _residual(library, params["prediction"], embedding))


def _encode(params, action):
    if "embedding" in params:
        return params["embedding"][action]
    index, plane = action
    return _layer(params, plane) + params["Embed_0"]["embedding"][index][:, None, None, :]


def _residual(library, params, x, bias=0.0):
    x = _layer(params["first"], x) + bias
    num_blocks = sum(name.startswith("norms_") for name in params) // 2
    for block in range(num_blocks):
        y = x
        for i in (2 * block, 2 * block + 1):
            y = _layer(params[f"layers_{i}"], _layer_norm(library, params[f"norms_{i}"], y).clip(0))
        x = x + y
    return x


def _heads(library, params, x):
    x = _layer_norm(library, params["LayerNorm_0"], x).clip(0)
    if "BoardConvolution_0" in params:
        x = _layer(params["BoardConvolution_0"], x).reshape(x.shape[0], -1).clip(0)
    return _layer(params["Dense_0"], x)


def _layer(params, x):
    """Dense, or where the kernel is one of a convolution, that."""
    kernel = params["kernel"]
    if kernel.ndim == 4:
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    else:
        x = x @ kernel
    return x + params.get("bias", 0.0)


def _layer_norm(library, params, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / library.sqrt(variance + LAYER_NORM_EPSILON) * params["scale"] + params["bias"]


def _min_max_scale(library, x):
    axes = tuple(range(1, x.ndim))
    low, high = library.amin(x, axes, keepdims=True), library.amax(x, axes, keepdims=True)
    return (x - low) / (high - low + MIN_MAX_EPSILON)
