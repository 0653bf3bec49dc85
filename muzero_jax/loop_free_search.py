"""`tree_search.grow` without a loop inside a simulation: the same trees, by a number of kernels that no depth changes.

An accelerator pays for starting each kernel and, where a loop asks whether to go on, for waiting. So nothing is walked:

- Each node remembers which action its rule takes and which node following the rules from here ends at. A descent is the
  root's rule and two look-ups.
- Each node remembers its path from the root. A backup looks the path up, works on all levels of it side by side, and
  writes all levels at once.
- Only on that path have statistics changed. So only its nodes are asked anew for their actions, all in one batch, and
  where these end is found from the new leaf upwards: off the path, what a child remembers still holds.

Every path has room for `MAX_DEPTH` moves, used or not, and a simulation works on all of it. A simulation that would go
deeper looks at the last node again, as with mctx's `max_depth`, and puts a new node in its place; where none would, the
trees are the same. On a CPU, where kernels cost little to start, this costs more than it saves (docs/performance.md).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from muzero_jax import search
from muzero_jax.simulator import Node
from muzero_jax.tree_search import ROOT, UNVISITED, Expand, FirstRound, RootRule, Rule, Tree, add, begin, row_of

MAX_DEPTH = 16
"""Moves from the root to the deepest node; at least 2."""


class _Memory(NamedTuple):
    """What each of M nodes remembers, of B games; a path of up to D moves has D + 1 nodes."""

    action: Array  # [M, B] int32, that its rule takes; the root's is asked anew in each simulation
    end: Array  # [M, B] int32, the node where a descent stops: its action was never taken, or leads to depth D
    depth: Array  # [M, B] int32, 0 at the root
    path: Array  # [M, B, D + 1] int32, the nodes from the root to this one; past the last, beyond all nodes


def grow(
    root: Node,
    expand: Expand,
    *,
    root_rule: RootRule,
    rule: Rule,
    num_simulations: int,
    first_round: FirstRound | None = None,
) -> Tree:
    """As `tree_search.grow`. `rule` must take any number of rows at once."""
    games = jnp.arange(root.value.shape[0])

    def simulate(simulation: Array, carry: tuple[Tree, _Memory]) -> tuple[Tree, _Memory]:
        tree, memory = carry
        with jax.named_scope("descend"):
            chosen = root_rule(row_of(tree), simulation)
            child = tree.children[ROOT, games, chosen]
            parent = jnp.where(child == UNVISITED, ROOT, memory.end[child, games])
            action = jnp.where(child == UNVISITED, chosen, memory.action[parent, games])
        with jax.named_scope("expand"):
            node = expand(action, jax.tree.map(lambda x: x[parent, games], tree.embedding))
            tree = add(tree, simulation + 1, node, parent, action)
        with jax.named_scope("backup"):
            depth = memory.depth[parent, games] + 1
            path = memory.path[parent, games].at[games, depth].set(simulation + 1)
            tree = _backup(tree, simulation + 1, path, depth)
            return tree, _remember(tree, memory, simulation + 1, path, depth, rule)

    tree, num_done = begin(root, expand, num_simulations, first_round)
    width = 0 if first_round is None else len(first_round.action)
    memory = _first_memory(tree, width, rule)
    return lax.fori_loop(num_done, num_simulations, simulate, (tree, memory))[0]


def _first_memory(tree: Tree, width: int, rule: Rule) -> _Memory:
    """What roots know, and `width` children of theirs; where there are none yet, it is written over as they come."""
    num_nodes, num_games = tree.value.shape
    zeros = jnp.zeros((num_nodes, num_games), jnp.int32)
    children = jnp.arange(1, width + 1)[:, None]
    nowhere = jnp.full((num_nodes, num_games, min(num_nodes - 1, MAX_DEPTH) + 1), num_nodes)
    flat = jnp.repeat(children, num_games), jnp.tile(jnp.arange(num_games), width)
    return _Memory(
        action=zeros.at[1 : width + 1].set(rule(row_of(tree, *flat)).reshape(width, num_games)),
        end=zeros.at[1 : width + 1].set(children),
        depth=zeros.at[1 : width + 1].set(1),
        path=nowhere.at[: width + 1, :, 0].set(ROOT).at[1 : width + 1, :, 1].set(children),
    )


def _backup(tree: Tree, leaf: Array, path: Array, depth: Array) -> Tree:
    """Adds the value of node `leaf`, where each path [B, D + 1] ends, to all nodes above it, for each one's mover."""
    rows = jnp.arange(len(path))[:, None]
    node, above = path[:, 1:], path[:, :-1]  # each edge's child and parent
    reward, discount, action = (x[node, rows] for x in (tree.reward, tree.discount, tree.action))

    outcome, outcomes = tree.value[leaf], []
    for level in reversed(range(node.shape[1])):
        climbed = reward[:, level] + discount[:, level] * outcome
        outcome = jnp.where(level < depth, climbed, outcome)
        outcomes.append(outcome)
    outcomes = jnp.stack(outcomes[::-1], axis=1)

    # Past its path's end a game writes beyond all nodes, where writes are dropped.
    above = jnp.where(jnp.arange(above.shape[1]) < depth[:, None], above, len(tree.value))
    count = tree.count[above, rows]
    value = (tree.value[above, rows] * count + outcomes) / (count + 1)
    tree = tree._replace(
        value=tree.value.at[above, rows].set(value, mode="drop"),
        count=tree.count.at[above, rows].set(count + 1, mode="drop"),
        visits=tree.visits.at[above, rows, action].add(1, mode="drop"),
    )
    q = reward + discount * tree.value[node, rows]
    return tree._replace(q=tree.q.at[above, rows, action].set(q, mode="drop"))


def _remember(tree: Tree, memory: _Memory, leaf: Array, path: Array, depth: Array, rule: Rule) -> _Memory:
    """What every node on the new leaf's path takes now and where that ends; the root needs neither."""
    node = path[:, 1:]
    num_games, room = node.shape
    rows = jnp.arange(num_games)[:, None]
    action = rule(row_of(tree, node.T.ravel(), jnp.tile(jnp.arange(num_games), room))).reshape(room, num_games).T
    child = tree.children[node, rows, action]

    # What the last node but one leads to has no children.
    is_end = (child == UNVISITED) | (jnp.arange(room) >= room - 2)
    remembered = memory.end[child, rows]

    below, end_below, ends = jnp.full(num_games, -1), jnp.full(num_games, -1), []
    for level in reversed(range(room)):
        end = jnp.where(child[:, level] == below, end_below, remembered[:, level])
        end = jnp.where(is_end[:, level], node[:, level], end)
        ends.append(end)
        below, end_below = node[:, level], end
    return _Memory(
        action=memory.action.at[node, rows].set(action, mode="drop"),
        end=memory.end.at[node, rows].set(jnp.stack(ends[::-1], axis=1), mode="drop"),
        depth=lax.dynamic_update_index_in_dim(memory.depth, depth, leaf, axis=0),
        path=lax.dynamic_update_index_in_dim(memory.path, path, leaf, axis=0),
    )


gumbel_search = partial(search.gumbel_search, grow=grow)
puct_search = partial(search.puct_search, grow=grow)
