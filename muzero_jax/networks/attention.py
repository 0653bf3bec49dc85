"""A transformer over the cells of a board, as a trunk instead of a tower's, with a tower's action planes and heads.

Each cell is a token. Blocks normalise before they compute ("pre-LN", Xiong et al. 2020, arXiv 2002.04745), so they need
no special warm-up. Distant cells meet in one block, whereas a tower needs one for every two cells between them.
"""

import flax.linen as nn
from jaxtyping import Array, Float

from muzero_jax.networks.layers import Dense, NetworkSizes

HEAD_WIDTH = 32
_MLP_RATIO = 4
_POSITION_SCALE = 0.02


def num_heads(width: int) -> int:
    """How many heads of at least 32 units share `width` evenly: as many as possible, at least one."""
    return next(heads for heads in range(max(1, width // HEAD_WIDTH), 0, -1) if width % heads == 0)


def attend(joint: Float[Array, "N T D3"], heads: int) -> Float[Array, "N T D"]:
    """Each token's mean of all tokens' values, weighted by softmax(q k / sqrt(d)); the heads' means are concatenated.

    joint: queries, keys and values of each token, one after the other.
    """
    num_rows, num_tokens, _ = joint.shape
    query, key, value = (joint.reshape(num_rows, num_tokens, 3, heads, -1)[:, :, i] for i in range(3))
    means = nn.dot_product_attention(query, key, value, force_fp32_for_softmax=True)
    return means.reshape(num_rows, num_tokens, -1)


class Transformer(nn.Module):
    """A first layer, then blocks x + attention(LN(x)) and x + mlp(LN(x)): [N, H, W, C] -> [N, H, W, width]."""

    sizes: NetworkSizes

    @nn.compact
    def __call__(self, inputs, bias: Array | float = 0.0):
        s = self.sizes
        num_rows, height, width, _ = inputs.shape
        shape = (height, width, s.width)
        position = self.param("position", nn.initializers.normal(_POSITION_SCALE), shape).astype(s.dtype)
        x = self._layer(s.width, inputs.astype(s.dtype)) + position + bias
        x = x.reshape(num_rows, height * width, s.width)
        for _ in range(s.num_blocks):
            joint = self._layer(3 * s.width, nn.LayerNorm(dtype=s.dtype)(x))
            x = x + self._layer(s.width, attend(joint, num_heads(s.width)))
            y = s.activation(self._layer(_MLP_RATIO * s.width, nn.LayerNorm(dtype=s.dtype)(x)))
            x = x + self._layer(s.width, y)
        return x.reshape(num_rows, *shape)

    def _layer(self, features, x):
        """A dense layer of each token."""
        layer = Dense(features, dtype=self.sizes.dtype, product_dtype=self.sizes.product_dtype)
        return layer(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], features)
