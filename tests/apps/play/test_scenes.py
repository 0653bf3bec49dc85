"""Pictures of tiles, of points with checkers and dice, and of plain text, read back from their SVG."""

import functools
import re

import jax.numpy as jnp
import numpy as np

from muzero_jax.apps.play import board_picture, film, scenes
from muzero_jax.apps.play.position import opening_of
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import load_environment
from tests.reference.play import fake_thinker

opening = functools.cache(lambda name: opening_of(load_environment(name), seed=5))


def notation(name):
    return make_notation(opening(name).environment)


def test_each_tile_is_a_stroke_in_the_colour_of_its_number():
    position = opening("2048")
    board = jnp.zeros(16, jnp.int32).at[jnp.array([0, 5, 15])].set(jnp.array([1, 11, 17]))
    scene = scenes.tiles(position.new(position.state.replace(_board=board)), notation("2048"))
    assert re.findall(r">(\d+)</text>", scene.above) == ["2", "2048", "131072"]
    colours = re.findall(r'stroke="(#\w+)"', scene.above)
    assert colours == [scenes.TILE_COLOURS[0], scenes.TILE_COLOURS[10], scenes.TILE_COLOURS[-1]]
    assert scene.ground.count("h56") == 16


def test_all_thirty_checkers_are_drawn_and_only_the_dice_left_are_bold():
    position = opening("backgammon")
    drawn = scenes.points(position, notation("backgammon")).above
    dots = [path.count("h0") for path in re.findall(r'd="([^"]*)" stroke="#\w+" stroke-width="22.5"', drawn)]
    assert dots == [15, 15] and re.findall(r'opacity="([^"]+)"', drawn) == ["1", "1"]
    once = position.play(position.legal_actions()[0])
    assert sorted(re.findall(r'opacity="([^"]+)"', scenes.points(once, notation("backgammon")).above)) == ["0.3", "1"]


def test_a_high_stack_has_its_number_and_points_lie_where_people_put_them():
    position = opening("backgammon")
    state = position.state.replace(_board=jnp.zeros(28, jnp.int32).at[23].set(9).at[26].set(6).at[0].set(-15))
    drawn = scenes.points(position.new(state), notation("backgammon")).above
    assert re.findall(r">(\d+)</text>", drawn) == ["9", "6", "15"]
    x = float(re.findall(r'<text x="([\d.]+)"', drawn)[0])
    assert x == scenes.HALVES[1] + 5.5 * scenes.STEP, "point 1 is the last on the right"


def test_a_game_with_neither_is_its_text():
    position = opening("examples/pig.py").play(1)
    picture = board_picture.draw(position, notation("examples/pig.py"), title="Pig")
    assert picture.svg.count("xml:space") == 3 and ">Pig</text>" in picture.svg


def test_a_long_game_is_shown_at_as_many_moves_as_asked_and_its_ground_once():
    position, thinker = opening("2048"), fake_thinker(favourite=1)
    whole = film.film(thinker.analyse, position, notation("2048"), most_pictures=5).svg
    assert whole.count("<animate") == 6 and whole.count("#dcd3c5") == 1
    points = [int(text.replace(",", "")) for text in re.findall(r">([\d,]+) points:", whole)]
    end = int(re.findall(r">game over: ([\d,]+) points<", whole)[0].replace(",", ""))
    assert points[0] == 0 and points == sorted(points) and points[-1] < end


def test_no_board_is_needed_for_a_film_of_a_game_of_ones_own():
    thinker = fake_thinker(favourite=1)
    assert "game over" not in film.film(thinker.analyse, opening("examples/pig.py"), notation("examples/pig.py")).svg


def test_moves_that_are_alike_are_named_once():
    game = make_environment("backgammon")
    policy = np.zeros(game.num_actions)
    policy[:6] = 1 / 6
    drawn = board_picture.draw(opening("backgammon"), notation("backgammon"), policy=policy).svg
    assert "pass 17%" in drawn and "pass(2)" not in drawn
