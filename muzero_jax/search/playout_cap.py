"""Playout-cap randomisation: a few moves are searched in full and learned from, the others cheaply (Wu 2019).

It plays more games for the same FLOPs: values learn from all of their positions, policies only from those searched in
full. (In KataGo, arXiv 1902.10565, section 3.1, nothing is learned from cheap searches.) The games of a batch are
searched in full or cheaply together, because they share one search.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.types import Params, SearchFn, SearchOutput, SearchRoots


def mix(full: SearchFn, cheap: SearchFn, *, share: float) -> SearchFn:
    """The search that is `full` with probability `share` and otherwise `cheap`; it returns no tree."""

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        choice_key, search_key = jax.random.split(key)
        is_full = jax.random.bernoulli(choice_key, share)
        found = jax.lax.cond(is_full, _without_tree(full), _without_tree(cheap), params, search_key, roots)
        return found._replace(in_full=jnp.full(found.action.shape, is_full))

    return search


def _without_tree(search: SearchFn) -> SearchFn:
    return lambda params, key, roots: search(params, key, roots)._replace(tree=None)
