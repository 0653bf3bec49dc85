"""Pictures as people see them: boards with what an overlay writes and what a click names, films, search trees."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from muzero_jax.apps.play import board_picture, boards, drawing, film, looks, overlay, shapes, tree_picture, tree_view
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of, make_environment
from muzero_jax.games.game import Game
from muzero_jax.games.view import PAGES, PIXELS, View
from muzero_jax.search.tree import Tree
from tests.reference.drop import DROP
from tests.reference.play import notation, of_chance, opening, played

SVG = "{http://www.w3.org/2000/svg}"


def moves_of(position):
    return make_notation(position.environment)


def board(position, notes=overlay.NOTHING, seat=None):
    return looks.board_of(position, moves_of(position), notes, seat)


def elements(svg, selector):
    """The elements of a class, as `class`, or `tag.class`; all words of a class must be there."""
    tag, _, words = selector.rpartition(".")
    found = ElementTree.fromstring(svg if svg.startswith("<svg") else f'<svg xmlns="{SVG[1:-1]}">{svg}</svg>').iter()
    wanted = set(words.split())
    return [
        e for e in found if wanted <= set((e.get("class") or "").split()) and e.tag in (SVG + tag, e.tag * (not tag))
    ]


def texts(svg, class_):
    return [element.text for element in elements(svg, class_)]


def place(element):
    """The middle of a circle or a text, in cells."""
    names = ("x", "y") if element.tag == SVG + "text" else ("cx", "cy")
    return [float(element.get(name)) / shapes.UNIT for name in names]


# --- boards -----------------------------------------------------------------------------------------------------------


def test_stones_stand_in_their_cells_and_the_last_one_is_ringed():
    svg = board(played("hex", "b:a1 w:c2")).above()
    (black,), (white,), (ring,) = (elements(svg, c) for c in ("stone black", "stone white", "last"))
    assert place(black) == [0, 0] and place(white) == place(ring) == pytest.approx([2.5, shapes.ROW], abs=0.01)
    assert texts(board(opening("hex")).ground(), "edge-name") == ["black", "black", "white", "white"]


@pytest.mark.parametrize(
    "name, moves, classes",
    [
        ("tic_tac_toe", "b:a1 w:b2", {"path.mark red": 1, "circle.mark blue": 1, "last": 1}),
        ("connect_four", "b:a w:b b:a w:b b:a w:b b:a", {"stone red": 4, "stone yellow": 3, "circle.won": 4}),
        ("hex", "b:b3 w:swap-pieces", {"stone black": 0, "stone white": 1, "last": 1}),
    ],
)
def test_every_board_has_its_pieces_and_marks(name, moves, classes):
    svg = board(played(name, moves)).above()
    assert {class_: len(elements(svg, class_)) for class_ in classes} == classes


def test_every_page_that_a_view_may_name_has_a_look():
    assert set(looks.LOOKS) == set(PAGES)


# --- overlays ---------------------------------------------------------------------------------------------------------


def test_shares_and_values_are_written_on_their_cells():
    position = opening("tic_tac_toe")
    shares = overlay.of_shares([0.6, 0.3, 0.004] + 6 * [0.016], choice=1)
    svg = board(position, shares).above()
    assert texts(svg, "number")[:3] == ["60%", "30%", "2%"] and len(elements(svg, "choice")) == 1
    values = board(position, overlay.of_values([1.0, -0.5] + 7 * [np.nan])).above()
    assert texts(values, "number") == ["+1.00", "-0.50"]
    assert (len(elements(values, "note good")), len(elements(values, "note bad"))) == (1, 1)


def test_moves_without_a_cell_are_listed_below_and_equivalent_ones_once():
    policy = np.zeros(17)
    policy[5], policy[16] = 0.75, 0.25
    assert "swap-pieces 25%</text>" in board_picture.draw(played("hex", "b:a1"), notation("hex"), policy=policy).svg
    position = of_chance("backgammon")
    passes = np.where(np.arange(position.environment.num_actions) < 6, 1 / 6, 0)
    drawn = board_picture.draw(position, moves_of(position), policy=passes).svg
    assert "pass 17%</text>" in drawn and "pass(2)" not in drawn


# --- clicks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page, location, clicked",
    [
        pytest.param("othello", [0, 1, 2, 3, 4, 5, -1], [0, 1, 2, 3, 4, 5], id="cells and a pass"),
        pytest.param("othello", [3, 1, -1], [None, 1, None, 0, None, None], id="two cells, where the layout says so"),
        pytest.param("othello", [0, 0, 1, 3], [None, 2, None, 3, None, None], id="two actions in one cell"),
        pytest.param("connect_four", [0, 1, 2], [0, 1, 2] * 2, id="columns"),
        pytest.param("connect_four", [2, -1, 1], [None, 2, 0] * 2, id="columns, where the layout says so"),
        pytest.param("chess", [0, 1, 2, 3, 4, 5], [None] * 6, id="a move of two clicks"),
    ],
)
def test_a_click_names_the_one_action_of_a_cell_or_column(page, location, clicked):
    game = DROP._replace(view=DROP.view._replace(page=page))
    drawn = board(opening_of(environment_of(game)._replace(game=game)))
    drawn.location = boards.action_cells(drawn.look, (2, 3), np.array(location))
    assert [drawn.clicked.get(cell) for cell in drawn.every] == clicked


def test_two_clicks_name_a_move_by_the_cells_of_either_side():
    position = of_chance("backgammon")
    move = moves_of(position).write(position.state, position.legal_actions()[-1])
    start, end = move.split("/")
    mirrored = tuple(str(25 - int(point)) for point in (start, end))
    assert board(position, seat=0).paths()[move] == (start, end) and board(position, seat=1).paths()[move] == mirrored


# --- pictures ---------------------------------------------------------------------------------------------------------


def first_legal(position):
    """An agent that plays the first legal action."""
    policy = (position.legal_action_mask() / position.legal_action_mask().sum()).astype(np.float32)
    return Analysis(position.legal_actions()[0], policy, 0.25, policy, 0.0, 1, 0.0)


def test_a_film_shows_a_game_move_by_move_to_its_end_over_one_ground():
    """X wins with the seventh move of 0, 1, 2, ..., and the last picture says so."""
    svg = film.film(first_legal, opening("tic_tac_toe"), notation("tic_tac_toe")).svg
    frames = elements(svg, "moment")
    marks = [len([e for e in frame.iter() if "mark" in (e.get("class") or "").split()]) for frame in frames]
    assert marks == list(range(8)) and len(elements(svg, "ground")) == 1
    first, last = (ElementTree.tostring(frames[at], "unicode") for at in (0, -1))
    assert "value +0.25" in first and "X wins" in last
    delays = [float(found) for found in re.findall(r"animation-delay:([-\d.]+)s", svg)]
    assert max(delays) == 0, "or the last would hide the others until its turn has come"


def test_a_long_game_is_shown_at_as_many_moves_as_asked(monkeypatch):
    monkeypatch.setattr(film, "MOST_MOVES", 40)
    svg = film.film(first_legal, of_chance("2048"), moves_of(of_chance("2048")), most_pictures=5).svg
    points = [int(text.split()[0].replace(",", "")) for text in texts(svg, "title")[:-1]]
    assert len(points) == 5 and points[0] == 0 and points == sorted(points)


# --- a screen of pixels -----------------------------------------------------------------------------------------------

ROWS = ["##.+", "..##", "+...", "#..#"]


@pytest.fixture(scope="module")
def screen():
    view = View(lambda state: [list(row) for row in ROWS], page=PIXELS, pace=1000 / 15)
    environment = make_environment("minatar-breakout")
    return opening_of(environment._replace(game=Game("screen", "Screen", view=view)))


def test_neighbours_in_a_row_are_one_bar_and_nothing_can_be_clicked(screen):
    drawn = board(screen)
    paths = dict(re.findall(r'<path class="(\w+)" d="([^"]*)"/>', drawn.above()))
    assert re.findall(r"M(-?\d+) (-?\d+)h(\d+)", paths["lit"]) == [
        ("-20", "-20", "80"),
        ("60", "20", "80"),
        ("-20", "100", "40"),
        ("100", "100", "40"),
    ]
    assert re.findall(r"M(-?\d+) (-?\d+)h(\d+)", paths["fading"]) == [("100", "-20", "40"), ("-20", "60", "40")]
    assert "data-cell" not in drawn.svg() and drawn.num_clicks == 0


def test_the_terminal_shows_two_rows_in_each_line(screen):
    lines = drawing.draw(screen, moves_of(screen))
    assert drawing.plain(lines) == "▀▀▄█\n█  ▄"


def test_a_film_of_a_screen_shows_every_move_as_fast_as_it_is_played(screen):
    policy = np.array([1.0, 0.0, 0.0])
    found = Analysis(0, policy, 0.5, policy, 0.5, 8, 0.1)
    made = film.film(lambda position: found, screen, moves_of(screen), most_pictures=5)
    assert made.svg.count('class="moment"') == 6, "and where it ended"
    delays = [float(delay) for delay in re.findall(r"animation-delay:(-?[\d.]+)s", made.svg)]
    assert np.diff(delays[1:]) == pytest.approx(1 / 15, abs=2e-4), "no moment without a picture, which would flicker"


def test_the_line_of_values_ends_at_the_ply_that_is_shown_and_keeps_zero_in_sight():
    assert overlay.history({4: 0.5}, 4) == ""
    line = overlay.history({2: 1.0, 3: 3.0, 4: -1.0, 9: 7.0}, 4)
    (points,) = re.findall(r'class="values" d="M([^"]*)"', line)
    assert [tuple(map(float, point.split())) for point in points.split("L")] == [(0, 3), (20, 0), (40, 6)]
    assert "from -1.00 to +3.00" in line and 'd="M0 4.5L40 4.5"' in line


# --- search trees -----------------------------------------------------------------------------------------------------

NUM_ACTIONS = 9
# parent, action, visits of that edge, q, prior; node i + 1 is edge i. Below b2 (4), the model believes that 4 is free.
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


def analysis(tree, action=4):
    policy = np.full(NUM_ACTIONS, 1 / 9)
    return Analysis(action, policy, 0.25, policy, 0.0, 10, 0.1, tree)


def new():
    return opening("tic_tac_toe"), notation("tic_tac_toe")


def outline(branch):
    """A tree as nested (name or action, visits)."""
    return (branch.text or branch.action, branch.visits, [outline(child) for child in branch.children])


def whole(best=4, depth=9, width=9, **limits):
    return tree_view.branches(analysis(hand_made_tree(), best), depth=depth, width=width, **limits)


def test_a_trees_branches_come_with_their_numbers_the_most_visited_first():
    root = whole()
    assert outline(root) == (-1, 10, [(4, 6, [(0, 3, []), (4, 2, [(1, 1, [])])]), (0, 3, [(1, 1, [])]), (8, 1, [])])
    assert (root.q, root.children[1].q, root.children[1].prior) == (0.375, -0.25, 0.4)
    tree = hand_made_tree()
    root = tree_view.branches(analysis(tree._replace(q=tree.q * 8, value=tree.value * 8)), depth=9, width=9)
    assert (root.q, [child.q for child in root.children]) == (1.0, [1.0, -1.0, 0.0]), "no more than a win"


def test_the_best_line_starts_with_the_searchs_choice_even_if_others_were_visited_more():
    root = whole(best=0, width=2)
    assert [child.action for child in root.children] == [0, 4]
    assert [child.is_best for child in root.children] == [True, False]
    assert root.children[0].children[0].is_best and not root.children[1].children[0].is_best


def test_the_picture_has_a_box_a_move_and_the_board_that_was_searched():
    picture = tree_picture.picture(analysis(hand_made_tree()), *new())
    written = ["".join(text.itertext()) for text in ElementTree.fromstring(picture.svg).iter(SVG + "text")]
    assert "plays b2 after 10 simulations, value +0.25" in written[0]
    for text in ("root", "b2", "N 6", "Q +0.50P 30%", "Q -0.25P 40%", "#4", "11%"):
        assert text in written, text
    assert len(elements(picture.svg, "box best")) == 3  # the root, b2, a1
    assert len(elements(picture.svg, "box dreamt")) == 2
    small = tree_picture.picture(analysis(hand_made_tree()), *new(), depth=1, width=1).svg
    assert len(elements(small, "box")) == 2 and "+2" in small
    with pytest.raises(ValueError, match="search keeps none"):
        tree_picture.picture(analysis(None), *new())
