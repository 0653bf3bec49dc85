"""Canonical observations: if the player to move has the second colour, a symmetry that exchanges the colours is
applied.

In Hex the player to move joins top and bottom or left and right, and a plane of the observation says which. A
transposition turns one into the other, so a network has to learn only one of the two.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.ops.look_ups import permuted
from muzero_jax.types import Environment


class ColourSwap(NamedTuple):
    """A symmetry that exchanges the colours and is its own inverse; a plane of the observation says when to use it."""

    observation: tuple[int, ...]  # [O], where each entry of the swapped observation comes from
    flipped: tuple[bool, ...]  # [O], entries that it negates
    action: tuple[int, ...]  # [A]
    flag: int  # an entry of the flattened observation: True if the colours are to be swapped

    def is_needed(self, bits: Array) -> Bool[Array, " N"]:
        """Whether the player to move in each position (observations [N, ...]) has the second colour."""
        return bits.reshape(bits.shape[0], -1)[:, self.flag] > 0

    def bits(self, bits: Array, needed: Bool[Array, " N"]) -> Array:
        """Observations [N, ...] of zeros and ones, swapped where it is `needed`."""
        return self._moved(bits, needed, lambda x: 1 - x)

    def logits(self, logits: Array, needed: Bool[Array, " N"]) -> Array:
        """Logits of observations, swapped likewise."""
        return self._moved(logits, needed, jnp.negative)

    def renamed(self, action: Int[Array, " N"]) -> Int[Array, " N"]:
        """The actions' numbers after the swap."""
        return jnp.asarray(self.action)[action]

    def by_action(self, numbers: Float[Array, "N A"], needed: Bool[Array, " N"]) -> Float[Array, "N A"]:
        """A number for each action, swapped likewise."""
        return jax.vmap(jnp.where)(needed, permuted(numbers, self.action), numbers)

    def _moved(self, x, needed, negate):
        flat = x.reshape(x.shape[0], -1)
        moved = permuted(flat, self.observation)
        moved = jnp.where(np.asarray(self.flipped), negate(moved), moved)
        return jax.vmap(jnp.where)(needed, moved, flat).reshape(x.shape)


def colour_swap_of(environment: Environment) -> ColourSwap:
    """The first symmetry that exchanges the colours and is its own inverse; ValueError for a game that has none."""
    if environment.board is not None:
        for observation, flipped, action in zip(*map(np.asarray, environment.board.symmetries[:3]), strict=True):
            if flipped.any() and _undoes_itself(observation, flipped, action):
                flag = int(flipped.argmax())
                return ColourSwap(tuple(observation.tolist()), tuple(flipped.tolist()), tuple(action.tolist()), flag)
    raise ValueError(
        "--network.canonical needs a symmetry that exchanges the colours and is its own inverse, but "
        f"{environment.name} has none; leave the flag out"
    )


def _undoes_itself(
    observation: Int[np.ndarray, " O"], flipped: Bool[np.ndarray, " O"], action: Int[np.ndarray, " A"]
) -> bool:
    """Whether a symmetry applied twice is the identity, also in the entries that it negates."""
    is_back = all(np.array_equal(each[each], np.arange(each.size)) for each in (observation, action))
    return is_back and np.array_equal(flipped[observation], flipped)
