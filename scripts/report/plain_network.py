"""The MLP network of `muzero_jax.networks` written with what NumPy and PyTorch have in common, to compare with.

It reads the same parameters and must give the same numbers (`tests/test_hardware_report.py`).
"""

from collections.abc import Mapping
from typing import Any

_LAYER_NORM_EPSILON = 1e-6
_MIN_MAX_EPSILON = 1e-5


def initial_then_recurrent(library: Any, params: Mapping[str, Any], observation: Any, action: Any) -> tuple:
    """f(h(o)), then f(g(s, a)) of the position reached.

    Args:
      library: `numpy` or `torch`, whose arrays all other arguments are.
      observation: [N, O] float32. action: [N] integers.

    Returns:
      policy and value logits of both positions ([N, A + S] each, the heads side by side), and reward logits [N, S].
    """
    embedding = _min_max_scale(library, _residual(library, params["representation"], observation))
    first = _heads(library, params["prediction_heads"], _residual(library, params["prediction"], embedding))
    bias = params["action_encoder"]["embedding"][action]
    trunk = _residual(library, params["dynamics"], embedding, bias)
    reward = _heads(library, params["reward_head"], trunk)
    embedding = _min_max_scale(library, trunk)
    second = _heads(library, params["prediction_heads"], _residual(library, params["prediction"], embedding))
    return first, second, reward


def _residual(library, params, x, bias=0.0):
    x = _dense(params["first"], x) + bias
    num_blocks = sum(name.startswith("norms_") for name in params) // 2
    for block in range(num_blocks):
        y = x
        for i in (2 * block, 2 * block + 1):
            y = _dense(params[f"layers_{i}"], _layer_norm(library, params[f"norms_{i}"], y).clip(0))
        x = x + y
    return x


def _heads(library, params, x):
    return _dense(params["Dense_0"], _layer_norm(library, params["LayerNorm_0"], x).clip(0))


def _dense(params, x):
    return x @ params["kernel"] + params["bias"]


def _layer_norm(library, params, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / library.sqrt(variance + _LAYER_NORM_EPSILON) * params["scale"] + params["bias"]


def _min_max_scale(library, x):
    low = library.amin(x, axis=-1, keepdims=True)
    high = library.amax(x, axis=-1, keepdims=True)
    return (x - low) / (high - low + _MIN_MAX_EPSILON)
