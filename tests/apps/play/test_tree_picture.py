"""Search trees as people see them, on a tree made by hand: which moves are kept, what they are called, the picture."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from muzero_jax.apps.commands import play
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
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


def test_no_branch_is_worth_more_than_a_win():
    tree = hand_made_tree()
    root = tree_view.branches(tree._replace(q=tree.q * 8, value=tree.value * 8), 4, depth=9, width=9)
    assert (root.q, [child.q for child in root.children]) == (1.0, [1.0, -1.0, 0.0])


def test_a_trees_branches_come_with_their_numbers_the_most_visited_first():
    root = whole()
    assert outline(root) == (-1, 10, [(4, 6, [(0, 3, []), (4, 2, [(1, 1, [])])]), (0, 3, [(1, 1, [])]), (8, 1, [])])
    assert (root.q, root.prior, root.is_best) == (0.375, 1.0, True)
    assert (root.children[1].q, root.children[1].prior) == (-0.25, 0.4)


def test_limits_cut_and_what_was_cut_is_counted():
    root = whole(depth=1, width=2)
    assert outline(root) == (-1, 10, [(4, 6, []), (0, 3, [])])
    assert (root.hidden, root.children[0].hidden, root.children[1].hidden) == (1, 2, 1)
    assert outline(whole(width_below=1))[2][0] == (4, 6, [(0, 3, [])])


def test_the_best_line_starts_with_the_searchs_choice_even_if_others_were_visited_more():
    root = whole(best=0, width=2)
    assert [child.action for child in root.children] == [0, 4]
    assert [child.is_best for child in root.children] == [True, False]
    assert root.children[0].children[0].is_best and not root.children[1].children[0].is_best


def test_a_move_that_search_never_tried_has_no_line_and_no_other_is_marked_in_its_place():
    root = whole(best=7)
    assert [child.action for child in root.children] == [4, 0, 8] and not any(child.is_best for child in root.children)


@pytest.mark.parametrize("limits", [{"depth": 0}, {"width": 0}])
def test_a_limit_that_is_not_positive_is_refused(limits):
    with pytest.raises(ValueError, match="is 0, but must be"):
        whole(**limits)


def test_moves_are_named_as_players_write_them_and_forbidden_ones_are_marked():
    root = tree_view.named(whole(), opening("tic_tac_toe").play(2), notation("tic_tac_toe"))
    best = root.children[0]
    assert outline(best) == ("b2", 6, [("a1", 3, []), ("#4", 2, [("#1", 1, [])])])
    assert [child.is_legal for child in best.children] == [True, False] and not best.children[1].children[0].is_legal


def test_lines_follow_the_first_child():
    root = tree_view.named(whole(), *new())
    assert [[branch.text for branch in line] for line in tree_view.lines(root)] == [["b2", "a1"], ["a1", "b1"], ["c3"]]


def texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def elements(svg, kind):
    return [
        node.get("class") for node in ElementTree.fromstring(svg).iter() if (node.get("class") or "").startswith(kind)
    ]


def analysis(tree):
    policy = np.full(NUM_ACTIONS, 1 / 9)
    return Analysis(4, policy, 0.25, policy, 0.0, 10, 0.1, tree)


def test_the_picture_has_a_box_a_move_with_visits_value_and_prior():
    drawing = tree_picture.of_analysis(analysis(hand_made_tree()), *new())
    written = texts(drawing.svg)
    assert written[0] == "tic_tac_toe, move 1: plays b2 after 10 simulations, value +0.25 for the player to move"
    for text in ("root", "b2", "N 6", "Q +0.50P 30%", "Q -0.25P 40%", "#4"):
        assert text in written, text
    assert elements(drawing.svg, "box").count("box best") == 3  # the root, b2, a1
    assert elements(drawing.svg, "box").count("box dreamt") == 2
    assert len(elements(drawing.svg, "edge")) == len(EDGES)


def test_the_picture_is_no_larger_than_its_limits_and_says_what_it_leaves_out():
    drawing = tree_picture.of_analysis(analysis(hand_made_tree()), *new(), depth=1, width=1)
    assert len(elements(drawing.svg, "box")) == 2 and "+2" in texts(drawing.svg)


def test_the_picture_needs_nothing_from_outside_and_a_notebook_shows_it(tmp_path):
    drawing = tree_picture.of_analysis(analysis(hand_made_tree()), *new())
    assert drawing._repr_svg_() == drawing.svg and "prefers-color-scheme: dark" in drawing.svg
    assert "href" not in drawing.svg and "url(" not in drawing.svg and drawing.svg.count("http") == 1  # its namespace
    drawing.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == drawing.svg


def test_boxes_do_not_overlap():
    svg = tree_picture.of_analysis(analysis(hand_made_tree()), *new()).svg
    boxes = [node for node in ElementTree.fromstring(svg).iter() if (node.get("class") or "").startswith("box")]
    places = sorted((float(box.get("x")), float(box.get("y"))) for box in boxes)
    for (x, y), (next_x, next_y) in zip(places, places[1:], strict=False):
        assert next_x >= x + tree_picture.BOX_WIDTH or next_y >= y + tree_picture.BOX_HEIGHT


def test_a_search_that_keeps_no_tree_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="search keeps none"):
        tree_picture.picture(fake_thinker(), *new())


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_draws_the_tree_of_any_position(untrained_run, tmp_path):
    flags = f"--run {untrained_run} --tree {tmp_path}/out.svg --depth 2 --width 3 --moves".split()
    assert play.main([*flags, "b2 a1"]) == 0
    svg = (tmp_path / "out.svg").read_text()
    assert re.match("tic_tac_toe, move 3: plays [a-c][1-3] after 4 simulations, value", texts(svg)[0])
    visits = [int(text[2:]) for text in texts(svg) if text.startswith("N ")]
    assert visits[0] == 4 and 2 <= len(visits) <= 1 + 3 + 9
    assert elements(svg, "box").count("box best") >= 2


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--tree", "x.svg", "--moves", "b2 b2"], "--moves: b2 is move 2: illegal move"),
        (["--tree", "x.svg", "--moves", "z9"], "--moves: z9 is move 1: invalid coordinate"),
        (["--tree", "x.svg", "--depth", "0"], "--depth is 0, but must be"),
        (["--tree", "x.svg", "--web"], "choose one of --engine, --web, --tree and --film"),
        (["--tree", "x.png"], "--tree draws SVG: name a file that ends in .svg, not x.png"),
        (["--tree", "x"], "--tree draws SVG"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(untrained_run, capsys, monkeypatch, tmp_path, flags, says):
    monkeypatch.chdir(tmp_path)
    assert report_errors(play.main, ["--run", str(untrained_run), *flags]) == EXIT_ERROR
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
