"""Compiled searches by budget, shared by all who ask one agent.

XLA compiles one program per budget, which takes seconds. Search has no noise, so an answer depends only on the position
and the budget.
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from muzero_jax.agent.analysis import Analysis
from muzero_jax.search.simulator import policy
from muzero_jax.search.tree import Tree
from muzero_jax.types import Array, EnvState, Model, Params, SearchFn, SearchOutput, SearchRoots

MOST_COMPILED = 16
"""Programs that are kept; the least recently used one is dropped, because callers may ask for many budgets."""


def policy_head_search(model: Model) -> SearchFn:
    """A search without simulations: the network's policy over legal actions, its likeliest action, and its value."""

    def look(params, key, position):
        output = model.initial_inference(params, position.observation)
        prior = policy(output, position.legal_action_mask)
        best = jnp.argmax(jnp.where(position.legal_action_mask, output.policy_logits, -jnp.inf), axis=-1)
        return SearchOutput(best.astype(jnp.int32), prior, model.to_scalar(output.value_logits))

    return look


class Searcher:
    """Searches single positions and batches; each budget is compiled when it is first used.

    Args:
      make_search: budget -> search.
      head: the network without search, as a `SearchFn`.
      most_value: the largest return that the network can predict; values of single positions are clipped to it.
    """

    def __init__(
        self, make_search: Callable[[int], SearchFn], head: SearchFn, params: Params, *, most_value: float = 1.0
    ):
        self._make_search = make_search
        self._head = head
        self._params = params
        self.most_value = most_value
        self._programs: dict[tuple[Callable, int], Callable] = {}  # by kind and budget, most recently used last
        self._look = jax.jit(head)

    def search(self, roots: SearchRoots, num_simulations: int) -> SearchOutput:
        """Searches B positions."""
        return self._program(self._of_many, num_simulations)(self._params, jax.random.key(0), roots)

    def analyse(self, state: EnvState, legal_action_mask: Bool[Any, " A"], num_simulations: int) -> Analysis:
        """Searches one position, with these moves at its root."""
        think = self._program(self._of_one, num_simulations)
        start = time.perf_counter()
        answer, tree = think(self._params, state, jnp.asarray(legal_action_mask))
        action, policy, value, prior, prior_value = jax.device_get(answer)
        seconds = time.perf_counter() - start
        return Analysis(
            action=int(action),
            policy=policy,
            value=float(np.clip(value, -self.most_value, self.most_value)),
            prior=prior,
            prior_value=float(np.clip(prior_value, -self.most_value, self.most_value)),
            num_simulations=num_simulations,
            seconds=seconds,
            tree=tree,
            most_value=self.most_value,
        )

    def is_compiled(self, num_simulations: int) -> bool:
        """Whether `analyse` need not compile for this budget."""
        return (self._of_one, num_simulations) in self._programs

    def prior(self, state: EnvState) -> Float[np.ndarray, " A"]:
        """The network's policy over the legal actions, without search."""
        roots = _roots(state, state.legal_action_mask)
        return np.asarray(self._look(self._params, jax.random.key(0), roots).policy[0])

    def _program(self, kind: Callable[[SearchFn], Callable], num_simulations: int) -> Callable:
        """A program that is kept, or a new one that JAX compiles at its first call."""
        name = kind, num_simulations
        program = self._programs.pop(name, None) or jax.jit(kind(self._make_search(num_simulations)))
        self._programs[name] = program
        for oldest in list(self._programs)[:-MOST_COMPILED]:
            del self._programs[oldest]
        return program

    def _of_many(self, search: SearchFn) -> SearchFn:
        return search

    def _of_one(self, search: SearchFn) -> Callable:
        def think(params: Params, state: EnvState, mask: Array) -> tuple[Any, Tree | None]:
            asked = params, jax.random.key(0), _roots(state, mask)
            found = search(*asked)
            first_sight = self._head(*asked)
            tree = found.tree._replace(embedding=None) if isinstance(found.tree, Tree) else None
            answer = found.action, found.policy, found.value, first_sight.policy, first_sight.value
            return jax.tree.map(lambda x: x[0], answer), tree

        return think


def _roots(state: EnvState, legal_action_mask: Any) -> SearchRoots:
    """One position as a batch."""
    states, mask = jax.tree.map(lambda x: jnp.asarray(x)[None], (state, legal_action_mask))
    return SearchRoots(states.observation, mask, states)
