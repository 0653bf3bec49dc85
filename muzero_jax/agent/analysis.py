"""What an agent finds out about a position, and the lines of moves that its search expects."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from muzero_jax.games.notation import Notation
from muzero_jax.games.sides import Move
from muzero_jax.search.tree import ROOT, Tree
from muzero_jax.types import Array, EnvState


class Analysis(NamedTuple):
    """A search of a position, for the side to move."""

    action: int  # the agent's move
    policy: Float[np.ndarray, " A"]  # of the search
    value: float  # of the search, in [-most_value, most_value], for the side to move
    prior: Float[np.ndarray, " A"]  # the network's own policy over legal actions
    prior_value: float  # the network's own value, likewise
    num_simulations: int
    seconds: float
    tree: Tree | None = None  # without embeddings, on the device; None if the search keeps no tree
    most_value: float = 1.0  # the largest return that the network can predict

    def best(self, count: int) -> list[int]:
        """The agent's move, then the moves with the largest shares of at least 0.001; at most `count`."""
        order = [int(a) for a in np.argsort(-self.policy, kind="stable") if self.policy[a] >= 1e-3]
        return [self.action, *(action for action in order if action != self.action)][:count]


class Line(NamedTuple):
    """One continuation that the search expects: legal moves, one after the other."""

    moves: tuple[str, ...]  # at most 8, in the game's notation; only one if chance may act next
    actions: tuple[int, ...]  # the same as numbers
    visits: int  # simulations that began with the first move
    value: float  # of the first move, for the side to move


class StateAnalysis(NamedTuple):
    """An agent's analysis of a state. Values are returns for the side to move, in [-1, 1] (or as large as the run's
    `network.support_range`).
    """

    action: int  # the agent's move
    policy: Float[np.ndarray, " A"]  # of the search
    value: float  # of the search
    prior: Float[np.ndarray, " A"]  # the network's own policy over legal actions
    prior_value: float  # the network's own value
    lines: tuple[Line, ...]  # of the 5 best moves, first that of `action`; empty without a tree
    num_simulations: int


class Judgement(NamedTuple):
    """The network's own outputs for N positions, without search."""

    policy: Float[Array, "N A"]  # over all actions, illegal ones included
    value: Float[Array, " N"]  # for the player to move
    embedding: Array  # [N, ...]
    extras: dict[str, Array]  # further heads by name, your own too, [N, ...] each


class HostTree(NamedTuple):
    """The tree of an analysis on the host, [M] nodes; values lie in the range of the game's results."""

    best: int  # the agent's move
    visits: np.ndarray  # [M, A], simulations that took the action
    q: np.ndarray  # [M, A], for the player to move at the node
    prior: np.ndarray  # [M, A]
    children: np.ndarray  # [M, A], indices of nodes
    value: np.ndarray  # [M]
    awaits_chance: np.ndarray  # [M] bool

    def tried(self, node: int) -> list[int]:
        """The actions tried at a node, the most visited first, at the root the agent's move; none for chance."""
        if self.awaits_chance[node]:
            return []
        visits = self.visits[node]
        order = [int(action) for action in np.lexsort((-self.prior[node], -visits)) if visits[action] > 0]
        return sorted(order, key=lambda action: action != self.best) if node == ROOT else order


def read_tree(found: Analysis) -> HostTree:
    """The tree of an analysis that has one."""
    tree = found.tree
    assert tree is not None
    fields = jax.device_get((tree.visits, tree.q, tree.prior, tree.children, tree.value))
    visits, q, prior, children, value = (np.asarray(field)[:, 0] for field in fields)
    return HostTree(
        best=found.action,
        visits=visits,
        q=np.clip(q, -found.most_value, found.most_value),
        prior=prior,
        children=children,
        value=np.clip(value, -found.most_value, found.most_value),
        awaits_chance=np.zeros(len(visits), bool) if tree.is_chance is None else np.asarray(tree.is_chance)[:, 0],
    )


def expected_lines(
    found: Analysis, state: EnvState, move: Move, notation: Notation, *, has_chance: bool, width: int, length: int
) -> tuple[Line, ...]:
    """The `width` best moves of `state`, each with the legal moves that the search expects after it.

    A line has at most `length` moves, but only one in a game with chance whose tree has no chance nodes. There are no
    lines if the search keeps no tree.

    Args:
      move: the environment's, compiled.
    """
    if found.tree is None:
        return ()
    tree = read_tree(found)
    longest = length if found.tree.is_chance is not None or not has_chance else 1
    key = jax.random.key(0) if has_chance else None  # unused, because a line ends where chance acts next

    def line(first: int) -> Line:
        actions = [first]
        texts = [notation.write(state, first)]
        node = int(tree.children[ROOT, first])
        after = state
        while len(actions) < longest and (below := tree.tried(node)):
            after = move(after, jnp.int32(actions[-1]), key).state
            if after.terminated or not after.legal_action_mask[below[0]]:  # a learned model also imagines such moves
                break
            actions.append(below[0])
            texts.append(notation.write(after, below[0]))
            node = int(tree.children[node, below[0]])
        return Line(tuple(texts), tuple(actions), int(tree.visits[ROOT, first]), float(tree.q[ROOT, first]))

    return tuple(line(first) for first in tree.tried(ROOT)[:width])


def search_without_repeats(
    search: Callable[[Bool[np.ndarray, " A"]], Analysis],
    legal_action_mask: Bool[Any, " A"],
    repeats: Callable[[int], bool],
) -> Analysis:
    """The first search whose move does not lose the game by repeating an earlier position, if there is such a move.

    Args:
      search: searches among these moves.
      repeats: whether an action does so, as in Go.
    """
    mask = np.array(legal_action_mask)
    while True:
        found = search(mask)
        if mask.sum() == 1 or not repeats(found.action):
            return found
        mask[found.action] = False
