"""Search trees as people see them, on a tree made by hand: which moves are kept, what they are called, the picture."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from muzero_jax.apps.play import tree_picture, tree_view
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.search.tree import Tree
from tests.reference.play import fake_thinker, notation, opening

NUM_ACTIONS = 9
# parent, action, visits of that edge, q, prior; node i + 1 is edge i. Below b2 (4), the model dreams that 4 is free.
EDGES = [
    (0, 4, 6, 0.5, 0.3),
    (0, 0, 3, -0.25, 0.4),
    (0, 8, 1, 0.0, 0.1),
    (1, 0, 3, 0.125, 0.6),
    (1, 4, 2, -1.0, 0.2),
    (5, 1, 1, 0.75, 0.2),
    (2, 1, 1, 0.5, 0.5),
]


def hand_made_tree():
    """A tree of ten simulations; the second game of the batch is empty."""
    num_nodes = len(EDGES) + 1
    per_action = {name: np.zeros((num_nodes, 2, NUM_ACTIONS)) for name in ("visits", "q", "prior", "children")}
    for child, (parent, action, *numbers) in enumerate(EDGES, 1):
        for name, number in zip(per_action, [*numbers, child], strict=True):
            per_action[name][parent, 0, action] = number
    per_node = np.zeros((num_nodes, 2))
    per_node[0] = 0.375
    return Tree(
        **{name: array if name != "children" else array.astype(int) for name, array in per_action.items()},
        **dict.fromkeys(("raw_value", "value", "count", "reward", "discount"), per_node),
        **dict.fromkeys(("parent", "action"), per_node.astype(int)),
        embedding=None,
    )


def new():
    return opening("tic_tac_toe"), notation("tic_tac_toe")


def outline(branch):
    """A tree as nested (name or action, visits)."""
    return (branch.text or branch.action, branch.visits, [outline(child) for child in branch.children])


def whole(best=4, depth=9, width=9, **limits):
    return tree_view.branches(hand_made_tree(), best, depth=depth, width=width, **limits)


def test_a_trees_branches_come_with_their_numbers_the_most_visited_first():
    root = whole()
    assert outline(root) == (-1, 10, [(4, 6, [(0, 3, []), (4, 2, [(1, 1, [])])]), (0, 3, [(1, 1, [])]), (8, 1, [])])
    assert (root.q, root.prior, root.is_best) == (0.375, 1.0, True)
    assert (root.children[1].q, root.children[1].prior) == (-0.25, 0.4)
    tree = hand_made_tree()
    root = tree_view.branches(tree._replace(q=tree.q * 8, value=tree.value * 8), 4, depth=9, width=9)
    assert (root.q, [child.q for child in root.children]) == (1.0, [1.0, -1.0, 0.0]), "no more than a win"


def test_limits_cut_and_what_was_cut_is_counted():
    root = whole(depth=1, width=2)
    assert outline(root) == (-1, 10, [(4, 6, []), (0, 3, [])])
    assert (root.hidden, root.children[0].hidden, root.children[1].hidden) == (1, 2, 1)
    assert outline(whole(width_below=1))[2][0] == (4, 6, [(0, 3, [])])
    for limits in ({"depth": 0}, {"width": 0}):
        with pytest.raises(ValueError, match="must be positive"):
            whole(**limits)


def test_the_best_line_starts_with_the_searchs_choice_even_if_others_were_visited_more():
    root = whole(best=0, width=2)
    assert [child.action for child in root.children] == [0, 4]
    assert [child.is_best for child in root.children] == [True, False]
    assert root.children[0].children[0].is_best and not root.children[1].children[0].is_best


def test_a_move_that_search_never_tried_has_no_line_and_no_other_is_marked_in_its_place():
    root = whole(best=7)
    assert [child.action for child in root.children] == [4, 0, 8] and not any(child.is_best for child in root.children)


def test_moves_are_named_as_players_write_them_and_forbidden_ones_are_marked():
    root = tree_view.named(whole(), opening("tic_tac_toe").play(2), notation("tic_tac_toe"))
    best = root.children[0]
    assert outline(best) == ("b2", 6, [("a1", 3, []), ("#4", 2, [("#1", 1, [])])])
    assert [child.is_legal for child in best.children] == [True, False] and not best.children[1].children[0].is_legal


def test_lines_have_the_legal_moves_that_the_search_expects_and_one_move_where_chance_may_act():
    position, moves = new()
    limits = {"width": 9, "length": 9, "most": 1.0}
    found = tree_view.expected(hand_made_tree(), 4, position, moves, **limits)
    assert [[branch.text for branch in line] for line in found] == [["b2", "a1"], ["a1", "b1"], ["c3"]]
    found = tree_view.expected(hand_made_tree(), 4, position._replace(dice=0), moves, **limits)
    assert [[branch.text for branch in line] for line in found] == [["b2"], ["a1"], ["c3"]]


def texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def elements(svg, kind):
    return [
        node.get("class") for node in ElementTree.fromstring(svg).iter() if (node.get("class") or "").startswith(kind)
    ]


def analysis(tree):
    policy = np.full(NUM_ACTIONS, 1 / 9)
    return Analysis(4, policy, 0.25, policy, 0.0, 10, 0.1, tree)


def test_the_picture_has_a_box_a_move_and_the_board_that_was_searched():
    picture = tree_picture.of_analysis(analysis(hand_made_tree()), *new())
    written = texts(picture.svg)
    assert written[0] == "tic_tac_toe, move 1: plays b2 after 10 simulations, value +0.25 for the player to move"
    for text in ("root", "b2", "N 6", "Q +0.50P 30%", "Q -0.25P 40%", "#4", "11%"):
        assert text in written, text
    assert elements(picture.svg, "box").count("box best") == 3  # the root, b2, a1
    assert elements(picture.svg, "box").count("box dreamt") == 2
    assert len(elements(picture.svg, "edge")) == len(EDGES) and len(elements(picture.svg, "board")) == 2
    boxes = [node for node in ElementTree.fromstring(picture.svg).iter() if (node.get("class") or "").startswith("box")]
    places = sorted((float(box.get("x")), float(box.get("y"))) for box in boxes)
    for (x, y), (next_x, next_y) in zip(places, places[1:], strict=False):
        assert next_x >= x + tree_picture.BOX_WIDTH or next_y >= y + tree_picture.BOX_HEIGHT, "boxes overlap"
    assert "prefers-color-scheme: dark" in picture.svg and picture._repr_svg_() == picture.svg
    assert picture.svg.count("http") == 1, "its namespace"
    small = tree_picture.of_analysis(analysis(hand_made_tree()), *new(), depth=1, width=1).svg
    assert len(elements(small, "box")) == 2 and "+2" in texts(small)
    with pytest.raises(ValueError, match="search keeps none"):
        tree_picture.picture(fake_thinker(), *new())
