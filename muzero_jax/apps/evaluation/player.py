"""The record of a source of moves, and the keys from which chance answers them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jax import Array

from muzero_jax.types import EnvState, Params


class Player(NamedTuple):
    """A source of moves. Deterministic given `key`; must only return legal actions."""

    name: str
    act: Callable[[Params, Array, EnvState], Array]  # (params or None, key, states [B, ...]) -> action [B] int32
    stochastic: bool = False  # its moves depend on the key


_OF_CHANCE = 0x636861


def keys_of_chance(key: Array, num_games: int) -> Array:
    """A key for each game's chance in a move, apart from what players draw from `key`; dead code without chance."""
    return jax.random.split(jax.random.fold_in(key, _OF_CHANCE), num_games)
