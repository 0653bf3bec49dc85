"""The base of all kinds of network, and MuZero's own: a residual MLP, a convolution tower, a transformer over cells.

MuZero's scale every embedding to [0, 1] per sample by its minimum and maximum (MuZero, appendix G), which keeps an
unroll of any depth in range. The networks of `imagining` round embeddings to bits instead.
"""

import math
from functools import partial

import flax.linen as nn
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.networks.attention import Transformer
from muzero_jax.networks.layers import (
    ActionPlanes,
    Board,
    BoardConvolution,
    Dense,
    Embed,
    Heads,
    Projector,
    Residual,
    Sizes,
    min_max_scale,
)
from muzero_jax.types import NetworkOutput


class Network(nn.Module):
    """The base of all kinds: projections of embeddings, and the parameters that `init` makes."""

    sizes: Sizes

    def project(self, embedding):
        return self.projector.project(embedding)

    def predict_projection(self, projection):
        return self.projector.predict(projection)

    def __call__(self, observation, action):
        """Calls every method that a network of these abilities needs, so that `init` makes all its parameters."""
        output = self.initial_inference(observation)
        if self.sizes.abilities.dynamics:
            output = self.recurrent_inference(output.embedding, action)
            self.reconstruct(output.embedding)
        if self.sizes.abilities.projection:
            self.predict_projection(self.project(output.embedding))


class MuZeroNetwork(Network):
    """h, g and f: with a `board` a convolution tower, or if it `attends` a transformer (embeddings [N, H, W, width]);
    else an MLP ([N, width]).
    """

    board: Board | None = None
    attends: bool = False

    def setup(self):
        s = self.sizes
        layer = Dense if self.board is None else BoardConvolution
        trunk = partial(Transformer, s) if self.attends else partial(Residual, s, layer)
        self.representation = trunk()
        self.dynamics = trunk()
        self.prediction = trunk()
        if self.board is None:
            self.action_encoder = Embed(s.num_actions, s.width, dtype=s.dtype)
        else:
            self.action_encoder = ActionPlanes(s, self.board)
        self.reward_head = Heads(s, move_outputs(s), None if self.board is None else 4)
        self.decoder = self._decoder()
        self.prediction_heads = Heads(s, self._read_outs(), None if self.board is None else 8)
        self.projector = Projector(s)

    def initial_inference(self, observation):
        embedding = min_max_scale(self.representation(self._seen(observation)))
        of_move = tuple(jnp.zeros((observation.shape[0], size)) for size in move_outputs(self.sizes))
        return self._predict(embedding, of_move)

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(embedding, bias=self.action_encoder(action))
        return self._predict(min_max_scale(trunk), self.reward_head(trunk))

    def reconstruct(self, embedding):
        """Logits of the observation, read out linearly; search does not compute them."""
        return self.decoder(embedding).astype(jnp.float32).reshape(-1, *self.sizes.observation_shape)

    def _seen(self, observation):
        return observation.reshape(observation.shape[0], -1) if self.board is None else observation

    def _read_outs(self):
        return position_outputs(self.sizes)

    def _decoder(self):
        shape = self.sizes.observation_shape
        dtype = self.sizes.dtype
        if self.board is None:
            return nn.Dense(math.prod(shape), dtype=dtype)
        return BoardConvolution(shape[-1], size=1, dtype=dtype)

    def _predict(self, embedding, of_move):
        return join_heads(embedding, self.prediction_heads(self.prediction(embedding)), of_move)


def position_outputs(sizes: Sizes) -> tuple[int, ...]:
    """How many numbers a position's heads give: of policy, value and, if predicted, legal moves."""
    return (sizes.num_actions, sizes.num_bins) + (sizes.num_actions,) * sizes.abilities.legality


def move_outputs(sizes: Sizes) -> tuple[int, ...]:
    """How many numbers a move's heads give: of the reward and, if predicted, the discount's sign."""
    return (sizes.num_bins,) + (3,) * sizes.abilities.discount


def join_heads(embedding: Array, of_position: tuple[Array, ...], of_move: tuple[Array, ...]) -> NetworkOutput:
    """The outputs of the heads of `position_outputs` and `move_outputs`, as one record."""
    policy_logits, value_logits, *legal = of_position
    reward_logits, *discount = of_move
    extras = {name: head for name, heads in (("legal_logits", legal), ("discount_logits", discount)) for head in heads}
    return NetworkOutput(embedding, reward_logits, value_logits, policy_logits, extras)
