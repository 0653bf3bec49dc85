"""The model of a game: one of the kinds of network, as pure functions."""

import math
from functools import partial
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.networks import value_transform
from muzero_jax.networks.canonical import colour_swap_of
from muzero_jax.networks.chance import ChanceNetwork
from muzero_jax.networks.contract import MUZERO, Abilities, observation_of
from muzero_jax.networks.imagining import ConvolutionalNetwork, ImaginingNetwork, ObservationNetwork
from muzero_jax.networks.layers import ACTIVATIONS, BoardLayout, NetworkSizes
from muzero_jax.networks.network import MuZeroNetwork, Network
from muzero_jax.networks.pixels import PixelNetwork
from muzero_jax.networks.value_transform import Support
from muzero_jax.ops import bfloat16_products, precision
from muzero_jax.types import Environment, Model


def make_model(
    environment: Environment,
    support: Support,
    *,
    kind: Literal["mlp", "observation", "tower", "attention", "fully_convolutional", "pixels"],
    width: int,
    num_blocks: int,
    activation: str,
    compute_dtype: str,
    abilities: Abilities = MUZERO,
) -> Model:
    """The model of a game as pure functions; nothing is allocated before `Model.init`.

    Args:
      support: the values that value and reward may take; one bin gives scalar heads.
      kind: the kind of network, as in `NetworkConfig.kind`.
      width: units of the MLPs, channels of a convolution or a token. num_blocks: of h, of g and of f each.
      compute_dtype: as in `NetworkConfig.compute_dtype`; "auto" is the device's, so one model serves all devices.
      abilities: what it can do beyond judging a position.

    Raises:
      ValueError: the kind does not fit the game: it cannot have codes of chance, would imagine observations that are
        not planes of bits, lacks a board, a screen or a symmetry that exchanges the colours (canonical observations).
    """
    shape = environment.observation_shape
    sizes = NetworkSizes(
        num_actions=environment.num_actions,
        num_bins=support.num_bins,
        observation_shape=shape,
        width=width,
        num_blocks=num_blocks,
        activation=ACTIVATIONS[activation],
        dtype=jnp.dtype(jnp.float32),
        abilities=abilities,
    )
    network = _make_network(environment, kind, sizes)

    def here() -> Network:
        """The network in the precision of the device that is traced for."""
        dtype, product_dtype = bfloat16_products.dtypes(precision.resolve(compute_dtype).compute_dtype)
        return network.clone(sizes=sizes._replace(dtype=dtype, product_dtype=product_dtype))

    def init(key: Array):
        observation = jnp.zeros((1, *environment.observation_shape))
        return here().init(key, observation, jnp.zeros((1,), jnp.int32))["params"]

    def apply(method: str, params, *inputs) -> Any:
        return here().apply({"params": params}, *inputs, method=method)

    return Model(
        init=init,
        initial_inference=partial(apply, "initial_inference"),
        recurrent_inference=partial(apply, "recurrent_inference"),
        reconstruct=partial(apply, "reconstruct"),
        to_scalar=partial(value_transform.to_scalar, support=support),
        scalar_loss=partial(value_transform.scalar_loss, support=support),
        layer_bytes=4 * width * math.prod(shape[:2]) if kind in ("tower", "fully_convolutional") else None,
        project=partial(apply, "project") if abilities.projection else None,
        predict_projection=partial(apply, "predict_projection") if abilities.projection else None,
        bound=max(-support.low, support.high),
        num_codes=abilities.num_codes,
        encode_chance=partial(apply, "encode_chance") if abilities.encodes_chance else None,
        follow_code=partial(apply, "follow_code") if abilities.num_codes else None,
        rounds_embeddings=isinstance(network, ImaginingNetwork),
        heads=abilities.heads,
    )


def _make_network(environment: Environment, kind: str, sizes: NetworkSizes) -> Network:
    """The network of a kind; raises ValueError as `make_model` does."""
    shape = sizes.observation_shape
    abilities = sizes.abilities
    if kind in ("mlp", "tower", "attention"):
        make = ChanceNetwork if abilities.num_codes else MuZeroNetwork
        return make(sizes, None if kind == "mlp" else _board_of(environment, kind), attends=kind == "attention")
    if abilities.num_codes:
        raise ValueError(
            f"--network.kind {kind} predicts one position for each move, but chance makes several possible; choose "
            "--network.kind mlp or tower, or --network.chance-codes 0"
        )
    if kind == "pixels":
        if len(shape) != 3:
            raise ValueError(
                f"--network.kind pixels sees a screen [height, width, planes], but {environment.name} observes "
                f"{list(shape)}; choose --network.kind mlp"
            )
        return PixelNetwork(sizes, None)
    board = None if kind == "observation" else _board_of(environment, kind)
    imagines = abilities.dynamics or kind == "observation"
    if imagines and not shows_planes_of_bits(environment):
        or_rules = "" if board is None else ", or add --model rules, with which nothing is predicted"
        raise ValueError(
            f"--network.kind {kind} predicts planes of bits, but {environment.name} observes something else; "
            f"choose --network.kind mlp or tower{or_rules}"
        )
    swap = colour_swap_of(environment) if abilities.canonical else None
    return ObservationNetwork(sizes, swap) if board is None else ConvolutionalNetwork(sizes, swap, board)


def _board_of(environment: Environment, kind: str) -> BoardLayout:
    if environment.board is None:
        raise ValueError(f"--network.kind {kind} needs a board, which {environment.name} does not have; choose mlp")
    return BoardLayout(environment.board.shape, tuple(int(cell) for cell in environment.board.action_location))


def shows_planes_of_bits(environment: Environment) -> bool:
    """Whether an observation is a board of bools, which a network can imagine as such."""
    seen = observation_of(environment)
    return seen.dtype == bool and seen.ndim == 3
