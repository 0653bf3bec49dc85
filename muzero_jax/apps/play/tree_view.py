"""A search tree for people: branches of moves, of which only the most visited are kept.

The tree of a search is arrays on the device. Below the root a learned model knows no rules, so it also imagines illegal
moves. Moves are therefore named by playing them in the real game as far as possible, and moves that its rules forbid
are marked.
"""

from typing import NamedTuple

from muzero_jax.agent.analysis import Analysis, read_tree, tried
from muzero_jax.apps.play.position import Position
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


def branches(found: Analysis, *, depth: int, width: int) -> Branch:
    """The tree of a search down to `depth` moves, with the `width` most visited moves of every node.

    Branches end where chance acts next. The agent's move comes first and is kept, if the search tried it.
    """
    tree = read_tree(found)

    def grow(branch: Branch, node: int, left: int) -> Branch:
        order = tried(tree, node, found.action if node == ROOT else None)
        kept = order[:width] if left else []
        expected = found.action if node == ROOT else order[0] if order else NO_ACTION
        children = []
        for action in kept:
            child = Branch(
                action=action,
                visits=int(tree.visits[node, action]),
                q=float(tree.q[node, action]),
                prior=float(tree.prior[node, action]),
                is_best=branch.is_best and action == expected,
            )
            children.append(grow(child, int(tree.children[node, action]), left - 1))
        return branch._replace(hidden=len(order) - len(kept), children=tuple(children))

    root = Branch(
        action=NO_ACTION, visits=int(tree.visits[ROOT].sum()), q=float(tree.value[ROOT]), prior=1.0, is_best=True
    )
    return grow(root, ROOT, depth)


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
