"""A network of your own in one file: a transformer over the cells of a board.

    python experiments/train.py --env tic_tac_toe --network examples/transformer.py --network.options width=64 depth=2

train.py, play.py and evaluate.py need only `make_model`; docs/your-own-network.md explains the rest.
"""

from functools import partial
from typing import Any

import flax.linen as nn
import jax.numpy as jnp

from muzero_jax.networks import value_transform
from muzero_jax.networks.layers import min_max_scale
from muzero_jax.types import Model, NetworkOutput


class Transformer(nn.Module):
    """Self-attention over all cells: [N, cells, planes] -> [N, cells, width]."""

    width: int
    depth: int

    @nn.compact
    def __call__(self, cells, of_action=None):
        position = self.param("position", nn.initializers.normal(0.02), (cells.shape[1], self.width))
        x = nn.Dense(self.width)(cells) + position
        x = x if of_action is None else x + of_action
        for _ in range(self.depth):
            x += nn.MultiHeadDotProductAttention(self.width // 16)(nn.LayerNorm()(x))
            x += nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))
        return x


class Network(nn.Module):
    """Representation h, dynamics g and prediction f of MuZero; the embedding is a vector for each cell."""

    num_actions: int
    num_bins: int
    observation_shape: tuple[int, ...]
    width: int
    depth: int

    def setup(self):
        def read_out(features):  # zero at the start, so that the first searches see a uniform prior
            flatten = lambda x: x.reshape(len(x), -1)  # noqa: E731
            return nn.Sequential([nn.LayerNorm(), flatten, nn.Dense(features, kernel_init=nn.initializers.zeros)])

        trunk = partial(Transformer, self.width, self.depth)
        self.representation = trunk()
        self.dynamics = trunk()
        self.prediction = trunk()
        self.action = nn.Embed(self.num_actions, self.width)
        self.policy, self.value, self.reward = map(read_out, (self.num_actions, self.num_bins, self.num_bins))
        self.decoder = nn.Dense(self.observation_shape[-1])

    def initial_inference(self, observation):
        cells = observation.reshape(len(observation), -1, self.observation_shape[-1]).astype(jnp.float32)
        embedding = min_max_scale(self.representation(cells))
        return self._judge(embedding, jnp.zeros((len(observation), self.num_bins)))  # no move, no reward

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(embedding, self.action(action)[:, None])
        return self._judge(min_max_scale(trunk), self.reward(trunk))

    def reconstruct(self, embedding):
        return self.decoder(embedding).reshape(-1, *self.observation_shape)

    def _judge(self, embedding, reward_logits):
        x = self.prediction(embedding)
        return NetworkOutput(embedding, reward_logits, self.value(x), self.policy(x))

    def __call__(self, observation, action):  # touches every parameter, for init
        embedding = self.initial_inference(observation).embedding
        return self.recurrent_inference(embedding, action), self.reconstruct(embedding)


def make_model(environment, support, width=32, depth=1) -> Model:
    """The functions that MuZero needs; `width` must be a multiple of 16."""
    shape = environment.observation_shape
    network = Network(environment.num_actions, support.num_bins, shape, width, depth)

    def init(key):
        return network.init(key, jnp.zeros((1, *shape)), jnp.zeros(1, jnp.int32))

    def apply(method, params, *inputs) -> Any:
        return network.apply(params, *inputs, method=method)

    return Model(
        init,
        partial(apply, "initial_inference"),
        partial(apply, "recurrent_inference"),
        partial(apply, "reconstruct"),
        to_scalar=partial(value_transform.to_scalar, support=support),
        scalar_loss=partial(value_transform.scalar_loss, support=support),
    )
