"""Representation, dynamics and prediction: a residual MLP, an MLP behind a convolution stem, a convolution tower.

Flax linen, because `apply` is the pure function that mctx wants. Normalisation is LayerNorm: BatchNorm's statistics
would differ between the root's embedding and the K-th unrolled one. Every embedding is min-max scaled to [0, 1] per
sample (MuZero, appendix G), which keeps an unroll of any depth in range. Parameters are float32 always; the
arithmetic is in `compute_dtype`. Head kernels start at zero: the first searches see a uniform prior and value 0.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax import value_transform
from muzero_jax.convolution import convolve
from muzero_jax.types import Environment, Model, NetworkOutput
from muzero_jax.value_transform import Support

Activation = Callable[[Array], Array]
ACTIVATIONS: dict[str, Activation] = {"relu": nn.relu, "silu": nn.silu, "gelu": nn.gelu}
_MIN_MAX_EPSILON = 1e-5


def min_max_scale(embedding: Float[Array, "N *e"]) -> Float[Array, "N *e"]:
    """Scales each sample to [0, 1]; the epsilon keeps a constant embedding, and its gradient, finite."""
    axes = tuple(range(1, embedding.ndim))
    low = jnp.min(embedding, axis=axes, keepdims=True)
    high = jnp.max(embedding, axis=axes, keepdims=True)
    return (embedding - low) / (high - low + _MIN_MAX_EPSILON)


class BoardConvolution(nn.Module):
    """`convolve` with its parameters: [N, H, W, C] -> [N, H, W, features]."""

    features: int
    size: int = 3
    use_bias: bool = True
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, inputs):
        shape = (self.size, self.size, inputs.shape[-1], self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape)
        outputs = convolve(inputs.astype(self.dtype), kernel.astype(self.dtype))
        if self.use_bias:
            outputs += self.param("bias", nn.initializers.zeros, (self.features,)).astype(self.dtype)
        return outputs


STEM_CHANNELS = 32


class Sizes(NamedTuple):
    """What all kinds of network have in common."""

    num_actions: int
    num_bins: int
    observation_shape: tuple[int, ...]
    width: int
    num_blocks: int
    activation: Activation
    dtype: jnp.dtype


class Board(NamedTuple):
    """What a tower must know of the board: [H, W], and the cell (row * W + column, or -1) that each action touches."""

    shape: tuple[int, int]
    action_location: tuple[int, ...]


class Residual(nn.Module):
    """A first layer, then pre-activation blocks x + f(act(LN(f(act(LN(x)))))); f is dense or a 3x3 convolution."""

    sizes: Sizes
    layer: Callable[..., nn.Module]

    def setup(self):
        self.first = self.layer(self.sizes.width, dtype=self.sizes.dtype)
        self.layers = [self.layer(self.sizes.width, dtype=self.sizes.dtype) for _ in range(2 * self.sizes.num_blocks)]
        self.norms = [nn.LayerNorm(dtype=self.sizes.dtype) for _ in range(2 * self.sizes.num_blocks)]

    def __call__(self, inputs, bias: Array | float = 0.0):
        x = self.first(inputs.astype(self.sizes.dtype)) + bias
        for block in range(self.sizes.num_blocks):
            y = x
            for i in (2 * block, 2 * block + 1):
                y = self.layers[i](self.sizes.activation(self.norms[i](y)))
            x = x + y
        return x


class Heads(nn.Module):
    """Linear read-outs of one trunk, zero at the start, computed as one matrix product and split.

    A board is first narrowed to `planes` channels by a 1x1 convolution, then flattened.
    """

    sizes: Sizes
    outputs: tuple[int, ...]
    planes: int | None

    @nn.compact
    def __call__(self, x):
        dtype = self.sizes.dtype
        x = self.sizes.activation(nn.LayerNorm(dtype=dtype)(x))
        if self.planes is not None:
            x = BoardConvolution(self.planes, size=1, dtype=dtype)(x)
            x = self.sizes.activation(x.reshape(x.shape[0], -1))
        x = nn.Dense(sum(self.outputs), dtype=dtype, kernel_init=nn.initializers.zeros)(x)
        splits = [sum(self.outputs[: i + 1]) for i in range(len(self.outputs) - 1)]
        return tuple(part.astype(jnp.float32) for part in jnp.split(x, splits, axis=-1))


class ActionPlanes(nn.Module):
    """An action on a board: a convolved plane with a one at the cell it touches, plus an embedding of its index.

    The embedding is spread over the board, for games where a cell does not tell actions apart (passes, chess).
    """

    sizes: Sizes
    board: Board

    @nn.compact
    def __call__(self, action):
        height, width = self.board.shape
        location = jnp.asarray(self.board.action_location)[action]
        plane = jax.nn.one_hot(location, height * width, dtype=self.sizes.dtype).reshape(-1, height, width, 1)
        index = nn.Embed(self.sizes.num_actions, self.sizes.width, dtype=self.sizes.dtype)(action)
        convolved = BoardConvolution(self.sizes.width, use_bias=False, dtype=self.sizes.dtype)(plane)
        return convolved + index[:, None, None, :]


class MuZeroNetwork(nn.Module):
    """h, g and f: with a `board` a convolution tower (embeddings [N, H, W, width]), else an MLP ([N, width]).

    `has_stem` puts convolutions before the MLP's representation. They see every cell alike, which an MLP has to learn
    cell by cell, and cost little: h runs once a search, g and f once a simulation.
    """

    sizes: Sizes
    board: Board | None = None
    has_stem: bool = False

    def setup(self):
        s = self.sizes
        residual = partial(Residual, s, nn.Dense if self.board is None else BoardConvolution)
        self.representation, self.dynamics, self.prediction = residual(), residual(), residual()
        if self.has_stem:
            self.stem = Residual(s._replace(width=STEM_CHANNELS), BoardConvolution)
        if self.board is None:
            self.action_encoder = nn.Embed(s.num_actions, s.width, dtype=s.dtype)
        else:
            self.action_encoder = ActionPlanes(s, self.board)
        self.reward_head = Heads(s, (s.num_bins,), None if self.board is None else 4)
        self.decoder = self._decoder()
        self.prediction_heads = Heads(s, (s.num_actions, s.num_bins), None if self.board is None else 8)

    def initial_inference(self, observation):
        if self.has_stem:
            observation = self.sizes.activation(self.stem(observation))
        if self.board is None:
            observation = observation.reshape(observation.shape[0], -1)
        embedding = min_max_scale(self.representation(observation))
        return self._predict(embedding, jnp.zeros((observation.shape[0], self.sizes.num_bins)))

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(embedding, self.action_encoder(action))
        (reward_logits,) = self.reward_head(trunk)
        return self._predict(min_max_scale(trunk), reward_logits)

    def reconstruct(self, embedding):
        """Logits of the observation that the embedding stands for, read out linearly; search never asks for them."""
        return self.decoder(embedding).astype(jnp.float32).reshape(-1, *self.sizes.observation_shape)

    def _decoder(self):
        shape, dtype = self.sizes.observation_shape, self.sizes.dtype
        if self.board is None:
            return nn.Dense(math.prod(shape), dtype=dtype)
        return BoardConvolution(shape[-1], size=1, dtype=dtype)

    def _predict(self, embedding, reward_logits):
        policy_logits, value_logits = self.prediction_heads(self.prediction(embedding))
        return NetworkOutput(embedding, reward_logits, value_logits, policy_logits)

    def __call__(self, observation, action):
        """Touches every parameter, for `init`."""
        output = self.recurrent_inference(self.initial_inference(observation).embedding, action)
        return output, self.reconstruct(output.embedding)


def make_model(
    environment: Environment,
    support: Support,
    *,
    kind: Literal["mlp", "hybrid", "tower"],
    width: int,
    num_blocks: int,
    activation: str,
    compute_dtype: str,
) -> Model:
    """The model of a game as pure functions; nothing is allocated before `Model.init`.

    Args:
      support: of value and reward; one bin gives scalar heads.
      kind: "mlp"; "hybrid", an MLP behind a convolution stem; or "tower", convolutions throughout.
      width: units of the MLP or channels of the tower. num_blocks: residual blocks of h, of g and of f each.
    """
    dtype = jnp.dtype(compute_dtype)
    shape = environment.observation_shape
    sizes = Sizes(environment.num_actions, support.num_bins, shape, width, num_blocks, ACTIVATIONS[activation], dtype)
    board = None
    if kind == "tower":
        board = Board(environment.board_shape, tuple(int(cell) for cell in environment.action_location))
    network = MuZeroNetwork(sizes, board, has_stem=kind == "hybrid")

    def init(key: Array):
        observation = jnp.zeros((1, *environment.observation_shape))
        return network.init(key, observation, jnp.zeros((1,), jnp.int32))["params"]

    def apply(method: str, params, *inputs) -> Any:
        return network.apply({"params": params}, *inputs, method=method)

    return Model(
        init=init,
        initial_inference=partial(apply, "initial_inference"),
        recurrent_inference=partial(apply, "recurrent_inference"),
        reconstruct=partial(apply, "reconstruct"),
        to_scalar=partial(value_transform.to_scalar, support=support),
        scalar_loss=partial(value_transform.scalar_loss, support=support),
    )
