"""Batched Monte-Carlo tree search that stays on the device: B trees grow in lockstep, one new node each a simulation.

Search is memory traffic around a network call, so the layout decides its speed. Arrays lie [node, game, ...]: every
game's new node has the index `simulation + 1`, and an expansion is one contiguous write. Nothing is `vmap`ped over a
loop, which would copy the whole tree at every level; a level of the descent gathers one row a game, one of the backup
scatters one element a game. The walk samples no random numbers. Trees equal mctx's node for node, except for ties
within rounding.

How a node chooses is passed in as `SearchRules`, so Gumbel and PUCT, single-player and two-player games share this
file.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from muzero_jax.search.rules import Row, SearchRules, with_chance_nodes
from muzero_jax.search.simulator import ChanceParent, Node, Simulator
from muzero_jax.types import Params

ROOT = 0
UNVISITED = 0
"""In `children`: no child. No action leads back to the root, so its index is free."""


class Tree(NamedTuple):
    """B trees of up to M = num_simulations + 1 nodes; node 0 is the root, node i + 1 that of simulation i.

    A tree that passes afterstates has M = 2 num_simulations + 1: node 2 i + 2 is that of simulation i, and node 2 i + 1
    the afterstate before it, or unused. At a chance node the first C of the A columns are outcomes.
    """

    prior: Array  # [M, B, A]
    visits: Array  # [M, B, A] float32, simulations that took the action
    q: Array  # [M, B, A] reward + discount * value of the child, for the player to move at the node; 0 where unvisited
    children: Array  # [M, B, A] int32, UNVISITED or the child's index
    raw_value: Array  # [M, B] the network's value
    value: Array  # [M, B] mean over the node's own evaluation and all simulations through it
    count: Array  # [M, B] float32, how many these are
    reward: Array  # [M, B]
    discount: Array  # [M, B]
    parent: Array  # [M, B] int32
    action: Array  # [M, B] int32, that the parent took
    embedding: Any  # leaves [M, B, ...]
    is_chance: Array | None = None  # [M, B] bool, True where chance acts; None in a game without chance nodes


def grow(
    root: Node,
    simulator: Simulator,
    params: Params,
    rules: SearchRules,
    num_simulations: int | Array,
    key: Array,
    *,
    most_simulations: int | None = None,
) -> Tree:
    """Runs the simulations (Schrittwieser et al. 2020, appendix B): descend by the rules, expand, back the value up.

    Args:
      root: its prior [B, A] is over actions only, also in a game with chance.
      params: of the simulator.
      key: for the expansions; simulation i gets fold_in(key, i).
      most_simulations: the simulations for which the tree has room, if `num_simulations` is an array.
    """
    root, rules = with_chance_nodes(root, rules, simulator.num_outcomes)
    nodes_each = 2 if simulator.passes_afterstates else 1

    def simulate(simulation: Array, tree: Tree) -> Tree:
        with jax.named_scope("descend"):
            parent, action = _descend(tree, rules.root(row_of(tree), simulation), rules)
        with jax.named_scope("expand"):
            games = jnp.arange(action.shape[0])
            embedding = jax.tree.map(lambda x: x[parent, games], tree.embedding)
            node = simulator.expand(params, jax.random.fold_in(key, simulation), action, embedding)
            leaf = nodes_each * (simulation + 1)
            if node.chance_parent is not None:
                tree, parent, action = _add_chance_parent(tree, leaf - 1, node.chance_parent, parent, action)
            tree = _add(tree, leaf, node, parent, action)
        with jax.named_scope("backup"):
            return _backup(tree, leaf)

    if most_simulations is None:
        assert isinstance(num_simulations, int)
        most_simulations = num_simulations
    return lax.fori_loop(0, num_simulations, simulate, _plant(root, nodes_each * most_simulations + 1))


def row_of(tree: Tree, node: Array | None = None) -> Row:
    """The statistics of node [B] of every tree; by default those of the root, which needs no gather."""
    index = ROOT if node is None else (node, jnp.arange(len(node)))
    return Row(*jax.tree.map(lambda x: x[index], [getattr(tree, field) for field in Row._fields]))


def _plant(root: Node, num_nodes: int) -> Tree:
    """Trees that have only their root."""

    def stack(x):
        return jnp.zeros((num_nodes, *x.shape), x.dtype).at[ROOT].set(x)

    per_node = jnp.zeros((num_nodes, *root.value.shape))
    per_action = jnp.zeros((num_nodes, *root.prior.shape))
    return Tree(
        prior=stack(root.prior),
        visits=per_action,
        q=per_action,
        children=per_action.astype(jnp.int32),
        raw_value=stack(root.value),
        value=stack(root.value),
        count=per_node.at[ROOT].set(1),
        reward=per_node,
        discount=per_node,
        parent=per_node.astype(jnp.int32),
        action=per_node.astype(jnp.int32),
        embedding=jax.tree.map(stack, root.embedding),
        is_chance=jax.tree.map(stack, root.is_chance),
    )


def _descend(tree: Tree, root_action: Array, rules: SearchRules) -> tuple[Array, Array]:
    """(node [B], action [B]) at which a descent meets an action that was never taken, or that ends the game."""
    games = jnp.arange(root_action.shape[0])

    def enter(node, action):
        child = tree.children[node, games, action]
        if rules.stop_at_ends:  # each visit gives the end a new node; else they would grow a chain of ends
            child = jnp.where(tree.discount[child, games] == 0, UNVISITED, child)
        return child

    def follow(carry):
        node, action, child = carry
        arrived = child == UNVISITED
        chosen = rules.below(row_of(tree, child))
        node = jnp.where(arrived, node, child)
        action = jnp.where(arrived, action, chosen)
        return node, action, jnp.where(arrived, UNVISITED, enter(child, chosen))

    root = jnp.full_like(root_action, ROOT)
    start = root, root_action, enter(root, root_action)
    node, action, _ = lax.while_loop(lambda carry: (carry[2] != UNVISITED).any(), follow, start)
    return node, action


def _add_chance_parent(
    tree: Tree, index: Array, before: ChanceParent, parent: Array, action: Array
) -> tuple[Tree, Array, Array]:
    """The trees with an afterstate as node `index`, and the edge (parent [B], action [B]) to the node after it.

    If none was passed, that node keeps its own edge and replaces the child that is set here.
    """
    tree = _add(tree, index, before.afterstate, parent, action, count=0)
    is_passed = before.is_passed
    return tree, jnp.where(is_passed, index, parent), jnp.where(is_passed, before.outcome, action)


def _add(tree: Tree, index: Array, node: Node, parent: Array, action: Array, count: int = 1) -> Tree:
    """Writes node `index` of every tree; its statistics are zero already. `count` is 0 if the node has no value."""
    games = jnp.arange(parent.shape[0])

    def write(nodes, new):
        return lax.dynamic_update_index_in_dim(nodes, new, index, axis=0)

    return tree._replace(
        prior=write(tree.prior, node.prior),
        children=tree.children.at[parent, games, action].set(index),
        raw_value=write(tree.raw_value, node.value),
        value=write(tree.value, node.value),
        count=write(tree.count, jnp.full_like(node.value, count)),
        reward=write(tree.reward, node.reward),
        discount=write(tree.discount, node.discount),
        parent=write(tree.parent, parent),
        action=write(tree.action, action),
        embedding=jax.tree.map(write, tree.embedding, node.embedding),
        is_chance=jax.tree.map(write, tree.is_chance, node.is_chance),
    )


def _backup(tree: Tree, leaf: Array) -> Tree:
    """Adds the value of node `leaf` of every tree to all nodes above it, each for the player to move there."""
    num_nodes, num_games = tree.parent.shape
    games = jnp.arange(num_games)

    def climb(carry):
        visits, q, value, count, node, node_value, outcome = carry
        reward = tree.reward[node, games]
        discount = tree.discount[node, games]
        outcome = reward + discount * outcome
        # A game whose root is reached waits for the others: it writes past the end, where writes are dropped.
        parent = jnp.where(node == ROOT, num_nodes, tree.parent[node, games])
        edge = parent, games, tree.action[node, games]
        old_value = value[parent, games]
        old_count = count[parent, games]
        parent_value = (old_value * old_count + outcome) / (old_count + 1)
        return (
            visits.at[edge].add(1, mode="drop"),
            q.at[edge].set(reward + discount * node_value, mode="drop"),
            value.at[parent, games].set(parent_value, mode="drop"),
            count.at[parent, games].set(old_count + 1, mode="drop"),
            jnp.where(node == ROOT, ROOT, parent),
            parent_value,
            outcome,
        )

    node = jnp.full(num_games, leaf)
    leaf_value = tree.value[leaf]
    start = tree.visits, tree.q, tree.value, tree.count, node, leaf_value, leaf_value
    visits, q, value, count, *_ = lax.while_loop(lambda carry: (carry[4] != ROOT).any(), climb, start)
    return tree._replace(visits=visits, q=q, value=value, count=count)
