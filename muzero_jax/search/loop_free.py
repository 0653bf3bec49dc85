"""`tree.grow` without a loop inside a simulation: the same number of kernels at any depth of the tree.

An option for accelerators, which pay for starting each kernel; it was never timed on an accelerator. On a CPU it costs
more than it saves (docs/performance.md). Nothing is walked:

- Each node remembers which action its rule takes and which node following the rules from here ends at. A descent is the
  root's rule and two look-ups.
- Each node remembers its path from the root. A backup looks the path up, works on all levels of it side by side, and
  writes all levels at once.
- Statistics change on that path only. So only its nodes' actions are computed again, all in one batch, and where
  these end is found from the new leaf upwards. Off the path, what a child remembers still holds.

Every path has room for `MAX_DEPTH` moves, used or not, and a simulation works on all of it. A simulation that would go
deeper looks at the last node again, as with mctx's `max_depth`, and puts a new node in its place. Where none would, the
trees are `tree.grow`'s, but for ties within rounding.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from muzero_jax.search import policies
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.search.tree import ROOT, UNVISITED, Expand, Rule, Rules, Tree, add, plant, row_of, rows_at
from muzero_jax.types import SearchFn

MAX_DEPTH = 16
"""Moves from the root to the deepest node; at least 2."""


class _Memory(NamedTuple):
    """The memory of each of M nodes, of B games; a path of up to D moves has D + 1 nodes."""

    action: Array  # [M, B] int32, the action that its rule takes; the root's is computed in each simulation
    end: Array  # [M, B] int32, the node where a descent stops: its action was never taken, or leads to depth D
    depth: Array  # [M, B] int32, 0 at the root
    path: Array  # [M, B, D + 1] int32, the nodes from the root to this one; past the last, beyond all nodes


def grow(root: Node, expand: Expand, rules: Rules, num_simulations: int, key: Array) -> Tree:
    """Grows trees like `tree.grow`. `rules.below` must take any number of rows at once."""
    num_nodes, num_games = num_simulations + 1, root.value.shape[0]
    games = jnp.arange(num_games)

    def simulate(simulation: Array, carry: tuple[Tree, _Memory]) -> tuple[Tree, _Memory]:
        tree, memory = carry
        with jax.named_scope("descend"):
            chosen = rules.root(row_of(tree), simulation)
            child = tree.children[ROOT, games, chosen]
            parent = jnp.where(child == UNVISITED, ROOT, memory.end[child, games])
            action = jnp.where(child == UNVISITED, chosen, memory.action[parent, games])
        with jax.named_scope("expand"):
            embedding = jax.tree.map(lambda x: x[parent, games], tree.embedding)
            node = expand(jax.random.fold_in(key, simulation), action, embedding)
            tree = add(tree, simulation + 1, node, parent, action)
        with jax.named_scope("backup"):
            depth = memory.depth[parent, games] + 1
            path = memory.path[parent, games].at[games, depth].set(simulation + 1)
            tree = _backup(tree, simulation + 1, path, depth)
            return tree, _remember(tree, memory, simulation + 1, path, depth, rules.below)

    nowhere = jnp.full((num_nodes, num_games, min(num_simulations, MAX_DEPTH) + 1), num_nodes)
    zeros = jnp.zeros((num_nodes, num_games), jnp.int32)
    carry = plant(root, num_nodes), _Memory(zeros, zeros, zeros, nowhere.at[ROOT, :, 0].set(ROOT))
    return lax.fori_loop(0, num_simulations, simulate, carry)[0]


def _backup(tree: Tree, leaf: Array, path: Array, depth: Array) -> Tree:
    """Adds the value of node `leaf`, where each path [B, D + 1] ends, to all nodes above, each for who moves there."""
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
    """Updates what the nodes on the new leaf's path remember: their action, and where following it ends.

    The root needs neither.
    """
    node = path[:, 1:]
    num_games, room = node.shape
    rows = jnp.arange(num_games)[:, None]
    index = node.T.ravel(), jnp.tile(jnp.arange(num_games), room)
    action = rule(rows_at(tree, index)).reshape(room, num_games).T
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


def gumbel_search(simulator: Simulator, **settings: Any) -> SearchFn:
    """`policies.gumbel_search` on these trees."""
    return policies.gumbel_search(_checked(simulator), **settings, grow=grow)


def puct_search(simulator: Simulator, **settings: Any) -> SearchFn:
    """`policies.puct_search` on these trees."""
    return policies.puct_search(_checked(simulator), **settings, grow=grow)


def _checked(simulator: Simulator) -> Simulator:
    """The simulator; ValueError if its simulations make more than one node."""
    if simulator.passes_afterstates:
        raise ValueError(
            "the engine loop_free makes one node a simulation, but the rules of a game of chance need two; "
            "use --search.engine own"
        )
    return simulator
