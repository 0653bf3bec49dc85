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
    BoardConvolution,
    BoardLayout,
    Dense,
    Embed,
    Heads,
    NetworkSizes,
    Projector,
    Residual,
    min_max_scale,
)
from muzero_jax.ops.observations import as_numbers
from muzero_jax.types import NetworkOutput


class Network(nn.Module):
    """The base of all kinds: projections of embeddings, and the parameters that `init` makes."""

    sizes: NetworkSizes

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

    board: BoardLayout | None = None
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
            self.decoder = nn.Dense(math.prod(s.observation_shape), dtype=s.dtype)
        else:
            self.action_encoder = ActionPlanes(s, self.board)
            self.decoder = BoardConvolution(s.observation_shape[-1], size=1, dtype=s.dtype)
        self.reward_head = Heads(s, move_heads(s), None if self.board is None else 4)
        self.prediction_heads = Heads(s, self._read_outs(), None if self.board is None else 8)
        self.projector = Projector(s)

    def initial_inference(self, observation):
        embedding = min_max_scale(self.representation(self._seen(as_numbers(observation))))
        of_move = {name: jnp.zeros((observation.shape[0], size)) for name, size in move_heads(self.sizes).items()}
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
        return position_heads(self.sizes)

    def _predict(self, embedding, of_move):
        return output_of(embedding, self.prediction_heads(self.prediction(embedding)) | of_move)


def position_heads(sizes: NetworkSizes) -> dict[str, int]:
    """What is read out of a position, by its field or its name in `extras`, and how many numbers each is."""
    further = {head.output: head.size or sizes.num_actions for head in sizes.abilities.heads if head.at == "position"}
    return {"policy_logits": sizes.num_actions, "value_logits": sizes.num_bins} | further


def move_heads(sizes: NetworkSizes) -> dict[str, int]:
    """What is read out of a move, likewise."""
    further = {head.output: head.size or sizes.num_actions for head in sizes.abilities.heads if head.at == "move"}
    return {"reward_logits": sizes.num_bins} | further


def heads_by_action(sizes: NetworkSizes) -> list[str]:
    """Those of a position's heads that are a number for each action."""
    further = (head.output for head in sizes.abilities.heads if head.size is None and head.at == "position")
    return ["policy_logits", *further]


def output_of(embedding: Array, heads: dict[str, Array]) -> NetworkOutput:
    """A position's and a move's heads as one record."""
    fields = {name: x for name, x in heads.items() if name in NetworkOutput._fields}
    extras = {name: x for name, x in heads.items() if name not in fields}
    return NetworkOutput(embedding=embedding, extras=extras, **fields)
