"""A screen of pixels in a picture, in the terminal and in a film; the line of values on the page."""

import re

import numpy as np
import pytest

from muzero_jax.apps.play import board_picture, drawing, film, overlay
from muzero_jax.apps.play.boards import svg
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.games.game import Game
from muzero_jax.games.view import PIXELS, View

ROWS = ["##.+", "..##", "+...", "#..#"]


@pytest.fixture(scope="module")
def position():
    view = View(lambda state: [list(row) for row in ROWS], page=PIXELS)
    environment = make_environment("minatar-breakout")
    return opening_of(environment._replace(game=Game("screen", "Screen", view=view)))


def test_neighbours_in_a_row_are_one_bar_and_nothing_can_be_clicked(position):
    board = board_picture.board_of(position, make_notation(position.environment))
    paths = dict(re.findall(r'<path class="(\w+)" d="([^"]*)"/>', board.above()))
    assert re.findall(r"M(-?\d+) (-?\d+)h(\d+)", paths["lit"]) == [
        ("-20", "-20", "80"),
        ("60", "20", "80"),
        ("-20", "100", "40"),
        ("100", "100", "40"),
    ]
    assert re.findall(r"M(-?\d+) (-?\d+)h(\d+)", paths["fading"]) == [("100", "-20", "40"), ("-20", "60", "40")]
    assert "data-cell" not in svg(board) and board.num_clicks == 0


def test_the_terminal_shows_two_rows_in_each_line(position):
    lines = drawing.draw(position, make_notation(position.environment))
    assert drawing.plain(lines) == "▀▀▄█\n█  ▄"


def test_a_film_of_a_screen_shows_every_move_as_fast_as_it_is_played(position):
    policy = np.array([1.0, 0.0, 0.0])
    found = Analysis(0, policy, 0.5, policy, 0.5, 8, 0.1)
    made = film.film(lambda position: found, position, make_notation(position.environment), most_pictures=5)
    assert made.svg.count('class="moment"') == 6, "and where it ended"
    delays = [float(delay) for delay in re.findall(r"animation-delay:(-?[\d.]+)s", made.svg)]
    assert np.diff(delays[1:]) == pytest.approx(1 / 15, abs=2e-4), "no moment without a picture, which would flicker"


def test_the_line_of_values_ends_at_the_ply_that_is_shown_and_keeps_zero_in_sight():
    assert overlay.history({4: 0.5}, 4) == ""
    line = overlay.history({2: 1.0, 3: 3.0, 4: -1.0, 9: 7.0}, 4)
    (points,) = re.findall(r'class="values" d="M([^"]*)"', line)
    assert [tuple(map(float, point.split())) for point in points.split("L")] == [(0, 3), (20, 0), (40, 6)]
    assert "from -1.00 to +3.00" in line and 'd="M0 4.5L40 4.5"' in line
