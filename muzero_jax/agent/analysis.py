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


class Line(NamedTuple):
    """One continuation that the search expects: legal moves, one after the other."""

    moves: tuple[str, ...]  # at most 8, in the game's notation; only one if chance may act next
    actions: tuple[int, ...]  # the same as numbers
    visits: int  # simulations that began with the first move
    value: float  # of the first move, for the side to move


class Analysis(NamedTuple):
    """An agent's analysis of a state. Values are returns for the side to move, in [-1, 1] (or as large as the run's
    `network.support_range`).
    """

    action: int  # the agent's move
    policy: Float[np.ndarray, " A"]  # of the search
    value: float  # of the search
    prior: Float[np.ndarray, " A"]  # the network's own policy over legal actions
    prior_value: float  # the network's own value
    num_simulations: int
    seconds: float  # that the search took
    tree: Tree | None = None  # without embeddings, on the device; None if the search keeps no tree
    most_value: float = 1.0  # the largest return that the network can predict
    lines: tuple[Line, ...] = ()  # from `Agent.analyse`: of the 5 best moves, first that of `action`, if it has a tree

    def best(self, count: int) -> list[int]:
        """The agent's move, then the moves with the largest shares of at least 0.001; at most `count`."""
        order = [int(a) for a in np.argsort(-self.policy, kind="stable") if self.policy[a] >= 1e-3]
        return [self.action, *(action for action in order if action != self.action)][:count]


class Judgement(NamedTuple):
    """The network's own outputs for N positions, without search."""

    policy: Float[Array, "N A"]  # over all actions, illegal ones included
    value: Float[Array, " N"]  # for the player to move
    embedding: Array  # [N, ...]
    extras: dict[str, Array]  # further heads by name, your own too, [N, ...] each


def read_tree(found: Analysis) -> Tree:
    """The tree of an analysis on the host, without the axis of games; q and value lie within the game's results."""
    tree = jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], found.tree)
    q, value = (np.clip(x, -found.most_value, found.most_value) for x in (tree.q, tree.value))
    return tree._replace(q=q, value=value)


def tried(tree: Tree, node: int, first: int | None = None) -> list[int]:
    """The actions tried at a node of `read_tree`: `first`, then the most visited; none where chance acts next."""
    if tree.is_chance is not None and tree.is_chance[node]:
        return []
    visits = tree.visits[node]
    order = [int(action) for action in np.lexsort((-tree.prior[node], -visits)) if visits[action] > 0]
    return sorted(order, key=lambda action: action != first)


def expected_lines(
    found: Analysis,
    state: EnvState,
    move: Move,
    notation: Notation,
    has_chance: bool,
    width: int = 5,
    length: int = 8,
) -> tuple[Line, ...]:
    """The `width` best moves of `state`, each with the legal moves that the search expects after it.

    A line has at most `length` moves, but only one in a game with chance whose tree has no chance nodes. There are no
    lines if the search keeps no tree.
    """
    if found.tree is None:
        return ()
    tree = read_tree(found)
    longest = length if tree.is_chance is not None or not has_chance else 1
    key = jax.random.key(0) if has_chance else None  # unused, because a line ends where chance acts next

    def line(first: int) -> Line:
        actions = [first]
        texts = [notation.write(state, first)]
        node = int(tree.children[ROOT, first])
        after = state
        while len(actions) < longest and (below := tried(tree, node)):
            after = move(after, jnp.int32(actions[-1]), key).state
            action = below[0]
            if after.terminated or not np.asarray(after.legal_action_mask)[action]:  # imagined by a learned model
                break
            actions.append(action)
            texts.append(notation.write(after, action))
            node = int(tree.children[node, action])
        visits = int(tree.visits[ROOT, first])
        return Line(moves=tuple(texts), actions=tuple(actions), visits=visits, value=float(tree.q[ROOT, first]))

    return tuple(line(first) for first in tried(tree, ROOT, found.action)[:width])


def search_without_repeats(
    search: Callable[[np.ndarray], Analysis], legal_action_mask: Bool[Any, " A"], repeats: Callable[[int], bool]
) -> Analysis:
    """The first search among these moves whose move does not lose by repeating a position (in Go), if there is one."""
    mask = np.array(legal_action_mask)
    while True:
        found = search(mask)
        if mask.sum() == 1 or not repeats(found.action):
            return found
        mask[found.action] = False
