"""A search tree for people: branches of moves, of which only the most visited are kept.

The tree of a search is arrays on the device. Below the root a learned model knows no rules, so it also imagines illegal
moves. Moves are therefore named by playing them in the real game as far as possible, and moves that its rules forbid
are marked.
"""

from typing import NamedTuple

import jax
import numpy as np

from muzero_jax.apps.play.position import Position
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.notation import Notation
from muzero_jax.search.tree import ROOT

NO_ACTION = -1
"""The action of the root, to which no action leads."""


class Branch(NamedTuple):
    """A node, with the edge that leads to it."""

    action: int
    visits: int  # simulations that took the edge; at the root, all of them
    q: float  # of the edge, for the player who moves; at the root, the mean of all simulations
    prior: float  # of the edge; 1 at the root
    is_best: bool  # on the line that the search expects: the root, its choice, then the most visited moves
    hidden: int = 0  # visited moves of this node that are not among `children`
    children: tuple["Branch", ...] = ()
    text: str = ""  # the move in the game's notation; "#" and its number if the real game does not reach it
    is_legal: bool = True  # False if the rules forbid this move or one above it


def branches(found: Analysis, *, depth: int, width: int, width_below: int | None = None) -> Branch:
    """The tree of a search down to `depth` moves, with the `width` most visited moves of every node.

    Branches end where chance acts next. The agent's move comes first and is kept, if the search tried it.

    Args:
      width_below: as `width`, for nodes below the root; 1 gives lines instead of a tree.
    """
    tree = found.tree
    best = found.action
    most = found.most_value
    assert tree is not None
    fields = jax.device_get((tree.visits, tree.q, tree.prior, tree.children, tree.value))
    visits, q, prior, children, value = (np.asarray(field)[:, 0] for field in fields)
    q, value = (np.clip(x, -most, most) for x in (q, value))  # into the range of the game's results
    ends = np.zeros(len(visits), bool) if tree.is_chance is None else np.asarray(tree.is_chance)[:, 0]

    def grow(branch: Branch, node: int, left: int) -> Branch:
        tried = visits[node] > 0 if not ends[node] else np.zeros(visits.shape[1], bool)
        order = [int(a) for a in np.lexsort((-prior[node], -visits[node])) if tried[a]]
        if node == ROOT and best in order:
            order = [best, *(a for a in order if a != best)]
        limit = width if node == ROOT or width_below is None else width_below
        kept = order[:limit] if left else []
        edges = [(a, int(visits[node, a]), float(q[node, a]), float(prior[node, a])) for a in kept]
        expected = best if node == ROOT else order[0] if order else NO_ACTION
        below = [Branch(*edge, is_best=branch.is_best and edge[0] == expected) for edge in edges]
        grown = tuple(grow(child, int(children[node, child.action]), left - 1) for child in below)
        return branch._replace(hidden=len(order) - len(kept), children=grown)

    return grow(Branch(NO_ACTION, int(visits[ROOT].sum()), float(value[ROOT]), 1.0, True), ROOT, depth)


def named(root: Branch, position: Position, notation: Notation) -> Branch:
    """`root` (at `position`), with `text` and `is_legal` filled in below it."""
    return root._replace(children=tuple(_named(child, position, notation) for child in root.children))


def _named(branch: Branch, position: Position, notation: Notation) -> Branch:
    if not position.legal_action_mask()[branch.action]:
        return _dreamt(branch)
    text = notation.write(position.state, branch.action)
    return named(branch._replace(text=text), position.play(branch.action), notation)


def _dreamt(branch: Branch) -> Branch:
    """A branch that the real game does not reach; without a state, its moves are named by numbers."""
    children = tuple(_dreamt(child) for child in branch.children)
    return branch._replace(text=f"#{branch.action}", is_legal=False, children=children)


def expected(found: Analysis, position: Position, notation: Notation, *, width: int, length: int) -> list[list[Branch]]:
    """The `width` best moves of `position`, each with the legal moves that the search expects after it.

    A line has at most `length` moves, but only one in a game with chance whose tree has no chance nodes. There are no
    lines if the search keeps no tree.
    """
    if found.tree is None:
        return []
    is_certain = found.tree.is_chance is not None or not position.has_chance
    root = branches(found, depth=length if is_certain else 1, width=width, width_below=1)
    return [[branch for branch in line if branch.is_legal] for line in lines(named(root, position, notation))]


def lines(root: Branch) -> list[list[Branch]]:
    """Each of the root's moves, followed by the first child of each branch."""
    return [[branch, *(lines(branch)[0] if branch.children else [])] for branch in root.children]
