"""2048 for a person in the terminal, and backgammon, whose dice stay what they were when a move is taken back."""

import functools
import io

import numpy as np
import pytest
from rich.console import Console

from muzero_jax.apps.play import drawing, solo
from muzero_jax.apps.play.position import BLACK, WHITE, opening_of
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.reference.play import fake_thinker

THINKER = fake_thinker(favourite=0)
opening = functools.cache(lambda name: opening_of(make_environment(name), seed=5))


def played(lines):
    """The game of 2048 after the lines, and all that was printed."""
    out, position = io.StringIO(), opening("2048")
    game = solo.SoloGame(position, THINKER, make_notation(position.environment), Console(file=out, width=100))
    game.run(lines)
    return game, out.getvalue()


def test_a_person_plays_by_keys_and_by_words_asks_and_watches():
    game, text = played(["a", "down", "hint", "eval", "moves", "watch 3", "undo", "help"])
    assert "2048: Slide all tiles one way." in text and "Which side" not in text
    assert "I would play left" in text and "expected from here: 0.04 after 4 simulations, 0.25 at first sight" in text
    assert "I played left" in text and "watch N" in text and "resign" not in text
    assert len(game.position.plies) == 4
    assert f"{game.position.total:g} points after 4 moves" in text


@pytest.mark.parametrize("line, sentence", [("resign", "invalid"), ("watch 0", "watch takes a number of moves")])
def test_what_makes_no_sense_for_one_is_told(line, sentence):
    assert sentence in played([line])[1]


def test_a_game_of_2048_ends_with_its_points_and_nobody_wins():
    game, text = played(["watch 1000"])
    position = game.position
    assert position.is_over and position.winner is None
    assert position.total == sum(float(ply.state.rewards[0]) for ply in position.plies) > 0
    assert f"Game over: {position.total:g} points after {len(position.plies)} moves" in text


def test_taking_back_throws_no_other_dice_and_a_new_game_does():
    position = opening("backgammon")
    first = position
    while int(first.state.current_player) == int(position.state.current_player):
        first = first.play(first.legal_actions()[0])
    again = first.undo()
    again = again.play(again.legal_actions()[0])
    np.testing.assert_array_equal(first.state._dice, again.state._dice)
    openings = {tuple(np.asarray(position.state._dice).tolist()) for position in _new_games(position, 8)}
    assert len(openings) > 2


def _new_games(position, count):
    for _ in range(count):
        position = position.new()
        yield position


def test_backgammon_is_drawn_with_its_dice_and_whoever_is_to_move_is_known():
    position = opening("backgammon")
    text = drawing.plain(drawing.draw(position, make_notation(position.environment)))
    assert "dice: X " in text and text.splitlines()[0].split()[6] == "bar"
    assert position.colour_to_move == BLACK
    while position.colour_to_move == BLACK:
        position = position.play(position.legal_actions()[0])
    assert position.colour_to_move == WHITE and "O " in drawing.plain(
        drawing.draw(position, make_notation(position.environment))
    )
