"""Representation, dynamics and prediction: a residual MLP for small boards, a residual convolution tower for the rest.

Flax linen, because `apply` is the pure function that mctx wants. Normalisation is LayerNorm: BatchNorm's statistics
would differ between the root's embedding and the K-th unrolled one. Every embedding is min-max scaled to [0, 1] per
sample (MuZero, appendix G), which keeps an unroll of any depth in range. Parameters are float32 always; the
arithmetic is in `compute_dtype`. Head kernels start at zero: the first searches see a uniform prior and value 0.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

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


class Residual(nn.Module):
    """Pre-activation residual blocks: x + f(act(LN(f(act(LN(x)))))), f a dense layer or a 3x3 convolution."""

    layer: Callable[..., nn.Module]
    width: int
    num_blocks: int
    activation: Activation
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        for _ in range(self.num_blocks):
            y = self.activation(nn.LayerNorm(dtype=self.dtype)(x))
            y = self.layer(self.width, dtype=self.dtype)(y)
            y = self.activation(nn.LayerNorm(dtype=self.dtype)(y))
            x = x + self.layer(self.width, dtype=self.dtype)(y)
        return x


class Heads(nn.Module):
    """Linear read-outs of one trunk, zero at the start, computed as one matrix product and split."""

    sizes: tuple[int, ...]
    activation: Activation
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        x = self.activation(nn.LayerNorm(dtype=self.dtype)(x))
        outputs = nn.Dense(sum(self.sizes), dtype=self.dtype, kernel_init=nn.initializers.zeros)(x)
        splits = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes) - 1)]
        return tuple(part.astype(jnp.float32) for part in jnp.split(outputs, splits, axis=-1))


class MLPNetwork(nn.Module):
    """The residual MLP. Embeddings are vectors [N, width]."""

    num_actions: int
    num_bins: int
    width: int
    num_blocks: int
    activation: Activation
    dtype: jnp.dtype

    def setup(self):
        residual = partial(Residual, nn.Dense, self.width, self.num_blocks, self.activation, self.dtype)
        dense = partial(nn.Dense, self.width, dtype=self.dtype)
        heads = partial(Heads, activation=self.activation, dtype=self.dtype)
        self.observation_layer, self.representation = dense(), residual()
        self.embedding_layer, self.dynamics = dense(), residual()
        self.action_layer = nn.Embed(self.num_actions, self.width, dtype=self.dtype)
        self.prediction_layer, self.prediction = dense(), residual()
        self.reward_head = heads((self.num_bins,))
        self.prediction_heads = heads((self.num_actions, self.num_bins))

    def initial_inference(self, observation):
        flat = observation.reshape(observation.shape[0], -1).astype(self.dtype)
        embedding = min_max_scale(self.representation(self.observation_layer(flat)))
        reward_logits = jnp.zeros((observation.shape[0], self.num_bins))
        return self.predict(embedding, reward_logits)

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(self.embedding_layer(embedding) + self.action_layer(action))
        (reward_logits,) = self.reward_head(trunk)
        return self.predict(min_max_scale(trunk), reward_logits)

    def predict(self, embedding, reward_logits):
        trunk = self.prediction(self.prediction_layer(embedding))
        policy_logits, value_logits = self.prediction_heads(trunk)
        return NetworkOutput(embedding, reward_logits, value_logits, policy_logits)

    def __call__(self, observation, action):
        return self.recurrent_inference(self.initial_inference(observation).embedding, action)


class TowerNetwork(nn.Module):
    """The residual convolution tower. Embeddings are boards [N, H, W, width].

    An action enters the dynamics as a plane with a one at the cell it touches, plus an embedding of its index spread
    over the board where cells alone do not tell actions apart (passes, drops in chess variants).
    """

    num_actions: int
    num_bins: int
    width: int
    num_blocks: int
    activation: Activation
    dtype: jnp.dtype
    board_shape: tuple[int, int]
    action_location: tuple[int, ...]

    def setup(self):
        convolution = partial(BoardConvolution, self.width, dtype=self.dtype)
        residual = partial(Residual, BoardConvolution, self.width, self.num_blocks, self.activation, self.dtype)
        heads = partial(Heads, activation=self.activation, dtype=self.dtype)
        self.observation_layer, self.representation = convolution(), residual()
        self.embedding_layer, self.dynamics = convolution(), residual()
        self.plane_layer = convolution(use_bias=False)
        self.action_layer = nn.Embed(self.num_actions, self.width, dtype=self.dtype)
        self.prediction = residual()
        self.reward_planes = BoardConvolution(4, size=1, dtype=self.dtype)
        self.prediction_planes = BoardConvolution(8, size=1, dtype=self.dtype)
        self.reward_head = heads((self.num_bins,))
        self.prediction_heads = heads((self.num_actions, self.num_bins))

    def initial_inference(self, observation):
        embedding = min_max_scale(self.representation(self.observation_layer(observation.astype(self.dtype))))
        reward_logits = jnp.zeros((observation.shape[0], self.num_bins))
        return self.predict(embedding, reward_logits)

    def recurrent_inference(self, embedding, action):
        height, width = self.board_shape
        location = jnp.asarray(self.action_location)[action]
        plane = jax.nn.one_hot(location, height * width, dtype=self.dtype).reshape(-1, height, width, 1)
        index = self.action_layer(action)[:, None, None, :]
        trunk = self.dynamics(self.embedding_layer(embedding) + self.plane_layer(plane) + index)
        planes = self.reward_planes(trunk)
        (reward_logits,) = self.reward_head(planes.reshape(planes.shape[0], -1))
        return self.predict(min_max_scale(trunk), reward_logits)

    def predict(self, embedding, reward_logits):
        planes = self.prediction_planes(self.prediction(embedding))
        policy_logits, value_logits = self.prediction_heads(planes.reshape(planes.shape[0], -1))
        return NetworkOutput(embedding, reward_logits, value_logits, policy_logits)

    def __call__(self, observation, action):
        return self.recurrent_inference(self.initial_inference(observation).embedding, action)


def make_model(
    environment: Environment,
    support: Support,
    *,
    kind: Literal["mlp", "tower"],
    width: int,
    num_blocks: int,
    activation: str,
    compute_dtype: str,
) -> Model:
    """The model of a game as pure functions; nothing is allocated before `Model.init`.

    Args:
      support: of value and reward; one bin gives scalar heads.
      width: units of the MLP or channels of the tower. num_blocks: residual blocks of h, of g and of f each.
    """
    common = dict(
        num_actions=environment.num_actions,
        num_bins=support.num_bins,
        width=width,
        num_blocks=num_blocks,
        activation=ACTIVATIONS[activation],
        dtype=jnp.dtype(compute_dtype),
    )
    if kind == "mlp":
        network: nn.Module = MLPNetwork(**common)
    else:
        location = tuple(int(cell) for cell in environment.action_location)
        network = TowerNetwork(**common, board_shape=environment.board_shape, action_location=location)

    def init(key: Array):
        observation = jnp.zeros((1, *environment.observation_shape))
        return network.init(key, observation, jnp.zeros((1,), jnp.int32))["params"]

    def apply(method: str, params, *inputs) -> NetworkOutput:
        return network.apply({"params": params}, *inputs, method=method)

    return Model(
        init=init,
        initial_inference=partial(apply, "initial_inference"),
        recurrent_inference=partial(apply, "recurrent_inference"),
        to_scalar=partial(value_transform.to_scalar, support=support),
        scalar_loss=partial(value_transform.scalar_loss, support=support),
    )
