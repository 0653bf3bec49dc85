"""How a search chooses at a node: by the rules of a policy at a decision, and by chance's own rule at an afterstate.

A rule sees a decision as the row of its actions. A game with C outcomes of chance also has afterstates in its trees, so
rows have W = max(A, C) columns: the first A of a decision are its actions, the first C of an afterstate its outcomes.
`with_chance_nodes` adapts any rules to such trees.

An afterstate takes the outcome with the largest p / (n + 1), as in mctx, so nothing is sampled. After N visits an
outcome was taken more than N p - 1 times, and at most (N + C - 1) p times (D'Hondt's seats).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from muzero_jax.ops.reductions import first_argmax
from muzero_jax.search.simulator import Node, padded


class Row(NamedTuple):
    """One node a game, as a rule sees it; the fields of `Tree`, without the node's axis."""

    prior: Array  # [B, A]
    visits: Array  # [B, A]
    q: Array  # [B, A]
    raw_value: Array  # [B]
    value: Array  # [B]
    is_chance: Array | None = None  # [B]


Rule = Callable[[Row], Array]
"""Row -> action [B]."""
RootRule = Callable[[Row, Array], Array]
"""(Row, index of the simulation) -> action [B], legal."""


class SearchRules(NamedTuple):
    """How a search chooses."""

    root: RootRule
    below: Rule  # at all other nodes
    stop_at_ends: bool = False  # do not search beyond a discount of 0, which ends the game; mctx does


def with_chance_nodes(root: Node, rules: SearchRules, num_outcomes: int | None) -> tuple[Node, SearchRules]:
    """The root and the rules for trees with chance nodes; unchanged without outcomes of chance."""
    if num_outcomes is None:
        return root, rules
    num_actions = root.prior.shape[-1]

    def at_root(row: Row, simulation: Array) -> Array:
        return rules.root(of_actions(row, num_actions), simulation)

    wide = root._replace(prior=padded(root.prior, max(num_actions, num_outcomes)))
    return wide, rules._replace(root=at_root, below=or_chance(rules.below, num_actions))


def or_chance(rule: Rule, num_actions: int) -> Rule:
    """A rule that is `rule` at a decision and `least_taken` at a chance node."""

    def choose(row: Row) -> Array:
        is_chance = row.is_chance
        assert is_chance is not None
        # The rule's result at a chance node is ignored but must not be NaN, so it gets a prior to divide by.
        decision = of_actions(row._replace(prior=jnp.where(is_chance[:, None], 1.0, row.prior)), num_actions)
        return jnp.where(is_chance, least_taken(row), rule(decision))

    return choose


def least_taken(row: Row) -> Int[Array, " B"]:
    """The outcome that was taken least for its probability: the largest p / (n + 1), the first among equals."""
    return first_argmax(row.prior / (row.visits + 1))


def of_actions(row: Row, num_actions: int) -> Row:
    """The row of a decision without the columns beyond its actions."""
    if row.prior.shape[-1] == num_actions:
        return row
    return row._replace(**{name: getattr(row, name)[:, :num_actions] for name in ("prior", "visits", "q")})
