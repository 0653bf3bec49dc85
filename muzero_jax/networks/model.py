"""Representation, dynamics and prediction: a residual MLP, a convolution tower, a transformer over a board's cells, and
MLPs that imagine observations.

In all but the last every embedding is min-max scaled to [0, 1] per sample (MuZero, appendix G), which keeps an
unroll of any depth in range. The network that imagines observations has no such scaling; it rounds them to bits.
"""

import math
from functools import partial
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.arithmetic import bfloat16_products
from muzero_jax.networks import value_transform
from muzero_jax.networks.attention import Transformer
from muzero_jax.networks.contract import observation_of
from muzero_jax.networks.layers import (
    ACTIVATIONS,
    MUZERO,
    Abilities,
    ActionPlanes,
    Board,
    BoardConvolution,
    Heads,
    Projector,
    Residual,
    Sizes,
    dense,
    min_max_scale,
)
from muzero_jax.networks.value_transform import Support
from muzero_jax.types import Environment, Model, NetworkOutput

STEM_CHANNELS = 32
_CERTAIN = 20.0
"""The logit of a bit that was seen, not imagined."""


class Network(nn.Module):
    """What both kinds share: projections of embeddings, and the parameters that `init` makes."""

    sizes: Sizes

    def project(self, embedding):
        return self.projector.project(embedding)

    def predict_projection(self, projection):
        return self.projector.predict(projection)

    def __call__(self, observation, action):
        """Calls all that a network of these abilities will ever be asked, so that `init` makes the parameters of it."""
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
        layer = dense if self.board is None else BoardConvolution
        trunk = partial(Transformer, s) if self.attends else partial(Residual, s, layer)
        self.representation, self.dynamics, self.prediction = trunk(), trunk(), trunk()
        if self.board is None:
            self.action_encoder = nn.Embed(s.num_actions, s.width, dtype=s.dtype)
        else:
            self.action_encoder = ActionPlanes(s, self.board)
        self.reward_head = Heads(s, move_outputs(s), None if self.board is None else 4)
        self.decoder = self._decoder()
        self.prediction_heads = Heads(s, position_outputs(s), None if self.board is None else 8)
        self.projector = Projector(s)

    def initial_inference(self, observation):
        if self.board is None:
            observation = observation.reshape(observation.shape[0], -1)
        embedding = min_max_scale(self.representation(observation))
        of_move = tuple(jnp.zeros((observation.shape[0], size)) for size in move_outputs(self.sizes))
        return self._predict(embedding, of_move)

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(embedding, self.action_encoder(action))
        return self._predict(min_max_scale(trunk), self.reward_head(trunk))

    def reconstruct(self, embedding):
        """Logits of the observation, read out linearly; search does not compute them."""
        return self.decoder(embedding).astype(jnp.float32).reshape(-1, *self.sizes.observation_shape)

    def _decoder(self):
        shape, dtype = self.sizes.observation_shape, self.sizes.dtype
        if self.board is None:
            return nn.Dense(math.prod(shape), dtype=dtype)
        return BoardConvolution(shape[-1], size=1, dtype=dtype)

    def _predict(self, embedding, of_move):
        return join_heads(embedding, self.prediction_heads(self.prediction(embedding)), of_move)


class ObservationNetwork(Network):
    """h, g and f of an agent that imagines observations: its embedding is the next observation, as logits of bits.

    Every step starts from the rounded bits, so a small error is mended instead of handed down. And the network that
    learned from real positions judges the imagined ones. No gradient passes the rounding. So the dynamics learns from
    the observation that came, and from the reward, which the network that sees the new position helps to predict. The
    convolution before the prediction sees every cell alike; an MLP would learn each line of each game anew.
    """

    def setup(self):
        s = self.sizes
        self.dynamics = Residual(s, dense)
        self.prediction = Residual(s._replace(num_blocks=2 * s.num_blocks), dense)  # h and f in one
        self.stem = BoardConvolution(STEM_CHANNELS, dtype=s.dtype)
        self.action_encoder = nn.Embed(s.num_actions, s.width, dtype=s.dtype)
        self.decoder = nn.Dense(math.prod(s.observation_shape), dtype=s.dtype)
        self.reward_head = Heads(s, move_outputs(s), None)
        self.prediction_heads = Heads(s, position_outputs(s) + move_outputs(s), None)
        self.projector = Projector(s)

    def initial_inference(self, observation):
        embedding = _CERTAIN * (2 * observation.astype(self.sizes.dtype) - 1)
        return self._predict(embedding, None)

    def recurrent_inference(self, embedding, action):
        trunk = self.dynamics(_flat(_bits(embedding)), self.action_encoder(action))
        embedding = self.decoder(self.sizes.activation(trunk)).reshape(-1, *self.sizes.observation_shape)
        return self._predict(embedding, self.reward_head(trunk))

    def reconstruct(self, embedding):
        """The embedding itself."""
        return embedding.astype(jnp.float32)

    def _predict(self, embedding, of_move):
        """The position's heads; the move's are what the dynamics say plus what the sight of the new position adds."""
        bits = _bits(embedding)
        patterns = self.sizes.activation(self.stem(bits))
        heads = self.prediction_heads(self.prediction(jnp.concatenate([_flat(bits), _flat(patterns)], axis=-1)))
        num_position = len(position_outputs(self.sizes))
        of_arrival = heads[num_position:]
        if of_move is None:  # a root
            return join_heads(embedding, heads[:num_position], jax.tree.map(jnp.zeros_like, of_arrival))
        return join_heads(embedding, heads[:num_position], jax.tree.map(jnp.add, of_move, of_arrival))


def position_outputs(sizes: Sizes) -> tuple[int, ...]:
    """How many numbers a position's heads give: of policy, value and, where they are foretold, legal moves."""
    return (sizes.num_actions, sizes.num_bins) + (sizes.num_actions,) * sizes.abilities.legality


def move_outputs(sizes: Sizes) -> tuple[int, ...]:
    """How many numbers a move's heads give: of the reward and, where it is foretold, the discount's sign."""
    return (sizes.num_bins,) + (3,) * sizes.abilities.discount


def join_heads(embedding: Array, of_position: tuple[Array, ...], of_move: tuple[Array, ...]) -> NetworkOutput:
    """What the heads of `position_outputs` and `move_outputs` say, as one record."""
    policy_logits, value_logits, *legal = of_position
    reward_logits, *discount = of_move
    return NetworkOutput(
        embedding,
        reward_logits,
        value_logits,
        policy_logits,
        legal_logits=legal[0] if legal else None,
        discount_logits=discount[0] if discount else None,
    )


def _bits(logits):
    return jnp.where(logits > 0, 1.0, 0.0)


def _flat(x):
    return x.reshape(x.shape[0], -1)


def make_model(
    environment: Environment,
    support: Support,
    *,
    kind: Literal["mlp", "observation", "tower", "attention"],
    width: int,
    num_blocks: int,
    activation: str,
    compute_dtype: str,
    abilities: Abilities = MUZERO,
) -> Model:
    """The model of a game as pure functions; nothing is allocated before `Model.init`.

    Args:
      support: the values that value and reward may take; one bin gives scalar heads.
      kind: the kind of network, as in `storage.config`.
      width: units of the MLPs, channels of the tower or of a token. num_blocks: those of h, of g and of f each.
      abilities: what it can do beyond judging a position.

    Raises:
      ValueError: "observation" for a game whose observation is not planes of bits, "tower" or "attention" for one
        without a board.
    """
    shape, act = environment.observation_shape, ACTIVATIONS[activation]
    dtypes = bfloat16_products.dtypes(compute_dtype)
    sizes = Sizes(environment.num_actions, support.num_bins, shape, width, num_blocks, act, *dtypes, abilities)
    if kind == "mlp":
        network = MuZeroNetwork(sizes)
    elif kind in ("tower", "attention"):
        network = MuZeroNetwork(sizes, _board_of(environment, kind), attends=kind == "attention")
    else:
        _check_bits(environment)
        network = ObservationNetwork(sizes)

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
        layer_bytes=4 * width * math.prod(shape[:2]) if kind == "tower" else None,
        project=partial(apply, "project") if abilities.projection else None,
        predict_projection=partial(apply, "predict_projection") if abilities.projection else None,
    )


def _board_of(environment: Environment, kind: str) -> Board:
    if environment.board is None:
        raise ValueError(f"--network.kind {kind} needs a board, which {environment.name} has not; choose mlp")
    return Board(environment.board.shape, tuple(int(cell) for cell in environment.board.action_location))


def _check_bits(environment: Environment) -> None:
    if not shows_planes_of_bits(environment):
        sentence = f"--network.kind observation predicts planes of bits, but {environment.name} observes something else"
        raise ValueError(f"{sentence}; choose --network.kind mlp or tower")


def shows_planes_of_bits(environment: Environment) -> bool:
    """Whether an observation is a board of bools, which a network can imagine as such."""
    seen = observation_of(environment)
    return seen.dtype == bool and seen.ndim == 3
