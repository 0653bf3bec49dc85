"""The straightforward program's network: our own shapes in plain Flax, with XLA's own convolutions."""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

from muzero_jax.storage.config import NetworkConfig


class Trunk(nn.Module):
    """A first layer and pre-activation residual blocks, of convolutions or of dense layers."""

    width: int
    num_blocks: int
    is_tower: bool

    @nn.compact
    def __call__(self, x):
        layer = partial(nn.Conv, self.width, (3, 3)) if self.is_tower else partial(nn.Dense, self.width)
        x = layer()(x)
        for _ in range(self.num_blocks):
            y = x
            for _ in range(2):
                y = layer()(nn.relu(nn.LayerNorm()(y)))
            x = x + y
        return x


class Head(nn.Module):
    """A linear read-out; a board is first narrowed to `planes` channels."""

    outputs: int
    planes: int
    is_tower: bool

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.LayerNorm()(x))
        if self.is_tower:
            x = nn.relu(nn.Conv(self.planes, (1, 1))(x).reshape(x.shape[0], -1))
        return nn.Dense(self.outputs)(x)


class Network(nn.Module):
    """h, g and f of our own shape, with the action as a plane beside the embedding (or embedded, for the MLP)."""

    sizes: NetworkConfig
    num_actions: int
    board_shape: tuple[int, int]
    action_location: tuple[int, ...]

    def setup(self):
        n = self.sizes
        self.is_tower = n.kind == "tower"
        self.h, self.g, self.f = (Trunk(n.width, n.num_blocks, self.is_tower) for _ in range(3))
        self.reward = Head(n.num_bins, 4, self.is_tower)
        self.policy_and_value = Head(self.num_actions + n.num_bins, 8, self.is_tower)

    def root(self, observation):
        x = observation.astype(jnp.float32)
        return self.predict(scale(self.h(x if self.is_tower else x.reshape(x.shape[0], -1))))

    def step(self, embedding, action):
        trunk = self.g(jnp.concatenate([embedding, self.encode(action)], axis=-1))
        return self.reward(trunk), *self.predict(scale(trunk))

    def encode(self, action):
        if not self.is_tower:
            return jax.nn.one_hot(action, self.num_actions)
        height, width = self.board_shape
        return jax.nn.one_hot(jnp.asarray(self.action_location)[action], height * width).reshape(-1, height, width, 1)

    def predict(self, embedding):
        policy_logits, value_logits = jnp.split(self.policy_and_value(self.f(embedding)), [self.num_actions], axis=-1)
        return policy_logits, value_logits, embedding

    def __call__(self, observation, action):
        return self.step(self.root(observation)[-1], action)


def scale(x):
    """Min-max scaling of each embedding to [0, 1]."""
    axes = tuple(range(1, x.ndim))
    low, high = x.min(axes, keepdims=True), x.max(axes, keepdims=True)
    return (x - low) / (high - low + 1e-5)


def scalar(logits):
    """Expected value of bins over [-1, 1]."""
    return jax.nn.softmax(logits) @ jnp.linspace(-1.0, 1.0, logits.shape[-1])
