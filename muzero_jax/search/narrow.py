"""Trees with room for only the likeliest K actions of a node. An option, because it changes what is found.

A tree's size is its edges: Go 19x19 has 362 actions a node, of which 16 simulations take 16 at most. Here a search sees
a world of K actions, *slots*; which action each slot of a node stands for travels with the embedding. So any search can
be narrowed, and none knows of it. It saves memory on every device; its speed was never timed on an accelerator.

At the root of self-play the K are drawn without replacement, as likely as the prior has them. Otherwise a network that
knows nothing yet would only ever try the first K. Search says nothing of the other actions: they keep their prior in
the policy.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from muzero_jax.search.policies import masked_logits
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.search.tree import Tree
from muzero_jax.types import Params, SearchFn, SearchOutput, SearchRoots


def num_slots(max_children: int | None, num_actions: int) -> int:
    """How many actions a node has room for: `max_children`, or all of them."""
    return min(max_children or num_actions, num_actions)


def narrow(make_search: Callable[[Simulator], SearchFn], world: Simulator, slots: int, *, noise: bool) -> SearchFn:
    """The search that `make_search` makes, in a `world` with that many actions a node; at the root legal ones first.

    Slots are in the order of their actions, so without `noise` a slot for every action changes nothing. ValueError if
    `world` has chance nodes.
    """
    if world.num_outcomes is not None:
        raise ValueError(
            "search.max_children would leave out outcomes of chance, and change the odds; "
            "a game of chance needs room for all of them"
        )

    def expand(params: Params, key: Array, slot: Array, embedding: tuple[Any, Array]) -> Node:
        inner, actions = embedding
        node = world.expand(params, key, _entry(actions, slot), inner)
        kept = _highest(node.prior, slots)
        prior = _entries(node.prior, kept)
        return node._replace(prior=prior / prior.sum(-1, keepdims=True), embedding=(node.embedding, kept))

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        legal_action_mask = roots.legal_action_mask
        root = world.root(params, roots)
        logits = masked_logits(root.prior, legal_action_mask)
        prior = jax.nn.softmax(logits)
        if noise:
            key, slot_key = jax.random.split(key)
            drawn = logits + jax.random.gumbel(slot_key, logits.shape)
            logits = jnp.where(legal_action_mask, drawn, logits)
        kept = _highest(logits, slots)
        known = _entries(prior, kept)
        share = known.sum(-1, keepdims=True)
        root = root._replace(prior=known / share, embedding=(root.embedding, kept))
        narrowed = make_search(Simulator(lambda params, roots: root, expand))
        found = narrowed(params, key, roots._replace(legal_action_mask=_entries(legal_action_mask, kept)))
        policy = _put(prior, kept, share * found.policy)
        tree = _widen(found.tree, legal_action_mask.shape[-1]) if isinstance(found.tree, Tree) else None
        return SearchOutput(_entry(kept, found.action), policy, found.value, tree)

    return search


def _highest(scores: Float[Array, "B A"], slots: int) -> Int[Array, "B K"]:
    """The actions with the highest scores, in ascending order; the first among equals."""
    return jnp.sort(jax.lax.top_k(scores, slots)[1], axis=-1)


def _widen(tree: Tree, num_actions: int) -> Tree:
    """The tree by actions; it costs nothing in a program that does not return it."""
    embedding, kept = tree.embedding

    def spread(x):
        return _put(jnp.zeros((*x.shape[:-1], num_actions), x.dtype), kept, x)

    edges = {name: spread(getattr(tree, name)) for name in ("prior", "visits", "q", "children")}
    kept_by_parent = kept[tree.parent, jnp.arange(tree.parent.shape[1])]
    return tree._replace(**edges, action=_entry(kept_by_parent, tree.action), embedding=embedding)


def _put(rows: Array, kept: Array, values: Array) -> Array:
    """`rows` [..., A] with `values` [..., K] at the kept actions."""
    return jnp.put_along_axis(rows, kept, values, axis=-1, inplace=False)


def _entries(rows: Array, kept: Array) -> Array:
    """The entries of rows [..., A] at the kept actions [..., K]."""
    return jnp.take_along_axis(rows, kept, axis=-1)


def _entry(rows: Array, index: Array) -> Array:
    """Each row's [..., A] entry at `index` [...]."""
    return _entries(rows, index[..., None])[..., 0]
