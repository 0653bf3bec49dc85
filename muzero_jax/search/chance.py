"""Chance nodes in the trees of any search: its own rule chooses at decisions, and chance's rule at afterstates.

An afterstate takes the outcome with the largest p / (n + 1), as mctx does: nothing is drawn. After N visits an outcome
was taken more than N p - 1 times, and at most (N + C - 1) p times (D'Hondt's seats). Rows of such a tree have
W = max(A, C) columns: the first A of a decision are its actions, the first C of an afterstate its outcomes. A search
sees the actions alone. Without chance nodes nothing here adds to a program.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from muzero_jax.search.simulator import Node, Simulator, padded
from muzero_jax.search.tree import Grow, Row, Rules, Tree, first_argmax
from muzero_jax.types import Params


def grown(
    grow: Grow, simulator: Simulator, params: Params, root: Node, rules: Rules, num_simulations: int, key: Array
) -> Tree:
    """The trees that `grow` makes from `root` by `rules`, with chance's own rule at the nodes where chance acts."""
    expand = partial(simulator.expand, params)
    if simulator.num_outcomes is None:
        return grow(root, expand, rules, num_simulations, key)
    num_actions = root.prior.shape[-1]
    root = root._replace(prior=padded(root.prior, max(num_actions, simulator.num_outcomes)))
    if simulator.passes_afterstates:
        grow = partial(grow, passes_afterstates=True)
    return grow(root, expand, _with_chance(rules, num_actions), num_simulations, key)


def _with_chance(rules: Rules, num_actions: int) -> Rules:
    """The rules, which see actions alone, for trees with chance nodes below a decision at the root."""

    def below(row: Row) -> Array:
        is_chance = row.is_chance
        assert is_chance is not None
        # What the rule says of a chance node is thrown away, but must not be NaN: there is a prior to divide by.
        decision = of_actions(row._replace(prior=jnp.where(is_chance[:, None], 1.0, row.prior)), num_actions)
        return jnp.where(is_chance, least_taken(row), rules.below(decision))

    return rules._replace(
        root=lambda row, simulation: rules.root(of_actions(row, num_actions), simulation), below=below
    )


def least_taken(row: Row) -> Int[Array, " B"]:
    """The outcome that was taken least for its probability: the largest p / (n + 1), the first among equals."""
    return first_argmax(row.prior / (row.visits + 1))


def of_actions(row: Row, num_actions: int) -> Row:
    """The row of a decision without the columns beyond its actions."""
    edges = {name: columns(getattr(row, name), num_actions) for name in ("prior", "visits", "q")}
    return row._replace(**edges)


def columns(rows: Float[Array, "... W"], count: int) -> Float[Array, "... n"]:
    """The first columns; the rows themselves where there are no others."""
    return rows if rows.shape[-1] == count else rows[..., :count]
