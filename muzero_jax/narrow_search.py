"""Trees with room for a few actions a node: its likeliest K. An option, because it changes what is found.

A tree's size is its edges: Go 19x19 has 362 actions a node, of which 16 simulations take 16 at most. Here a search sees
a world of K actions, *slots*; which action each slot of a node stands for travels with the embedding. So any search can
be narrowed and none knows of it. An action outside the root's K gets no policy.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.simulator import Node, Simulator
from muzero_jax.tree_search import Tree
from muzero_jax.types import Params, SearchFn, SearchOutput


def narrow(make_search: Callable[[Simulator], SearchFn], world: Simulator, width: int) -> SearchFn:
    """The search that `make_search` makes, in a `world` with `width` actions a node, at the root legal ones first.

    Slots are in the order of their actions, so with a slot for every action nothing changes.
    """

    def expand(params: Params, slot: Array, embedding: tuple[Any, Array]) -> Node:
        inner, actions = embedding
        node = world.expand(params, _take(actions, slot), inner)
        kept = _likeliest(node.prior, width)
        prior = _take_row(node.prior, kept)
        return node._replace(prior=prior / prior.sum(-1, keepdims=True), embedding=(node.embedding, kept))

    def search(params: Params, key: Array, observation: Any, legal_action_mask: Bool[Array, "B A"]) -> SearchOutput:
        root = world.root(params, observation)
        kept = _likeliest(jnp.where(legal_action_mask, root.prior, -1.0), width)
        root = root._replace(prior=_take_row(root.prior, kept), embedding=(root.embedding, kept))
        narrowed = make_search(Simulator(lambda params, observation: root, expand))
        found = narrowed(params, key, observation, _take_row(legal_action_mask, kept))
        num_actions = legal_action_mask.shape[-1]
        tree = _widen(found.tree, num_actions) if isinstance(found.tree, Tree) else None
        return SearchOutput(_take(kept, found.action), _spread(found.policy, kept, num_actions), found.value, tree)

    return search


def _likeliest(prior: Float[Array, "B A"], width: int) -> Int[Array, "B K"]:
    """The actions of the highest prior, in ascending order; of equals the first."""
    return jnp.sort(jax.lax.top_k(prior, width)[1], axis=-1)


def _widen(tree: Tree, num_actions: int) -> Tree:
    """The tree by actions; it costs nothing in a program that does not return it."""
    embedding, kept = tree.embedding
    edges = {name: _spread(getattr(tree, name), kept, num_actions) for name in ("prior", "visits", "q", "children")}
    kept_by_parent = kept[tree.parent, jnp.arange(tree.parent.shape[1])]
    return tree._replace(**edges, action=_take(kept_by_parent, tree.action), embedding=embedding)


def _spread(slots: Array, kept: Array, num_actions: int) -> Array:
    """[..., K] by slot as [..., A] by action, 0 where there is no slot."""
    empty = jnp.zeros((*slots.shape[:-1], num_actions), slots.dtype)
    return jnp.put_along_axis(empty, kept, slots, axis=-1, inplace=False)


def _take_row(rows: Array, kept: Array) -> Array:
    return jnp.take_along_axis(rows, kept, axis=-1)


def _take(rows: Array, index: Array) -> Array:
    return _take_row(rows, index[..., None])[..., 0]
