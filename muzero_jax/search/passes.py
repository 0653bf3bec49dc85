"""Gumbel's simulations in passes: all those of a round of sequential halving at the same time.

In each round every root action still considered is visited once, and these visits fall into different subtrees, so
that none depends on another. A round is then one pass, with one call of the network for all of them: 16 simulations of
8 actions are 4 passes, 64 simulations of 16 actions 15.

    root actions  a b c d     pass 1: one visit of each, 4 positions for the network at once
                  a   c       halving: the worse half is dropped, its subtrees are forgotten
                  a   c       pass 2, 3, ...: two positions at once

The subtrees, one for each action still considered, have equally many nodes, so their arrays have static shapes and
nothing is a loop of unknown length: where a descent ends is found by following all nodes' choices at once, twice as far
each time, and a node keeps its path from the top, so a backup is one sum. The work of a pass grows with the nodes that
there are, so this is for some hundred simulations and not for thousands.

Trees differ from `tree.grow`'s in this alone: halving compares the actions after a whole round, while one simulation
after another compares them again after each visit, when one of them has a visit more and sigma has grown. And in a
position with fewer legal actions than m each gets the visits that it gets among m, so there are fewer in all. That
costs strength in games where it is the rule (Othello: 43% of 400 games with 16 simulations), so presets use passes in
games with many legal actions.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from muzero_jax.search.rules import Row, Rule, or_chance
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.types import Params

NONE = 0
"""In `children`: nothing leads back to the top, so its index is free to say this."""


class Lanes(NamedTuple):
    """Subtrees of root actions, each of up to M nodes; node 0 is where the action leads.

    G lanes, W of each of B games: lane w B + b is an action of game b. Numbers are those of `tree.Tree`.
    """

    prior: Array  # [M, G, A]
    visits: Array  # [M, G, A]
    q: Array  # [M, G, A]
    children: Array  # [M, G, A] int32
    raw_value: Array  # [M, G]
    total: Array  # [M, G] sum of the node's own evaluation and those of all nodes below, as seen from it
    count: Array  # [M, G] how many these are; 0 where there is no node yet
    reward: Array  # [M, G]
    discount: Array  # [M, G]
    parent: Array  # [M, G] int32
    action: Array  # [M, G] int32
    path: Array  # [M, G, M] whether the last index is of a node on the way to this one, or of itself
    path_reward: Array  # [M, G, M] the rewards between the two, as seen from there
    path_discount: Array  # [M, G, M] the product of the discounts between the two
    embedding: Any  # leaves [M, G, ...]
    is_chance: Array | None  # [M, G]; None in a game without chance nodes


def visit(
    root: Node,
    simulator: Simulator,
    params: Params,
    score: Callable[[Row], Array],
    below: Rule,
    key: Array,
    *,
    schedule: list[tuple[int, int]],
) -> Row:
    """Runs the simulations, and returns the root's statistics [B, A].

    Args:
      root: with the prior over legal actions.
      score: of each root action [B, A] by what is known of it, -inf where it is illegal.
      below: the rule of all other nodes; it must take any number of rows at once.
      key: for the expansions.
      schedule: `phases` of at most A actions.
    """
    assert not simulator.passes_afterstates, "a visit makes one node here"
    num_games, num_actions = root.prior.shape
    games = jnp.arange(num_games)
    rule = below if simulator.num_outcomes is None else or_chance(below, num_actions)
    step = partial(_pass, simulator=simulator, params=params, below=rule, key=key)
    zeros = jnp.zeros((num_games, num_actions))
    row = Row(root.prior, zeros, zeros, root.value, root.value)
    scores, actions = lax.top_k(score(row), schedule[0][0])
    is_legal = jnp.isfinite(scores.T)
    actions = jnp.where(is_legal, actions.T, actions[:, 0])  # [W, B]; a lane without an action of its own is idle
    first_key = jax.random.fold_in(key, 0)
    first = simulator.expand(params, first_key, actions.ravel(), _repeated(root.embedding, len(actions)))
    lanes, num_nodes = _plant(first), 0
    for width, passes in schedule:
        if width < len(actions):
            scores = jnp.where(is_legal, score(row)[games, actions], -jnp.inf)
            kept = lax.top_k(scores.T, width)[1].T
            actions, is_legal = actions[kept, games], is_legal[kept, games]
            lanes = jax.tree.map(partial(_kept, kept=kept), lanes)
        start, num_nodes = max(num_nodes, 1), num_nodes + passes  # the first pass has planted the lanes
        with jax.named_scope("passes"):
            lanes = lax.fori_loop(start, num_nodes, step, _with_room(lanes, num_nodes - start))
        q = lanes.reward[0] + lanes.discount[0] * lanes.total[0] / lanes.count[0]
        place = games, jnp.where(is_legal, actions, num_actions)  # beyond all actions, where writes are dropped
        row = row._replace(
            q=row.q.at[place].set(q.reshape(width, num_games), mode="drop"),
            visits=row.visits.at[place].set(float(num_nodes), mode="drop"),
        )
    value = (root.value + (row.visits * row.q).sum(-1)) / (1 + row.visits.sum(-1))
    return row._replace(value=value)


def phases(sequence: list[int]) -> list[tuple[int, int]]:
    """(actions that are considered, passes) in turn, of `policies.halving`'s visits; the last pass may be cut."""
    widths = Counter(sequence).values()  # how many actions get their first visit, their second, ...
    return [(width, len(list(same))) for width, same in groupby(widths)]


def _repeated(tree: Any, width: int) -> Any:
    """Leaves [B, ...] for each of W lanes [W B, ...]."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (width, *x.shape)).reshape(-1, *x.shape[1:]), tree)


def _kept(x: Array, *, kept: Array) -> Array:
    """A leaf [M, G, ...] of the lanes that are kept [W, B]."""
    width, num_games = kept.shape
    by_game = x.reshape(len(x), -1, num_games, *x.shape[2:])
    return by_game[:, kept, jnp.arange(num_games)].reshape(len(x), width * num_games, *x.shape[2:])


def _plant(node: Node) -> Lanes:
    """Lanes of one node each."""
    zero, none = jnp.zeros_like(node.prior), jnp.zeros(node.value.shape, jnp.int32)
    one = jnp.ones_like(node.value)
    lanes = Lanes(
        prior=node.prior,
        visits=zero,
        q=zero,
        children=zero.astype(jnp.int32),
        raw_value=node.value,
        total=node.value,
        count=one,
        reward=node.reward,
        discount=node.discount,
        parent=none,
        action=none,
        path=one[:, None],
        path_reward=jnp.zeros_like(one)[:, None],
        path_discount=one[:, None],
        embedding=node.embedding,
        is_chance=node.is_chance,
    )
    return jax.tree.map(lambda x: x[None], lanes)


def _with_room(lanes: Lanes, more: int) -> Lanes:
    """The lanes with arrays for `more` nodes."""

    def padded(x: Array, axis: int) -> Array:
        return jnp.concatenate([x, jnp.zeros((*x.shape[:axis], more, *x.shape[axis + 1 :]), x.dtype)], axis)

    longer = {name: padded(getattr(lanes, name), 2) for name in ("path", "path_reward", "path_discount")}
    return jax.tree.map(partial(padded, axis=0), lanes._replace(**longer))


def _pass(new: Array, lanes: Lanes, *, simulator: Simulator, params: Params, below: Rule, key: Array) -> Lanes:
    """Adds node `new` to every lane."""
    num_nodes, num_lanes = lanes.count.shape
    nodes, lane = jnp.arange(num_nodes), jnp.arange(num_lanes)
    with jax.named_scope("descend"):
        chosen = below(_rows(lanes)).reshape(num_nodes, num_lanes)
        child = jnp.take_along_axis(lanes.children, chosen[..., None], axis=-1)[..., 0]
        end = jnp.where(child == NONE, nodes[:, None], child)
        for _ in range((num_nodes - 1).bit_length()):
            end = end[end, lane]
        parent = end[0]
        action = chosen[parent, lane]
    with jax.named_scope("expand"):
        embedding = jax.tree.map(lambda x: x[parent, lane], lanes.embedding)
        node = simulator.expand(params, jax.random.fold_in(key, new), action, embedding)
    with jax.named_scope("backup"):
        return _add(lanes, new, node, parent, action)


def _add(lanes: Lanes, new: Array, node: Node, parent: Array, action: Array) -> Lanes:
    """The lanes with node `new` [G], whose value counts for all nodes on its path."""
    num_nodes, num_lanes = lanes.count.shape
    nodes, lane = jnp.arange(num_nodes), jnp.arange(num_lanes)
    is_new = nodes == new  # [M]
    above = lanes.path_discount[parent, lane]  # [G, M]
    fresh = {
        "prior": node.prior,
        "raw_value": node.value,
        "reward": node.reward,
        "discount": node.discount,
        "parent": parent,
        "action": action,
        "path": jnp.where(is_new, 1.0, lanes.path[parent, lane]),
        "path_reward": jnp.where(is_new, 0.0, lanes.path_reward[parent, lane] + above * node.reward[:, None]),
        "path_discount": jnp.where(is_new, 1.0, above * node.discount[:, None]),
        "embedding": node.embedding,
        "is_chance": node.is_chance,
    }
    old = {name: getattr(lanes, name) for name in fresh}
    written = jax.tree.map(lambda x, y: lax.dynamic_update_index_in_dim(x, y, new, 0), old, fresh)
    outcome = fresh["path"] * (fresh["path_reward"] + fresh["path_discount"] * node.value[:, None])
    lanes = lanes._replace(**written, total=lanes.total + outcome.T, count=lanes.count + fresh["path"].T)

    value = lanes.total / jnp.maximum(lanes.count, 1)
    is_edge = (nodes[:, None] > 0) & (lanes.count > 0)  # of nodes below the top
    edge = jnp.where(is_edge, lanes.parent, num_nodes), lane[None], lanes.action
    return lanes._replace(
        q=lanes.q.at[edge].set(lanes.reward + lanes.discount * value, mode="drop"),
        visits=lanes.visits.at[edge].set(lanes.count, mode="drop"),
        children=lanes.children.at[edge].set(jnp.broadcast_to(nodes[:, None], edge[0].shape), mode="drop"),
    )


def _rows(lanes: Lanes) -> Row:
    """All nodes of all lanes as a rule sees them, M G rows."""
    value = lanes.total / jnp.maximum(lanes.count, 1)
    fields = lanes.prior, lanes.visits, lanes.q, lanes.raw_value, value, lanes.is_chance
    return Row(*jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), fields))
