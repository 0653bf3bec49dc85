"""A board as SVG: what is drawn where, and what is written over it."""

import re
from xml.etree import ElementTree

import numpy as np

from muzero_jax.apps.play import board_picture
from muzero_jax.apps.play.position import new_game
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of
from tests.games.test_game import ROW
from tests.reference.play import notation, played

SVG = "{http://www.w3.org/2000/svg}"


def draw(name, text="", **options):
    return board_picture.draw(played(name, text), notation(name), **options)


def elements(picture, tag):
    return list(ElementTree.fromstring(picture.svg).iter(SVG + tag))


def texts(picture):
    return [element.text for element in elements(picture, "text") if element.text]


def test_a_square_board_has_a_square_for_each_cell_and_a_circle_for_each_stone():
    picture = draw("tic_tac_toe", "b:a1 w:b2")
    assert {len(cell.get("points").split()) for cell in elements(picture, "polygon")} == {4}
    stones = elements(picture, "circle")
    assert [stone.get("fill") for stone in stones] == [board_picture.INKS["red"], board_picture.INKS["blue"]]
    first, second = ((float(stone.get("cx")), float(stone.get("cy"))) for stone in stones)
    assert np.subtract(second, first).tolist() == [board_picture.CELL, board_picture.CELL]


def test_a_leaning_board_has_hexagons_and_its_owners_edges():
    picture = draw("hex")
    assert [len(cell.get("points").split()) for cell in elements(picture, "polygon")] == [6] * 16
    bars = [line.get("stroke") for line in elements(picture, "line")]
    black, white = board_picture.INKS["black"], board_picture.INKS["white"]
    assert [ink for ink in bars if ink in (black, white)] == [black, black, white, white]


def test_a_share_is_written_on_its_cell_and_one_without_a_cell_below_the_board():
    policy = np.zeros(17)
    policy[5], policy[16] = 0.75, 0.25
    picture = draw("hex", "b:a1", policy=policy)
    assert "75%" in texts(picture) and "swap-pieces 25%" in texts(picture)
    assert len([text for text in texts(picture) if "%" in text]) == 2


def test_a_won_value_is_blue_a_lost_one_red_and_an_unknown_one_is_left_out():
    values = np.full(9, np.nan)
    values[0], values[1] = 1.0, -1.0
    picture = draw("tic_tac_toe", values=values)
    fills = [cell.get("fill") for cell in elements(picture, "polygon")]
    assert fills[:3] == ["#2e6fab", "#c83c3c", board_picture.EMPTY]
    assert re.findall(r"[+-]\d\.\d\d", " ".join(texts(picture))) == ["+1.00", "-1.00"]


def test_pictures_stand_side_by_side():
    one = draw("tic_tac_toe", title="one")
    both = board_picture.side_by_side(one, draw("hex", title="other"))
    assert both.width > 2 * one.width and texts(both).count("one") == 1
    assert len(elements(both, "polygon")) == 9 + 16


def test_actions_of_which_nobody_said_where_they_lie_are_written_below_the_board():
    """Two actions on three cells: they are the left and the right end, not the first two cells."""
    environment = environment_of(ROW)._replace(game=ROW)
    picture = board_picture.draw(new_game(environment), make_notation(environment), policy=[0.25, 0.75])
    assert texts(picture) == ["0 25%, 1 75%"]
