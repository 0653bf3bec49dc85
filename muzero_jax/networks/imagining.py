"""Networks that imagine observations: of dense layers for small boards, of convolutions for boards of every size."""

import math
from abc import abstractmethod
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from muzero_jax.networks.canonical import ColourSwap
from muzero_jax.networks.convolutional import CellHeads, PooledBias, kinds_of
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
    Stem,
)
from muzero_jax.networks.network import Network, heads_by_action, move_heads, output_of, position_heads
from muzero_jax.ops.observations import as_numbers

STEM_CHANNELS = 32
DYNAMICS_CHANNELS = 32
_CERTAIN = 20.0
"""The logit of a bit that was seen, not imagined."""


class ImaginingNetwork(Network):
    """h, g and f of an agent that imagines observations: its embedding is an observation, as logits of bits.

    Every step starts from the rounded bits, so a small error is corrected instead of passed on, and imagined positions
    are judged by a network that learned from real ones. No gradient passes the rounding, so the dynamics learn from the
    observation that came and from the reward, which the judging network helps to predict.

    Without dynamics (`--model rules`) nothing is imagined, and convolutions take observations of any numbers.

    With a `colour_swap`, `imagine` and `judge` see canonical observations. Embeddings and their projections stay as the
    game shows positions.
    """

    colour_swap: ColourSwap | None

    def initial_inference(self, observation):
        seen = as_numbers(jnp.asarray(observation)).astype(self.sizes.dtype)
        if self.sizes.abilities.dynamics:
            embedding = _CERTAIN * (2 * seen - 1)
            heads = self._judge(_bits(embedding))
        else:  # nothing is imagined
            embedding = seen
            heads = self._judge(seen)
        return output_of(embedding, heads | {name: jnp.zeros_like(heads[name]) for name in move_heads(self.sizes)})

    def recurrent_inference(self, embedding, action):
        embedding, of_move = self._imagine(_bits(embedding), action)
        heads = self._judge(_bits(embedding))
        return output_of(embedding, heads | {name: part + heads[name] for name, part in of_move.items()})

    def reconstruct(self, embedding):
        """The embedding itself."""
        return embedding.astype(jnp.float32)

    @abstractmethod
    def imagine(self, bits, encoded_action) -> Any:
        """Logits of the observation after the move, and the dynamics' part of the move's heads."""

    @abstractmethod
    def judge(self, bits) -> Any:
        """The position's heads, with what it adds to the heads of the move that led there."""

    def _imagine(self, bits, action):
        if self.colour_swap is None:
            return self.imagine(bits, self.action_encoder(action))
        needed = self.colour_swap.is_needed(bits)
        swapped, plain = (self.action_encoder(a) for a in (self.colour_swap.renamed(action), action))
        encoded = jax.vmap(jnp.where)(needed, swapped, plain)
        logits, of_move = self.imagine(self.colour_swap.bits(bits, needed), encoded)
        return self.colour_swap.logits(logits, needed), of_move

    def _judge(self, bits):
        if self.colour_swap is None:
            return self.judge(bits)
        needed = self.colour_swap.is_needed(bits)
        heads = self.judge(self.colour_swap.bits(bits, needed))
        by_action = heads_by_action(self.sizes)
        return heads | {name: self.colour_swap.by_action(heads[name], needed) for name in by_action}


class ObservationNetwork(ImaginingNetwork):
    """MLPs that imagine observations.

    The convolution before the prediction treats all cells alike; an MLP would learn each line of a game separately.
    """

    def setup(self):
        s = self.sizes
        self.dynamics = Residual(s, Dense)
        self.prediction = Residual(s._replace(num_blocks=2 * s.num_blocks), Dense)  # h and f in one
        self.stem = Stem(STEM_CHANNELS, s.activation, dtype=s.dtype)
        self.action_encoder = Embed(s.num_actions, s.width, dtype=s.dtype)
        self.decoder = nn.Dense(math.prod(s.observation_shape), dtype=s.dtype)
        self.reward_head = Heads(s, move_heads(s), None)
        self.prediction_heads = Heads(s, position_heads(s) | move_heads(s), None)
        self.projector = Projector(s)

    def imagine(self, bits, encoded_action):
        trunk = self.dynamics(_flat(bits), bias=encoded_action)
        logits = self.decoder(self.sizes.activation(trunk)).reshape(-1, *self.sizes.observation_shape)
        return logits, self.reward_head(trunk)

    def judge(self, bits):
        num_columns = math.prod(bits.shape[1:3]) * (bits.shape[3] + STEM_CHANNELS)
        return self.prediction_heads(self.prediction(self.stem(bits), num_columns))


class ConvolutionalNetwork(ImaginingNetwork):
    """Convolutions that imagine observations; no parameter depends on the board's size, except a projector's.

    The dynamics are narrower than the prediction, because a move changes little. They also see a square board's mirror
    image in the long diagonal, because Hex's swap moves the stone there and no convolution can compute that.
    """

    board: BoardLayout

    def setup(self):
        s = self.sizes
        kinds = kinds_of(self.board)
        narrow = s._replace(width=min(s.width, DYNAMICS_CHANNELS))
        self.dynamics = pooled_trunk(narrow)
        self.prediction = pooled_trunk(s._replace(num_blocks=2 * s.num_blocks))  # h and f in one
        self.action_encoder = ActionPlanes(narrow, self.board, kinds.kind)
        self.decoder = BoardConvolution(s.observation_shape[-1], size=1, dtype=s.dtype)
        maps = tuple(heads_by_action(s))
        vectors = {name: size for name, size in (position_heads(s) | move_heads(s)).items() if name not in maps}
        self.reward_head = CellHeads(narrow, kinds, (), move_heads(s))
        self.prediction_heads = CellHeads(s, kinds, maps, vectors)
        self.projector = Projector(s)

    def imagine(self, bits, encoded_action):
        is_square = self.board.shape[0] == self.board.shape[1]
        seen = jnp.concatenate([bits, bits.swapaxes(1, 2)], axis=-1) if is_square else bits
        trunk = self.dynamics(seen, bias=encoded_action)
        return self.decoder(self.sizes.activation(trunk)), self.reward_head(trunk)

    def judge(self, bits):
        return self.prediction_heads(self.prediction(bits))


def pooled_trunk(sizes: NetworkSizes) -> Residual:
    """A trunk of convolutions in which every cell also sees the whole board (`PooledBias`)."""
    return Residual(sizes, BoardConvolution, partial(PooledBias, sizes))


def _bits(logits):
    return jnp.where(logits > 0, 1.0, 0.0)


def _flat(x):
    return x.reshape(x.shape[0], -1)
