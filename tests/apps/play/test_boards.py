"""Boards as SVG: what is drawn where, what an overlay writes over it, what a click names; pictures and films."""

import functools
import re
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.play import board_picture, boards, film, overlay, shapes
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of
from muzero_jax.games.own_game import load_environment
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
        ("connect_four", "b:d w:d", {"stone red": 1, "stone yellow": 1, "last": 1}),
        ("connect_four", "b:a w:b b:a w:b b:a w:b b:a", {"circle.won": 4}),
        ("hex", "b:b3 w:swap-pieces", {"stone black": 0, "stone white": 1, "last": 1}),
        ("gardner_chess", "b:a2a3", {"piece white": 10, "piece black": 10, "path.last": 2}),
    ],
)
def test_every_board_has_its_pieces_and_marks(name, moves, classes):
    svg = board(played(name, moves)).above()
    assert {class_: len(elements(svg, class_)) for class_ in classes} == classes


def test_checkers_lie_where_each_side_counts_them_and_played_dice_are_pale():
    position = of_chance("backgammon")
    svg = board(position).above()
    assert len(elements(svg, "stone red")) == len(elements(svg, "stone blue")) == 15
    once = position.play(position.legal_actions()[0])
    assert (len(elements(svg, "die played")), len(elements(board(once).above(), "die played"))) == (0, 1)
    state = position.state.replace(_board=jnp.zeros(28, jnp.int32).at[23].set(9).at[26].set(6).at[0].set(-15))
    stacked = position.new(state)
    cells = ["".join(board(stacked, seat=seat).cells()) for seat in (0, 1)]
    first, second = (dict(re.findall(r'data-cell="([^"]+)"[^>]*aria-label="([^"]+)"', text)) for text in cells)
    assert first["1"] == "point 1, 9 of X" and second["24"] == "point 24, 9 of X"
    assert first["off"] == second["their off"] == "X&#x27;s home, 6 of X"
    (nine,) = [e for e in elements(board(stacked).above(), "count") if e.text == "9"]
    assert place(nine)[0] == 12, "point 1 is the last on the right, beside the homes"


# --- overlays ---------------------------------------------------------------------------------------------------------


def test_shares_and_values_stand_on_their_cells_the_largest_strongest():
    position = opening("tic_tac_toe")
    shares = overlay.of_shares([0.6, 0.3, 0.004] + 6 * [0.016], choice=1)
    svg = board(position, shares).above()
    assert texts(svg, "number")[:3] == ["60%", "30%", "2%"] and len(elements(svg, "choice")) == 1
    values = board(position, overlay.of_values([1.0, -0.5] + 7 * [np.nan])).above()
    assert texts(values, "number") == ["+1.00", "-0.50"]
    assert (len(elements(values, "note good")), len(elements(values, "note bad"))) == (1, 1)


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
    drawn = board(own(DROP, view=DROP.view._replace(page=page)))
    drawn.location = boards.action_cells(page, (2, 3), np.array(location))
    assert [drawn.clicked.get(cell) for cell in drawn.every] == clicked


def test_two_clicks_name_a_move_by_the_cells_of_either_side():
    assert board(opening("gardner_chess")).paths()["a2a3"] == ("a2", "a3")
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
    """X wins in the seventh move of 0, 1, 2, ...; the last picture says so."""
    svg = film.film(first_legal, opening("tic_tac_toe"), notation("tic_tac_toe")).svg
    frames = elements(svg, "frame")
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
