"""Boards as SVG: what is drawn where, what an overlay writes over it, what a click names; pictures and films."""

import functools
import re
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.play import board_picture, boards, drawing, film, overlay, shapes
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of
from muzero_jax.games.notation import ACTION, action_numbers
from muzero_jax.games.own_game import load_environment
from muzero_jax.games.view import View
from tests.games.test_game import ROW
from tests.reference import tic_tac_toe
from tests.reference.drop import DROP
from tests.reference.play import notation, opening, played

SVG = "{http://www.w3.org/2000/svg}"
of_chance = functools.cache(lambda name: opening_of(load_environment(name), seed=5))


def moves_of(position):
    return make_notation(position.environment)


def board(position, notes=overlay.NOTHING, seat=None):
    return board_picture.board_of(position, moves_of(position), notes, seat)


def own(game, **fields):
    """The opening of a game of one's own."""
    game = game._replace(**fields)
    return opening_of(environment_of(game)._replace(game=game))


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
        ("tic_tac_toe", "b:a1 w:b1 b:a2 w:b2 b:a3", {"path.won": 3}),
        ("connect_four", "b:d w:d", {"stone red": 1, "stone yellow": 1, "last": 1}),
        ("connect_four", "b:a w:b b:a w:b b:a w:b b:a", {"circle.won": 4}),
        ("othello", "", {"stone black": 2, "stone white": 2, "last": 0}),
        ("hex", "b:b3 w:swap-pieces", {"stone black": 0, "stone white": 1, "last": 1}),
        ("gardner_chess", "b:a2a3", {"piece white": 10, "piece black": 10, "path.last": 2}),
    ],
)
def test_every_board_has_its_pieces_and_marks(name, moves, classes):
    svg = board(played(name, moves)).above()
    assert {class_: len(elements(svg, class_)) for class_ in classes} == classes


def test_a_stone_fallen_into_a_column_is_marked_where_it_lies():
    (ring,) = elements(board(played("connect_four", "b:d w:d")).above(), "last")
    assert place(ring) == [3, 4]


def test_each_tile_has_the_colour_of_its_number():
    position = of_chance("2048")
    numbers = jnp.zeros(16, jnp.int32).at[jnp.array([0, 5, 15])].set(jnp.array([1, 11, 17]))
    svg = board(position.new(position.state.replace(_board=numbers))).above()
    assert texts(svg, "tile-number") == ["2", "2048", "131072"]
    assert [tile.get("class") for tile in elements(svg, "tile")] == ["tile t1", "tile t11", "tile t16"]


def test_checkers_lie_where_each_side_counts_them_and_played_dice_are_pale():
    position = of_chance("backgammon")
    svg = board(position).above()
    assert len(elements(svg, "stone red")) == len(elements(svg, "stone blue")) == 15
    once = position.play(position.legal_actions()[0])
    assert (len(elements(svg, "die played")), len(elements(board(once).above(), "die played"))) == (0, 1)
    state = position.state.replace(_board=jnp.zeros(28, jnp.int32).at[23].set(9).at[26].set(6).at[0].set(-15))
    stacked = position.new(state)
    cells = [
        re.findall(r'data-cell="([^"]+)"[^>]*aria-label="([^"]+)"', "".join(board(stacked, seat=s).cells()))
        for s in (0, 1)
    ]
    labels = [dict(found) for found in cells]
    assert labels[0]["1"] == "point 1, 9 of X" and labels[1]["24"] == "point 24, 9 of X"
    assert labels[0]["off"] == labels[1]["their off"] == "X&#x27;s home, 6 of X"
    (nine,) = [e for e in elements(board(stacked).above(), "count") if e.text == "9"]
    assert place(nine)[0] == 12, "point 1 is the last on the right, beside the homes"


def test_a_view_of_ones_own_may_hold_several_stones_words_and_a_caption():
    squares = lambda state: [["XO", "XX", "HOME", "."]]  # noqa: E731
    view = View(squares, colours=("red", "blue"), inks=("red", "blue"), caption=lambda state: "die: 4")
    position = own(ROW, view=view)
    drawn = board(position)
    svg = drawn.above()
    assert (len(elements(svg, "stone red")), len(elements(svg, "stone blue"))) == (3, 1)
    assert texts(svg, "letter") == ["HOME"] and texts(svg, "caption") == ["die: 4"]
    (word,) = elements(svg, "letter")
    assert 4 * 0.62 * float(word.get("font-size")) < shapes.UNIT, "no column is cut off"
    assert drawing.plain(drawing.draw(position, moves_of(position))) == "   RB   RR HOME    .\ndie: 4"
    assert 'aria-label="row 1, column 1, red and blue"' in "".join(drawn.cells())


# --- overlays ---------------------------------------------------------------------------------------------------------


def test_shares_and_values_stand_on_their_cells_the_largest_strongest():
    position = opening("tic_tac_toe")
    shares = overlay.of_shares([0.6, 0.3, 0.004] + 6 * [0.016], choice=1)
    svg = board(position, shares).above()
    assert texts(svg, "number")[:3] == ["60%", "30%", "2%"] and len(elements(svg, "choice")) == 1
    assert [float(e.get("fill-opacity")) for e in elements(svg, "note share")][:2] == pytest.approx(
        [0.87, 0.49], abs=0.01
    )
    values = board(position, overlay.of_values([1.0, -0.5] + 7 * [np.nan])).above()
    assert texts(values, "number") == ["+1.00", "-0.50"]
    assert (len(elements(values, "note good")), len(elements(values, "note bad"))) == (1, 1)


def test_in_a_column_the_note_stands_where_the_stone_will_lie():
    svg = board(played("connect_four", "b:d w:d"), overlay.of_shares({3: 1.0})).above()
    assert [place(e) for e in elements(svg, "number")] == [[3, 3]]


def test_moves_of_two_squares_are_arrows_the_four_strongest_and_the_agents_own():
    position = opening("gardner_chess")
    legal = position.legal_actions()
    notes = overlay.of_shares({action: 0.3 - 0.05 * rank for rank, action in enumerate(legal[:6])}, legal[5])
    svg = board(position, notes).above()
    assert len(elements(svg, "path.arrow")) == 5 and len(elements(svg, "path.arrow of-choice")) == 1


def test_moves_without_a_cell_are_written_below_and_those_that_are_alike_once():
    policy = np.zeros(17)
    policy[5], policy[16] = 0.75, 0.25
    assert "swap-pieces 25%</text>" in board_picture.draw(played("hex", "b:a1"), notation("hex"), policy=policy).svg
    position = of_chance("backgammon")
    passes = np.where(np.arange(position.environment.num_actions) < 6, 1 / 6, 0)
    drawn = board_picture.draw(position, moves_of(position), policy=passes).svg
    assert "pass 17%</text>" in drawn and "pass(2)" not in drawn
    row = own(ROW)  # two actions on three cells: the left and the right end, not the first two cells
    assert "0 25%, 1 75%</text>" in board_picture.draw(row, moves_of(row), policy=[0.25, 0.75]).svg


# --- clicks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page, location, clicked",
    [
        pytest.param("othello", [0, 1, 2, 3, 4, 5, -1], [0, 1, 2, 3, 4, 5], id="cells and a pass"),
        pytest.param("othello", [3, 1, -1], [None, 1, None, 0, None, None], id="two cells, where the layout says so"),
        pytest.param("othello", [0, 0, 1, 3], [None, 2, None, 3, None, None], id="two actions in one cell"),
        pytest.param("othello", [0, 1, 2], [None] * 6, id="fewer actions than cells, merely numbered"),
        pytest.param("connect_four", [0, 1, 2], [0, 1, 2] * 2, id="columns"),
        pytest.param("connect_four", [2, -1, 1], [None, 2, 0] * 2, id="columns, where the layout says so"),
        pytest.param("connect_four", [0, 1, 2, 3], [None] * 6, id="one action more than columns, merely numbered"),
        pytest.param("chess", [0, 1, 2, 3, 4, 5], [None] * 6, id="a move of two clicks"),
    ],
)
def test_a_click_names_the_one_action_of_a_cell_or_column(page, location, clicked):
    drawn = board(own(DROP, view=DROP.view._replace(page=page)))
    drawn.location = boards.action_cells(page, (2, 3), np.array(location))
    assert [drawn.clicked.get(cell) for cell in drawn.every] == clicked


def test_a_borrowed_board_of_columns_has_one_naming_for_clicks_and_text():
    position = own(DROP)
    position = position.play(moves_of(position).read(position.state, "b"))
    clicked = lambda kind: re.findall('data-move="([^"]+)"', "".join(board_picture.board_of(position, kind).cells()))  # noqa: E731
    assert clicked(moves_of(position)) == ["a", "b", "c"] * 2
    assert clicked(make_notation(position.environment, ACTION)) == ["0", "1", "2"] * 2
    assert drawing.plain(drawing.draw(position, moves_of(position))) == "  a b c\n1 . . .\n2 . B ."
    numbered = own(DROP, notation=action_numbers)
    assert drawing.plain(drawing.draw(numbered, moves_of(numbered))) == " . . .\n . . ."


def test_a_plain_board_is_clicked_where_moves_are_written_as_its_cells():
    position = of_chance("examples/nim.py")
    assert board(position).num_clicks == 1 and board(position).clicked[0, 1] == 1
    numbers = make_notation(position.environment, ACTION)
    assert board_picture.board_of(position, numbers).num_clicks == 0


def test_two_clicks_name_a_move_by_the_cells_of_either_side():
    assert board(opening("gardner_chess")).paths()["a2a3"] == ("a2", "a3")
    position = of_chance("backgammon")
    move = moves_of(position).write(position.state, position.legal_actions()[-1])
    start, end = move.split("/")
    mirrored = tuple(str(25 - int(point)) for point in (start, end))
    assert board(position, seat=0).paths()[move] == (start, end) and board(position, seat=1).paths()[move] == mirrored


def test_cells_say_what_they_hold_and_a_turned_board_is_upside_down():
    position = played("gardner_chess", "b:a2a3")
    cells = {seat: "".join(board(position, seat=seat).cells()) for seat in (0, 1)}
    assert (
        'data-row="2" data-column="0" data-cell="a3"' in cells[0]
        and 'aria-label="a3, white pawn, last move"' in cells[0]
    )
    assert 'data-row="2" data-column="4" data-cell="a3"' in cells[1]


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_a_picture_needs_nothing_from_outside_and_pictures_stand_side_by_side():
    one = board_picture.draw(opening("tic_tac_toe"), notation("tic_tac_toe"), title="one")
    both = board_picture.side_by_side(one, board_picture.draw(opening("hex"), notation("hex"), title="other"))
    assert both.width > 2 * one.width and texts(both.svg, "title") == ["one", "other"]
    assert "var(" not in both.svg and "href" not in both.svg and both._repr_svg_() == both.svg
    assert [e.get("class") for e in elements(both.svg, "svg.board")] == 2 * ["board tic_tac_toe"] + 2 * ["board hex"]


def first_legal(position):
    """An agent that plays the first legal action."""
    policy = (position.legal_action_mask() / position.legal_action_mask().sum()).astype(np.float32)
    return Analysis(position.legal_actions()[0], policy, 0.25, policy, 0.0, 1, 0.0)


def test_a_film_shows_a_game_move_by_move_to_its_end_over_one_ground():
    """X wins in the seventh move of 0, 1, 2, ...; the last picture says so."""
    cells, over, count = tic_tac_toe.EMPTY, False, 0
    while not over:
        cells, _, over = tic_tac_toe.play(cells, tic_tac_toe.legal_actions(cells)[0])
        count += 1
    svg = film.film(first_legal, opening("tic_tac_toe"), notation("tic_tac_toe")).svg
    frames = elements(svg, "moment")
    assert len(frames) == count + 1 == 8 and len(elements(svg, "ground")) == 1
    marks = [len([e for e in frame.iter() if "mark" in (e.get("class") or "").split()]) for frame in frames]
    assert marks == list(range(8))
    assert "value +0.25" in ElementTree.tostring(frames[0], "unicode") and "X wins" in ElementTree.tostring(
        frames[-1], "unicode"
    )


def test_frames_follow_one_another_and_the_last_stands_where_nothing_moves():
    blank = board_picture.framed("", 10.0, 20.0)
    svg = film.animate([blank, blank, blank]).svg
    total = 2 * film.SECONDS + film.LAST_SECONDS
    delays = [float(found) for found in re.findall(r"animation-delay:([-\d.]+)s", svg)]
    assert max(delays) == 0, "or the last would hide the others until its turn has come"
    assert [delay % total for delay in delays] == pytest.approx([0, film.SECONDS, 2 * film.SECONDS], abs=0.01)
    shown = [float(found) / 100 * total for found in re.findall(r"([\d.]+)%{visibility:hidden}", svg)]
    assert shown == pytest.approx([film.SECONDS, film.LAST_SECONDS], abs=0.01)
    assert "prefers-reduced-motion: reduce){.moment{animation:none}}" in svg
    assert ".moment:last-child{visibility:visible" in svg


def test_a_long_game_is_shown_at_as_many_moves_as_asked_and_any_game_has_a_film(monkeypatch):
    monkeypatch.setattr(film, "MOST_MOVES", 40)
    svg = film.film(first_legal, of_chance("2048"), moves_of(of_chance("2048")), most_pictures=5).svg
    points = [int(text.split()[0].replace(",", "")) for text in texts(svg, "title")[:-1]]
    assert len(points) == 5 and points[0] == 0 and points == sorted(points)
    own_game = of_chance("examples/pig.py").play(1)
    assert len(elements(film.film(first_legal, own_game, moves_of(own_game), 3).svg, "moment")) == 4
