"""A game as one picture that moves: a position at a time, in order, each as long as it should be shown."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from muzero_jax.apps.play import board_picture, film
from muzero_jax.apps.play.position import new_game
from muzero_jax.apps.play.thinking import Analysis
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.reference import tic_tac_toe

SVG = "{http://www.w3.org/2000/svg}"


def first_legal(position):
    """An agent that plays the first legal action."""
    policy = (position.legal_action_mask() / position.legal_action_mask().sum()).astype(np.float32)
    return Analysis(position.legal_actions()[0], policy, 0.25, policy, 0.0, 1, 0.0)


@pytest.fixture(scope="module")
def game():
    environment = make_environment("tic_tac_toe")
    return new_game(environment), make_notation(environment)


def test_a_game_is_shown_move_by_move_to_its_end(game):
    """X wins in the seventh move of 0, 1, 2, ...; the last picture says so."""
    board, moves = tic_tac_toe.EMPTY, 0
    over = False
    while not over:
        board, _, over = tic_tac_toe.play(board, tic_tac_toe.legal_actions(board)[0])
        moves += 1
    picture = film.film(first_legal, *game)
    root = ElementTree.fromstring(picture.svg)
    frames = root.findall(f"{SVG}g")
    assert len(frames) == moves + 1 == 8
    assert "value +0.25" in ElementTree.tostring(frames[0], encoding="unicode")
    stones = [len(frame.findall(f".//{SVG}circle")) for frame in frames]
    assert stones == sorted(stones) and stones[0] < stones[-1]
    assert "X" in ElementTree.tostring(frames[-1], encoding="unicode")


def test_pictures_follow_one_another_and_the_last_is_shown_longest():
    blank = board_picture.framed("", 10.0, 20.0)
    whole = film.animate([blank, blank, blank])
    total = 2 * film.SECONDS + film.LAST_SECONDS
    times = [tuple(map(float, found.split(";"))) for found in re.findall(r'keyTimes="([^"]+)"', whole.svg)]
    begins = [0, film.SECONDS / total, 2 * film.SECONDS / total, 1]
    assert [time[1:] for time in times] == [
        pytest.approx(pair, abs=1e-3) for pair in zip(begins[:-1], begins[1:], strict=True)
    ]
    assert whole.svg.count('display="inline"') == 1  # what stands where nothing moves
