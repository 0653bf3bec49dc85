"""A model for search in which no value leaves the range of a game's returns.

A learned model pays the reward of a win, and goes on valuing what comes after it: reward + discount x value of a won
move was 1.85 where a return is at most 1. So each node here carries, beside its embedding, the range in which its value
keeps reward + discount x value within bounds at *every* node above it, and its value is brought into that range.
Whatever is backed up then lies within bounds, and so do means of it. That is `clip(reward + discount x value)` at every
level of the backup, but done where a node is made, so that it bounds any search, mctx's too.

What a model says of positions that go on is left as it is: a right reward and a right value never leave the range.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.types import Params, SearchRoots


def bounded(simulator: Simulator, bound: float) -> Simulator:
    """`simulator`, for a game whose returns lie in [-bound, bound] from every position on."""

    def root(params: Params, roots: SearchRoots) -> Node:
        node = simulator.root(params, roots)
        highest = jnp.full_like(node.value, bound)
        return _within(node, -highest, highest)

    def expand(params: Params, key: Array, action: Array, embedding: tuple[Any, Array, Array]) -> Node:
        inner, low, high = embedding
        node = simulator.expand(params, key, action, inner)
        if node.passed is not None:
            afterstate = below(node.passed.afterstate, low, high)
            ends = zip(afterstate.embedding[1:], (low, high), strict=True)
            low, high = (jnp.where(node.passed.is_passed, own, above) for own, above in ends)
            node = node._replace(passed=node.passed._replace(afterstate=afterstate))
        return below(node, low, high)

    def below(node: Node, low: Array, high: Array) -> Node:
        """The node below one whose value must stay in [low, high]."""
        reach = jnp.abs(node.discount) * bound  # beyond it no value could make up for the reward
        reward = jnp.clip(node.reward, low - reach, high + reach)
        divisor = jnp.where(node.discount == 0, 1.0, node.discount)  # a value that counts nothing may be any
        ends = (low - reward) / divisor, (high - reward) / divisor
        lowest, highest = (jnp.clip(pick(*ends), -bound, bound) for pick in (jnp.minimum, jnp.maximum))
        return _within(node._replace(reward=reward), lowest, highest)

    return simulator._replace(root=root, expand=expand)


def _within(node: Node, low: Float[Array, " B"], high: Float[Array, " B"]) -> Node:
    """The node with its value in [low, high], which it carries."""
    return node._replace(value=jnp.clip(node.value, low, high), embedding=(node.embedding, low, high))
