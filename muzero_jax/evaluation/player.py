"""The record of a source of moves."""

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from muzero_jax.types import EnvState, Params


class Player(NamedTuple):
    """A source of moves. Deterministic given `key`; must only return legal actions."""

    name: str
    act: Callable[[Params, Array, EnvState], Array]  # (params or None, key, states [B, ...]) -> action [B] int32
