"""A model for search in which no value leaves the range of a game's returns.

A learned model may predict the reward of a win and still value what comes after it: reward + discount x value of a
winning move was 1.85 although a return is at most 1. Therefore each node also carries the range in which its value
keeps reward + discount x value within bounds at *every* node above it, and its value is clipped to that range. All
values that are backed up then lie within bounds, and so do their means. This is `clip(reward + discount x value)` at
every level of the backup, but done when a node is made, so that it bounds any search, mctx's too.

Correct predictions are not changed, because a right reward and a right value never leave the range.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.types import Params, SearchRoots


def bounded(simulator: Simulator, bound: float) -> Simulator:
    """`simulator` with clipped values, for a game whose returns lie in [-bound, bound] from every position on."""

    def root(params: Params, roots: SearchRoots) -> Node:
        node = simulator.root(params, roots)
        highest = jnp.full_like(node.value, bound)
        return _within(node, -highest, highest)

    def expand(params: Params, key: Array, action: Array, embedding: tuple[Any, Array, Array]) -> Node:
        inner, low, high = embedding
        node = simulator.expand(params, key, action, inner)
        if node.chance_parent is not None:
            afterstate = below(node.chance_parent.afterstate, low, high)
            ends = zip(afterstate.embedding[1:], (low, high), strict=True)
            low, high = (jnp.where(node.chance_parent.is_passed, own, above) for own, above in ends)
            node = node._replace(chance_parent=node.chance_parent._replace(afterstate=afterstate))
        return below(node, low, high)

    def below(node: Node, low: Array, high: Array) -> Node:
        """`node` with clipped reward and value, below a node whose value must stay in [low, high]."""
        reach = jnp.abs(node.discount) * bound  # no value could make up for a reward beyond that
        reward = jnp.clip(node.reward, low - reach, high + reach)
        divisor = jnp.where(node.discount == 0, 1.0, node.discount)  # with discount 0 any value will do
        ends = (low - reward) / divisor, (high - reward) / divisor
        lowest, highest = (jnp.clip(pick(*ends), -bound, bound) for pick in (jnp.minimum, jnp.maximum))
        return _within(node._replace(reward=reward), lowest, highest)

    return simulator._replace(root=root, expand=expand)


def _within(node: Node, low: Float[Array, " B"], high: Float[Array, " B"]) -> Node:
    """The node with its value clipped to [low, high], and with this range in its embedding."""
    return node._replace(value=jnp.clip(node.value, low, high), embedding=(node.embedding, low, high))
