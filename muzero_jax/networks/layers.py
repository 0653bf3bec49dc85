"""The networks' parts: residual trunks of dense layers or board convolutions, heads, encoded actions.

Normalisation is LayerNorm, because BatchNorm's statistics would differ between the root's embedding and the K-th
unrolled one; only `Projector`, which search never calls, looks at the batch. Parameters are always float32; the
arithmetic is in `NetworkSizes.dtype`. Head kernels start at zero, so the first searches see a uniform prior and value
0.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from muzero_jax.networks.contract import MUZERO, Abilities
from muzero_jax.ops import bfloat16_products
from muzero_jax.ops.convolution import as_matrix, beside_convolved, convolve
from muzero_jax.ops.devices import target_device
from muzero_jax.ops.look_ups import look_up

Activation = Callable[[Array], Array]
ACTIVATIONS: dict[str, Activation] = {"relu": nn.relu, "silu": nn.silu, "gelu": nn.gelu}
_MIN_MAX_EPSILON = 1e-5


def min_max_scale(embedding: Float[Array, "N *e"]) -> Float[Array, "N *e"]:
    """Scales each sample to [0, 1]; the epsilon keeps a constant embedding, and its gradient, finite."""
    dtype = embedding.dtype
    axes = tuple(range(1, embedding.ndim))
    if dtype == jnp.float16:  # the epsilon and the square of a small range are subnormal there
        embedding = embedding.astype(jnp.float32)
    low = jnp.min(embedding, axis=axes, keepdims=True)
    high = jnp.max(embedding, axis=axes, keepdims=True)
    return ((embedding - low) / (high - low + _MIN_MAX_EPSILON)).astype(dtype)


class BoardConvolution(nn.Module):
    """`convolve` with its parameters: [N, H, W, C] -> [N, H, W, features]."""

    features: int
    size: int = 3
    dtype: jnp.dtype = jnp.float32
    product_dtype: jnp.dtype | None = None

    @nn.compact
    def __call__(self, inputs):
        shape = (self.size, self.size, inputs.shape[-1], self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape)
        outputs = convolve(inputs.astype(self.dtype), kernel.astype(self.dtype), self.product_dtype)
        return outputs + self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)


class Dense(nn.Module):
    """Flax's layer for rows [N, C]; its factors are rounded to bfloat16 if that is the `product_dtype`."""

    features: int
    dtype: jnp.dtype = jnp.float32
    product_dtype: jnp.dtype | None = None
    use_bias: bool = True

    @nn.compact
    def __call__(self, inputs, num_columns: int | None = None):
        """The outputs; `inputs` may have more columns than `num_columns`, and then those are without weights."""
        columns = inputs.shape[-1]
        shape = num_columns or columns, self.features
        kernel = self.param("kernel", nn.initializers.lecun_normal(), shape).astype(self.dtype)
        kernel = jnp.pad(kernel, ((0, columns - len(kernel)), (0, 0)))
        multiply = bfloat16_products.multiply if self.product_dtype == jnp.bfloat16 else jnp.matmul
        outputs = multiply(inputs.astype(self.dtype), kernel)
        if self.use_bias:
            outputs += self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)
        return outputs


LARGEST_STEM = 256
"""The most bits of a board that a stem convolves by one product."""


class Stem(nn.Module):
    """A board's bits and, beside them, the patterns of a 3x3 convolution: [N, H, W, C] -> [N, H W (C + features)].

    On an accelerator one product makes both, and no copy joins them; columns of zeros follow, so that their number is a
    multiple of 8, as tensor cores need.
    """

    features: int
    activation: Activation
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, bits):
        channels = bits.shape[-1]
        num_bits = math.prod(bits.shape[1:])
        kernel = self.param("kernel", nn.initializers.he_normal(), (3, 3, channels, self.features)).astype(self.dtype)
        bias = self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)
        if target_device().platform == "cpu" or num_bits > LARGEST_STEM:
            patterns = self.activation(convolve(bits.astype(self.dtype), kernel) + bias)
            return jnp.concatenate([bits.reshape(len(bits), -1), patterns.reshape(len(bits), -1)], axis=-1)
        seen = beside_convolved(bits.astype(self.dtype), kernel)
        shift = jnp.tile(bias, num_bits // channels)
        seen += jnp.pad(shift, (num_bits, seen.shape[-1] - num_bits - len(shift)))
        if self.activation is nn.relu:  # which leaves bits as they are
            return nn.relu(seen)
        return jnp.where(jnp.arange(seen.shape[-1]) < num_bits, seen, self.activation(seen))


class Embed(nn.Module):
    """Flax's layer of that name, for indices [N], with the gradient of `look_up`."""

    num_embeddings: int
    features: int
    dtype: jnp.dtype = jnp.float32

    def setup(self):
        rows = nn.initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)
        self.embedding = self.param("embedding", rows, (self.num_embeddings, self.features))

    def __call__(self, index):
        return look_up(self.embedding, jnp.asarray(index), self.dtype)


class NetworkSizes(NamedTuple):
    """Sizes, activation, arithmetic and abilities that all kinds of network share."""

    num_actions: int
    num_bins: int
    observation_shape: tuple[int, ...]
    width: int
    num_blocks: int
    activation: Activation
    dtype: jnp.dtype
    product_dtype: jnp.dtype | None = None  # of the trunks' factors, if not `dtype`
    abilities: Abilities = MUZERO


class BoardLayout(NamedTuple):
    """The board for a network: [H, W], and the cell (row * W + column, or -1) that each action touches."""

    shape: tuple[int, int]
    action_location: tuple[int, ...]


class Residual(nn.Module):
    """A first layer, then pre-activation blocks x + f(act(LN(m(f(act(LN(x))))))); f is dense or a 3x3 convolution.

    `between` makes the m of a block; without it m(y) = y.
    """

    sizes: NetworkSizes
    layer: Callable[..., nn.Module]
    between: Callable[[], nn.Module] | None = None

    def setup(self):
        s = self.sizes
        layer = partial(self.layer, s.width, dtype=s.dtype, product_dtype=s.product_dtype)
        self.first = layer()
        self.layers = [layer() for _ in range(2 * s.num_blocks)]
        self.norms = [nn.LayerNorm(dtype=s.dtype) for _ in range(2 * s.num_blocks)]
        self.middles = [self.between() for _ in range(s.num_blocks)] if self.between else []

    def __call__(self, *inputs, bias: Array | float = 0.0):
        """The trunk's output; `inputs` are those of its first layer."""
        x = self.first(*inputs) + bias
        for block in range(self.sizes.num_blocks):
            y = self._layer(2 * block, x)
            y = self.middles[block](y) if self.middles else y
            x = x + self._layer(2 * block + 1, y)
        return x

    def _layer(self, i, x):
        return self.layers[i](self.sizes.activation(self.norms[i](x)))


class Heads(nn.Module):
    """Linear read-outs of one trunk, zero at the start, computed as one matrix product and split.

    A 1x1 convolution first narrows a board to `planes` channels. Without a layer of `hidden` units after it an output
    is a sum over cells, which knows nothing of how the contents of distant cells stand to each other.
    """

    sizes: NetworkSizes
    outputs: Mapping[str, int]  # how many numbers each head has, by its name
    planes: int | None
    hidden: int = 0

    @nn.compact
    def __call__(self, x):
        dtype = self.sizes.dtype
        x = self.sizes.activation(nn.LayerNorm(dtype=dtype)(x))
        if self.planes is not None:
            x = BoardConvolution(self.planes, size=1, dtype=dtype)(x)
            x = self.sizes.activation(x.reshape(x.shape[0], -1))
        if self.hidden:
            x = self.sizes.activation(nn.LayerNorm(dtype=dtype)(nn.Dense(self.hidden, dtype=dtype)(x)))
        x = nn.Dense(sum(self.outputs.values()), dtype=dtype, kernel_init=nn.initializers.zeros)(x)
        return {name: part.astype(jnp.float32) for name, part in split(x, self.outputs).items()}


def split(x: Float[Array, "N D"], sizes: Mapping[str, int]) -> dict[str, Array]:
    """The columns in parts of these sizes, which add up to D, by the parts' names."""
    ends = np.cumsum(list(sizes.values()))[:-1]
    return dict(zip(sizes, jnp.split(x, ends, axis=-1), strict=True))


class Projector(nn.Module):
    """EfficientZero's projector and predictor (Ye et al. 2021, section 4.1), which only the consistency loss calls.

    Here alone rows are standardised over the batch, as by BatchNorm. With LayerNorm instead, the projections of all
    screens soon were one constant, which is consistent too (docs/results/2026-11-26-arcade.md).
    """

    sizes: NetworkSizes

    def setup(self):
        layer = partial(nn.Dense, dtype=self.sizes.dtype)
        centred = partial(layer, use_bias=False)  # because a mean that is subtracted takes any bias with it
        self.hidden = centred(256)
        self.projection = centred(256)
        self.bottleneck = centred(64)
        self.prediction = layer(256)

    def project(self, embedding):
        hidden = standardised(self.hidden(embedding.reshape(embedding.shape[0], -1)))
        return standardised(self.projection(self.sizes.activation(hidden)))

    def predict(self, projection):
        hidden = standardised(self.bottleneck(projection))
        return self.prediction(self.sizes.activation(hidden)).astype(jnp.float32)


def standardised(x: Float[Array, "N D"]) -> Float[Array, "N D"]:
    """Each column with mean 0 and variance 1, in float32; a constant column becomes 0."""
    x = x.astype(jnp.float32)
    return nn.standardize(x - x.mean(axis=0), axis=0)  # its variance is exact only of small means


class ActionPlanes(nn.Module):
    """An action on a board: a convolved plane with a one at the cell it touches, plus an embedding of its kind.

    The embedding, the same in every cell, separates actions that share a cell or have none (chess, passes). Without
    `kinds`, the kind of each action from 0 on, every action is a kind of its own.
    """

    sizes: NetworkSizes
    board: BoardLayout
    kinds: tuple[int, ...] | None = None

    @nn.compact
    def __call__(self, action):
        dtype = self.sizes.dtype
        kernel = self.param("kernel", nn.initializers.he_normal(), (3, 3, 1, self.sizes.width))
        location = jnp.asarray(self.board.action_location)[action]
        convolved = convolved_ones(kernel, location, self.board.shape, dtype)
        if self.kinds is None:
            num_kinds = self.sizes.num_actions
            kind = action
        else:
            num_kinds = max(self.kinds) + 1
            kind = jnp.asarray(self.kinds)[action]
        return convolved + Embed(num_kinds, self.sizes.width, dtype=dtype)(kind)[:, None, None, :]


def convolved_ones(
    kernel: Float[Array, "3 3 1 C"], location: Int[Array, " N"], shape: tuple[int, int], dtype: DTypeLike
) -> Float[Array, "N H W C"]:
    """`convolve` of boards [H, W] of zeros with a one at cell `location`, or without a one if that is -1.

    On an accelerator it is a row of the convolution's matrix. On a CPU the flipped kernel lies in one plane of zeros,
    and each result is a window of it, cut out by a gather: a convolution, which multiplies almost only zeros, took 150
    us for 64 boards of 9x9 and 64 channels, and 460 with its gradient (here 4 and 45). The gradient of each weight is a
    sum over all N actions, so it is taken in the kernel's float32.
    """
    height, width = shape
    if target_device().platform != "cpu":
        rows = jnp.pad(as_matrix(kernel, shape), ((0, 1), (0, 0)))  # the last row is of an action without a cell
        found = look_up(rows, jnp.where(location < 0, height * width, location), dtype)
        return found.reshape(-1, height, width, kernel.shape[-1])
    plane = jnp.pad(jnp.flip(kernel[:, :, 0], (0, 1)), ((height - 1, height), (width - 1, width - 1), (0, 0)))
    row = jnp.where(location < 0, -2, location // width)

    def window(row, column):
        return lax.dynamic_slice(plane, (height - row, width - column, 0), (height, width, kernel.shape[-1]))

    return jax.vmap(window)(row, location % width).astype(dtype)
