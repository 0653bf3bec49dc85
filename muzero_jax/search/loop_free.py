"""`tree.grow` without a loop inside a simulation: the same few kernels at any depth of the tree.

For GPUs, which pay for each kernel, and wait for the host after each turn of a loop of unknown length if it is in no
CUDA graph (docs/accelerators.md); never timed on one. On a CPU it costs more than it saves. Nothing is walked:

- Each node remembers where following the rules from it ends. A descent is the root's rule and one look-up.
- Each node remembers its path from the root. A backup looks the path up, works on all levels of it side by side, and
  writes all levels at once.
- Statistics change on that path only. So only its nodes' rules are asked again, all in one batch, and where these end
  is found from the new leaf upwards. Off the path, what a child remembers still holds.
- Numbers that are read together lie together, as float32 (whole numbers below 2^24 are exact there). So a node's are
  one gather and one scatter, and so are an action's.

Every path has room for `MAX_DEPTH` moves, used or not, and a simulation works on all of it. A simulation that would go
deeper looks at the last node again, as with mctx's `max_depth`, and puts a new node in its place. Where none would, the
trees are `tree.grow`'s, but for ties within rounding.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from muzero_jax.search import policies
from muzero_jax.search.rules import Row, Rule, Rules, with_chance_nodes
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.search.tree import ROOT, UNVISITED, Tree
from muzero_jax.types import Params

MAX_DEPTH = 16
"""Moves from the root to the deepest node; at least 2."""


class _Record(NamedTuple):
    """Numbers of nodes, each an array of the same shape; together the last axis of `_Forest.nodes`."""

    raw_value: Any
    value: Any
    count: Any
    reward: Any
    discount: Any
    parent: Any
    action: Any  # as in `Tree`
    end: Any  # the node where a descent from here stops; the root's is not kept
    end_action: Any  # that it takes there: one that was never taken, or that leads to depth D
    is_chance: Any = None  # as in `Tree`

    @classmethod
    def new(cls, node: Node, parent: Array, action: Array) -> "_Record":
        """The numbers of nodes that were never visited before."""
        zero = jnp.zeros_like(node.value)
        edge = node.reward, node.discount, parent, action
        return cls(node.value, node.value, zero + 1, *edge, zero, zero, node.is_chance)


class _Edge(NamedTuple):
    """Numbers of actions; together the last axis of `_Forest.edges`."""

    prior: Any
    visits: Any
    q: Any
    children: Any  # as in `Tree`

    @classmethod
    def new(cls, prior: Array) -> "_Edge":
        """The numbers of actions that were never taken."""
        return cls(prior, *(jnp.zeros_like(prior),) * 3)


VISITS, CHILDREN = _Edge._fields.index("visits"), _Edge._fields.index("children")


class _Forest(NamedTuple):
    """B trees of M nodes."""

    nodes: Array  # [M, B, record]
    edges: Array  # [M, B, A, edge]
    constants: dict[str, Array]  # [M, B, numbers] by dtype: of each node its embedding and its path
    # A path, of up to D moves, is [B, D + 1] float32: the nodes from the root on; past the last, beyond all nodes.


def grow(root: Node, simulator: Simulator, params: Params, rules: Rules, num_simulations: int, key: Array) -> Tree:
    """Grows trees like `tree.grow`. `rules.below` must take any number of rows at once."""
    assert not simulator.passes_afterstates, "a simulation makes one node here"
    root, rules = with_chance_nodes(root, rules, simulator.num_outcomes)
    num_games, num_nodes = root.value.shape[0], num_simulations + 1
    games, room = jnp.arange(num_games), min(num_simulations, MAX_DEPTH) + 1
    nowhere = jnp.broadcast_to(num_nodes + jnp.arange(room), (num_games, room))
    constants = root.embedding, nowhere.at[:, 0].set(ROOT).astype(jnp.float32)

    def simulate(simulation: Array, forest: _Forest) -> _Forest:
        with jax.named_scope("descend"):
            chosen = rules.root(_row(forest.nodes[ROOT], forest.edges[ROOT]), simulation)
            child = _whole(forest.edges[ROOT, games, chosen, CHILDREN])
            below, is_new = _records(forest.nodes[child, games]), child == UNVISITED
            parent = jnp.where(is_new, ROOT, _whole(below.end))
            action = jnp.where(is_new, chosen, _whole(below.end_action))
        with jax.named_scope("expand"):
            taken = {name: x[parent, games] for name, x in forest.constants.items()}
            embedding, path = _unpack(taken, constants)
            node = simulator.expand(params, jax.random.fold_in(key, simulation), action, embedding)
        with jax.named_scope("backup"):
            return _add(forest, simulation + 1, node, _Record.new(node, parent, action), _whole(path), rules.below)

    forest = lax.fori_loop(0, num_simulations, simulate, _plant(root, constants, num_nodes))
    return _tree(forest, _unpack(forest.constants, constants)[0])


def _plant(root: Node, constants: Any, num_nodes: int) -> _Forest:
    """Trees that have only their root."""

    def stack(x):
        return jnp.zeros((num_nodes, *x.shape), x.dtype).at[ROOT].set(x)

    record = _Record.new(root, jnp.zeros_like(root.value), jnp.zeros_like(root.value))
    packed = {name: stack(x) for name, x in _pack(constants).items()}
    return _Forest(stack(_joined(record)), stack(_joined(_Edge.new(root.prior))), packed)


def _add(forest: _Forest, leaf: Array, node: Node, new: _Record, path: Array, rule: Rule) -> _Forest:
    """Adds node `leaf` to every tree, and its value to all nodes above, each for who moves there.

    Args:
      node, new: the leaf. path: [B, D + 1], its parent's.
    """
    num_nodes, num_games = forest.nodes.shape[:2]
    games, levels = jnp.arange(num_games)[:, None], jnp.arange(path.shape[1])
    depth = (path < num_nodes).sum(-1, keepdims=True)
    path = jnp.where(levels == depth, leaf, path)

    known = _records(forest.nodes.at[path, games].get(mode="clip"))
    known = jax.tree.map(lambda x, old: jnp.where(levels == depth, x[:, None], old), new, known)
    outcome, is_above = _outcomes(known, depth[:, 0]), levels < depth
    value = jnp.where(is_above, (known.value * known.count + outcome) / (known.count + 1), known.value)
    known = known._replace(value=value, count=known.count + is_above)

    def write(nodes, new):
        return lax.dynamic_update_index_in_dim(nodes, new, leaf, axis=0)

    edges = write(forest.edges, _joined(_Edge.new(node.prior)))
    edges = _visit(edges, path, known, is_above)
    known = known._replace(**_ends(forest.nodes, edges, path, known, rule))
    packed = _pack((node.embedding, path.astype(jnp.float32)))
    return _Forest(
        # Past its path's end a game writes beyond all nodes, where writes are dropped.
        nodes=forest.nodes.at[path, games].set(_joined(known), mode="drop", unique_indices=True),
        edges=edges,
        constants={name: write(x, packed[name]) for name, x in forest.constants.items()},
    )


def _outcomes(known: _Record, depth: Array) -> Array:
    """The simulation's worth at each level [B, D + 1]: the value of the leaf at `depth`, seen from there."""
    outcome, outcomes = jnp.zeros(len(depth)), []
    for level in reversed(range(known.value.shape[1])):
        outcome = jnp.where(level == depth, known.value[:, level], outcome)
        outcomes.append(outcome)
        outcome = known.reward[:, level] + known.discount[:, level] * outcome
    return jnp.stack(outcomes[::-1], axis=1)


def _visit(edges: Array, path: Array, known: _Record, is_above: Array) -> Array:
    """Counts the actions along the path, and writes their Q and the nodes that they lead to."""
    games, above, action = jnp.arange(len(path))[:, None], path[:, :-1], _whole(known.action[:, 1:])
    below = jax.tree.map(lambda x: x[:, 1:], known)
    visits = edges.at[above, games, action, VISITS].get(mode="clip") + 1
    changed = jnp.stack([visits, below.reward + below.discount * below.value, path[:, 1:]], axis=-1)
    node = jnp.where(is_above[:, :-1], above, len(edges) + jnp.arange(above.shape[1]))
    return edges.at[node, games, action, VISITS:].set(changed, mode="drop", unique_indices=True)


def _ends(nodes: Array, edges: Array, path: Array, known: _Record, rule: Rule) -> dict[str, Array]:
    """Where following the rules from each node of the path ends [B, D + 1], and with which action; not the root's."""
    games, node = jnp.arange(len(path))[:, None], path[:, 1:]
    rows = edges.at[node, games].get(mode="clip").reshape(node.size, *edges.shape[2:])
    action = rule(_row(_joined(jax.tree.map(lambda x: x[:, 1:].ravel(), known)), rows)).reshape(node.shape)
    child = _whole(edges.at[node, games, action, CHILDREN].get(mode="clip"))
    # What the last node but one leads to has no children.
    is_end = (child == UNVISITED) | (jnp.arange(node.shape[1]) >= node.shape[1] - 2)
    remembered = _records(nodes[child, games])

    below, (end, end_action), ends = jnp.full(len(path), -1), (jnp.zeros(len(path)),) * 2, []
    for level in reversed(range(node.shape[1])):
        is_next = child[:, level] == below
        end = jnp.where(is_next, end, remembered.end[:, level])
        end = jnp.where(is_end[:, level], node[:, level], end)
        end_action = jnp.where(is_next, end_action, remembered.end_action[:, level])
        end_action = jnp.where(is_end[:, level], action[:, level], end_action)
        below = node[:, level]
        ends.append((end, end_action))
    of_root = jnp.zeros((len(path), 1))
    end, end_action = (jnp.concatenate([of_root, jnp.stack(x[::-1], axis=1)], axis=1) for x in zip(*ends, strict=True))
    return {"end": end, "end_action": end_action}


def _tree(forest: _Forest, embedding: Any) -> Tree:
    """The trees as other code knows them; what is not read of them costs nothing."""
    fields = _records(forest.nodes)._asdict() | _edges(forest.edges)._asdict() | {"embedding": embedding}
    fields |= {name: _whole(fields[name]) for name in ("children", "parent", "action")}
    fields["is_chance"] = _truth(fields["is_chance"])
    return Tree(**{name: fields[name] for name in Tree._fields})


def _row(nodes: Array, edges: Array) -> Row:
    """Nodes [R, record] and their actions [R, A, edge] as a rule sees them."""
    known, edge = _records(nodes), _edges(edges)
    return Row(edge.prior, edge.visits, edge.q, known.raw_value, known.value, _truth(known.is_chance))


def _records(nodes: Array) -> _Record:
    return _Record(*(nodes[..., i] for i in range(nodes.shape[-1])))


def _edges(edges: Array) -> _Edge:
    return _Edge(*(edges[..., i] for i in range(len(_Edge._fields))))


def _joined(parts: tuple) -> Array:
    """Arrays of one shape [...] as one [..., number of arrays]."""
    return jnp.stack([jnp.asarray(x, jnp.float32) for x in jax.tree.leaves(parts)], axis=-1)


def _truth(x: Array | None) -> Array | None:
    return None if x is None else x > 0


def _whole(x: Array) -> Array:
    return x.astype(jnp.int32)


def _pack(constants: Any) -> dict[str, Array]:
    """Constants, leaves [B, ...], as one array [B, numbers] for each dtype."""
    by_dtype: dict[str, list[Array]] = {}
    for leaf in jax.tree.leaves(constants):
        by_dtype.setdefault(str(leaf.dtype), []).append(leaf.reshape(len(leaf), -1))
    return {name: jnp.concatenate(leaves, axis=-1) for name, leaves in by_dtype.items()}


def _unpack(packed: dict[str, Array], like: Any) -> Any:
    """The inverse of `_pack`, for arrays [..., numbers] whatever comes before; `like` has the leaves as [B, *shape]."""
    leaves, tree = jax.tree.flatten(like)
    starts, found = dict.fromkeys(packed, 0), []
    for leaf in leaves:
        name, size = str(leaf.dtype), leaf[0].size
        part = packed[name][..., starts[name] : starts[name] + size]
        found.append(part.reshape(*part.shape[:-1], *leaf.shape[1:]))
        starts[name] += size
    return jax.tree.unflatten(tree, found)


gumbel_search = partial(policies.gumbel_search, grow=grow)
puct_search = partial(policies.puct_search, grow=grow)
