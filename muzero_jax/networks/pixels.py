"""A network for screens: it shrinks a picture to a few cells, and unrolls those.

The picture is cut into blocks, whose pixels become the channels of one cell, so that each step of shrinking is one
matrix product: a convolution whose stride is its kernel's side. On a CPU its gradient is then as fast as any other
here, unlike that of a strided convolution (`ops.convolution`).
"""

import math

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.networks.layers import BoardConvolution, Dense, Embed, Heads, NetworkSizes, Projector, Residual
from muzero_jax.networks.network import MuZeroNetwork, move_heads, position_heads

MOST_CELLS = 64
"""The most cells of an embedding. A screen of 32 x 64 has 4 x 8, MinAtar's of 10 x 10 has 5 x 5."""


def block_sizes(shape: tuple[int, ...]) -> list[int]:
    """The side of a block in each step of shrinking; together they leave `MOST_CELLS` cells or fewer."""
    height, width = shape[:2]
    factor = 1
    while -(-height // factor) * -(-width // factor) > MOST_CELLS:
        factor *= 2
    return [factor // 2, 2] if factor > 2 else [factor]


def blocks(pixels: Array, size: int) -> Array:
    """[N, H, W, C] as [N, ceil(H / size), ceil(W / size), size * size * C]; zeros fill up the last row and column."""
    num, height, width, channels = pixels.shape
    padded = jnp.pad(pixels, ((0, 0), (0, -height % size), (0, -width % size), (0, 0)))
    rows, columns = padded.shape[1] // size, padded.shape[2] // size
    cut = padded.reshape(num, rows, size, columns, size, channels).swapaxes(2, 3)
    return cut.reshape(num, rows, columns, size * size * channels)


class Shrinking(nn.Module):
    """A picture [N, H, W, C] to cells [N, h, w, width], by products of blocks only.

    With convolutions of the cells after them Pong began to learn later, and an update took an eighth longer
    (docs/results/2026-11-26-arcade.md).
    """

    sizes: NetworkSizes

    @nn.compact
    def __call__(self, picture):
        s = self.sizes
        x = picture.astype(s.dtype)
        sides = block_sizes(s.observation_shape)
        for step, size in enumerate(sides):
            width = s.width if step == len(sides) - 1 else 2 * s.width  # so that small objects are not lost at once
            cells = blocks(x, size)
            # As rows and without a bias, because on a CPU other gradients cost more than everything else here.
            shrink = Dense(width, dtype=s.dtype, product_dtype=s.product_dtype, use_bias=False)
            rows = shrink(cells.reshape(-1, cells.shape[-1]))
            x = s.activation(nn.LayerNorm(dtype=s.dtype)(rows)).reshape(*cells.shape[:-1], width)
        return x


class ActionBias(nn.Module):
    """An action on a screen, which belongs to no cell: a number for each channel, the same in every cell."""

    sizes: NetworkSizes

    @nn.compact
    def __call__(self, action):
        return Embed(self.sizes.num_actions, self.sizes.width, dtype=self.sizes.dtype)(action)[:, None, None, :]


class PixelDecoder(nn.Module):
    """Each cell's block of the picture, read out linearly: the inverse of `blocks`, in one step.

    Each row of a block has its own layer, so that the pixels come out in the picture's order. To transpose them
    afterwards took more than half of an update on a CPU.
    """

    sizes: NetworkSizes

    @nn.compact
    def __call__(self, cells):
        height, width, channels = self.sizes.observation_shape
        num, rows, columns, _ = cells.shape
        size = math.prod(block_sizes(self.sizes.observation_shape))
        lines = [nn.Dense(size * channels, dtype=self.sizes.dtype)(cells) for _ in range(size)]
        picture = jnp.stack(lines, axis=2).reshape(num, rows * size, columns * size, channels)
        return picture[:, :height, :width]


class PixelNetwork(MuZeroNetwork):
    """h, g and f for screens [H, W, C]; embeddings [N, h, w, width]. f is one convolution, because search and learning
    call it as often as g, and a dense layer that sees the whole screen: where the ball is means nothing without the
    paddle (docs/results/arcade).
    """

    def setup(self):
        s = self.sizes
        self.representation = Shrinking(s)
        self.dynamics = Residual(s, BoardConvolution)
        self.prediction = Residual(s._replace(num_blocks=0), BoardConvolution)
        self.action_encoder = ActionBias(s)
        self.reward_head = Heads(s, move_heads(s), 4)
        self.prediction_heads = Heads(s, position_heads(s), 8, hidden=128)
        self.decoder = PixelDecoder(s)
        self.projector = Projector(s)

    def _seen(self, observation):
        return observation
