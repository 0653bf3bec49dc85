"""Gumbel's simulations in passes: all those of a round of sequential halving at the same time.

In each round every root action still considered is visited once, and these visits fall into different subtrees, so they
are independent. A round is then one pass, with one call of the network for all of them: 16 simulations of 8 actions are
4 passes, 64 simulations of 16 actions 15.

    root actions  a b c d     pass 1: one visit of each, 4 positions for the network at once
                  a   c       halving: the worse half is dropped, its subtrees are forgotten
                  a   c       pass 2, 3, ...: two positions at once

The subtrees, one for each action still considered, have equally many nodes, so their arrays have static shapes. A pass
finds where descents end by following all nodes' choices at once, twice as far each time. Each node stores its path from
the top, so a backup is one sum. The work of a pass grows with the number of nodes, so this is for some hundred
simulations and not for thousands.

A position with fewer legal actions than m has its own halving, with more and narrower rounds. Its visits share the
passes of the other positions, which are widened if necessary, and further passes, which are made only while a position
of the batch needs them: with 16 simulations of 8 actions up to 4 more, of two actions each.

Trees differ from `tree.grow`'s in two ways. Here halving compares the actions after a whole round, but there after each
visit, when one of them has a visit more and sigma has grown. And a forced move gets only half of the simulations,
because all of them would be the longest chain of passes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from muzero_jax.search.rules import Row, Rule, or_chance
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.search.tree import UNVISITED
from muzero_jax.types import Params


class Subtrees(NamedTuple):
    """Those of root actions, each of up to M nodes; node 0 is where the action leads.

    G subtrees, W for each of B games: subtree w B + b is an action of game b. Fields mean the same as in `tree.Tree`.
    """

    prior: Array  # [M, G, A]
    visits: Array  # [M, G, A]
    q: Array  # [M, G, A]
    children: Array  # [M, G, A] int32
    raw_value: Array  # [M, G]
    total: Array  # [M, G] sum of the node's own evaluation and those of all nodes below, as seen from it
    count: Array  # [M, G] how many these are; 0 if there is no node yet
    reward: Array  # [M, G]
    discount: Array  # [M, G]
    parent: Array  # [M, G] int32
    action: Array  # [M, G] int32
    path: Array  # [M, G, M] 1 if the last index is this node or a node above it, else 0
    path_reward: Array  # [M, G, M] the discounted rewards from that node to this one, for the player to move there
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
    rounds: np.ndarray,
) -> Row:
    """Runs the simulations, and returns the root's statistics [B, A].

    Args:
      root: with the prior over legal actions.
      score: the root's statistics -> the score of each root action [B, A], -inf if it is illegal.
      below: the rule of all other nodes; it must take any number of rows at once.
      key: for the expansions.
      rounds: `rounds_of`, for at most A actions.
    """
    assert not simulator.passes_afterstates, "a visit makes one node here"
    num_games, num_actions = root.prior.shape
    games = jnp.arange(num_games)
    rule = below if simulator.num_outcomes is None else or_chance(below, num_actions)
    grow = partial(_pass, simulator=simulator, params=params, below=rule, key=key)

    zeros = jnp.zeros((num_games, num_actions))
    row = Row(root.prior, zeros, zeros, root.value, root.value)
    scores, actions = lax.top_k(score(row), len(rounds) - 1)
    is_active = jnp.isfinite(scores.T)  # [W, B]
    actions = actions.T
    actions = jnp.where(is_active, actions, actions[0])  # a subtree without its own action is idle
    num_visited = jnp.asarray(rounds)[is_active.sum(0)]  # [B, P]
    num_passes = (num_visited > 0).sum(-1).max()
    first_key = jax.random.fold_in(key, 0)
    first = simulator.expand(params, first_key, actions.ravel(), _repeated(root.embedding, len(actions)))
    subtrees = _plant(first)
    row = _seen(row, subtrees, actions, is_active, 1)
    for width, start, end, is_certain in phases(rounds):
        if width < len(actions):
            kept = lax.top_k(_scores(score, row, actions, is_active).T, width)[1].T
            actions = actions[kept, games]
            is_active = is_active[kept, games]
            subtrees = jax.tree.map(partial(_kept, kept=kept), subtrees)
        turn = partial(_turn, score=score, actions=actions, num_visited=num_visited, grow=grow)
        stop = end if is_certain else jnp.minimum(end, num_passes)
        with jax.named_scope("passes"):
            subtrees, row, is_active = lax.fori_loop(
                start, stop, turn, (_with_room(subtrees, end - start), row, is_active)
            )
    value = (root.value + (row.visits * row.q).sum(-1)) / (1 + row.visits.sum(-1))
    return row._replace(value=value)


def rounds_of(visits: np.ndarray) -> np.ndarray:
    """How many root actions are visited in each pass: [m + 1, P], row k for k considered actions.

    Args:
      visits: `policies.considered_visits`. The budget may end within the last pass of a row.
    """
    rows = [np.bincount(row.astype(int)) for row in visits]
    rows[0] = np.zeros(1, int)  # a game that is over has no action to visit
    rows[1] = rows[1][: max(map(len, rows[2:]), default=None)]  # a forced move is visited no more often than one of two
    length = max(map(len, rows))
    return np.array([np.pad(row, (0, length - len(row))) for row in rows])


def phases(rounds: np.ndarray) -> list[tuple[int, int, int, bool]]:
    """(subtrees, first pass, last pass + 1, whether all are made) of all passes but the first, which visits m actions.

    Each phase compiles its own pass, so subtrees are rounded up to one, two or those of a round of m actions. Passes
    beyond these rounds are a separate phase, because their number depends on the positions.
    """
    widths = rounds.max(0)
    steps = np.union1d(rounds[-1], [1, 2])
    rounded = steps[np.searchsorted(steps, widths)]
    found: list[tuple[int, int, int, bool]] = []
    for new in range(1, len(widths)):
        width, is_certain = int(rounded[new]), bool(rounds[-1, new])
        is_alike = bool(found) and (found[-1][0], found[-1][3]) == (width, is_certain)
        start = found.pop()[1] if is_alike else new
        found.append((width, start, new + 1, is_certain))
    return found


def _turn(
    new: Array,
    carry: tuple[Subtrees, Row, Array],
    *,
    score: Callable[[Row], Array],
    actions: Array,
    num_visited: Array,
    grow: Callable[[Array, Subtrees], Subtrees],
) -> tuple[Subtrees, Row, Array]:
    """Makes pass `new`: of subtrees, the root's row, and whether a subtree's action is still considered [W, B]."""
    subtrees, row, is_active = carry
    is_active &= _rank(_scores(score, row, actions, is_active)) < num_visited[:, new]
    subtrees = grow(new, subtrees)
    return subtrees, _seen(row, subtrees, actions, is_active, new + 1), is_active


def _scores(score: Callable[[Row], Array], row: Row, actions: Array, is_active: Array) -> Array:
    """The scores [W, B] of the subtrees' actions, -inf of those no longer considered."""
    return jnp.where(is_active, score(row)[jnp.arange(actions.shape[1]), actions], -jnp.inf)


def _seen(row: Row, subtrees: Subtrees, actions: Array, is_active: Array, visits: Array | int) -> Row:
    """The root's row after each active subtree's action [W, B] has had so many `visits`."""
    q = subtrees.reward[0] + subtrees.discount[0] * subtrees.total[0] / subtrees.count[0]
    num_games, num_actions = row.q.shape
    place = jnp.arange(num_games), jnp.where(is_active, actions, num_actions)  # past the end, where writes are dropped
    return row._replace(
        q=row.q.at[place].set(q.reshape(actions.shape), mode="drop"),
        visits=row.visits.at[place].set(jnp.asarray(visits, row.visits.dtype), mode="drop"),
    )


def _rank(scores: Array) -> Array:
    """The rank [W, B] of each subtree among its game's, 0 for the highest score; of equals the first is ahead."""
    subtree = jnp.arange(len(scores))
    is_ahead = (scores[:, None] > scores) | ((scores[:, None] == scores) & (subtree[:, None, None] < subtree[:, None]))
    return is_ahead.sum(0)


def _repeated(tree: Any, width: int) -> Any:
    """Leaves [B, ...] repeated for each of W subtrees: [W B, ...]."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (width, *x.shape)).reshape(-1, *x.shape[1:]), tree)


def _kept(x: Array, *, kept: Array) -> Array:
    """A leaf [M, G, ...], of only those subtrees [W, B] that are `kept`."""
    width, num_games = kept.shape
    by_game = x.reshape(len(x), -1, num_games, *x.shape[2:])
    return by_game[:, kept, jnp.arange(num_games)].reshape(len(x), width * num_games, *x.shape[2:])


def _plant(node: Node) -> Subtrees:
    """Subtrees of one node each."""
    zero = jnp.zeros_like(node.prior)
    none = jnp.zeros(node.value.shape, jnp.int32)
    one = jnp.ones_like(node.value)
    subtrees = Subtrees(
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
    return jax.tree.map(lambda x: x[None], subtrees)


def _with_room(subtrees: Subtrees, more: int) -> Subtrees:
    """The subtrees, with room for `more` nodes."""

    def padded(x: Array, axis: int) -> Array:
        return jnp.concatenate([x, jnp.zeros((*x.shape[:axis], more, *x.shape[axis + 1 :]), x.dtype)], axis)

    longer = {name: padded(getattr(subtrees, name), 2) for name in ("path", "path_reward", "path_discount")}
    return jax.tree.map(partial(padded, axis=0), subtrees._replace(**longer))


def _pass(new: Array, subtrees: Subtrees, *, simulator: Simulator, params: Params, below: Rule, key: Array) -> Subtrees:
    """Adds node `new` to every subtree."""
    num_nodes, num_subtrees = subtrees.count.shape
    nodes = jnp.arange(num_nodes)
    subtree = jnp.arange(num_subtrees)
    with jax.named_scope("descend"):
        chosen = below(_rows(subtrees)).reshape(num_nodes, num_subtrees)
        child = jnp.take_along_axis(subtrees.children, chosen[..., None], axis=-1)[..., 0]
        end = jnp.where(child == UNVISITED, nodes[:, None], child)
        for _ in range((num_nodes - 1).bit_length()):
            end = end[end, subtree]
        parent = end[0]
        action = chosen[parent, subtree]
    with jax.named_scope("expand"):
        embedding = jax.tree.map(lambda x: x[parent, subtree], subtrees.embedding)
        node = simulator.expand(params, jax.random.fold_in(key, new), action, embedding)
    with jax.named_scope("backup"):
        return _add(subtrees, new, node, parent, action)


def _add(subtrees: Subtrees, new: Array, node: Node, parent: Array, action: Array) -> Subtrees:
    """The subtrees with node `new` [G], whose value counts for all nodes on its path."""
    num_nodes, num_subtrees = subtrees.count.shape
    nodes = jnp.arange(num_nodes)
    subtree = jnp.arange(num_subtrees)
    is_new = nodes == new  # [M]
    above = subtrees.path_discount[parent, subtree]  # [G, M]
    fresh = {
        "prior": node.prior,
        "raw_value": node.value,
        "reward": node.reward,
        "discount": node.discount,
        "parent": parent,
        "action": action,
        "path": jnp.where(is_new, 1.0, subtrees.path[parent, subtree]),
        "path_reward": jnp.where(is_new, 0.0, subtrees.path_reward[parent, subtree] + above * node.reward[:, None]),
        "path_discount": jnp.where(is_new, 1.0, above * node.discount[:, None]),
        "embedding": node.embedding,
        "is_chance": node.is_chance,
    }
    old = {name: getattr(subtrees, name) for name in fresh}
    written = jax.tree.map(lambda x, y: lax.dynamic_update_index_in_dim(x, y, new, 0), old, fresh)
    outcome = fresh["path"] * (fresh["path_reward"] + fresh["path_discount"] * node.value[:, None])
    subtrees = subtrees._replace(**written, total=subtrees.total + outcome.T, count=subtrees.count + fresh["path"].T)

    value = subtrees.total / jnp.maximum(subtrees.count, 1)
    is_edge = (nodes[:, None] > 0) & (subtrees.count > 0)  # of nodes below the top
    edge = jnp.where(is_edge, subtrees.parent, num_nodes), subtree[None], subtrees.action
    return subtrees._replace(
        q=subtrees.q.at[edge].set(subtrees.reward + subtrees.discount * value, mode="drop"),
        visits=subtrees.visits.at[edge].set(subtrees.count, mode="drop"),
        children=subtrees.children.at[edge].set(jnp.broadcast_to(nodes[:, None], edge[0].shape), mode="drop"),
    )


def _rows(subtrees: Subtrees) -> Row:
    """All nodes of all subtrees as a rule sees them, M G rows."""
    value = subtrees.total / jnp.maximum(subtrees.count, 1)
    fields = subtrees.prior, subtrees.visits, subtrees.q, subtrees.raw_value, value, subtrees.is_chance
    return Row(*jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), fields))
