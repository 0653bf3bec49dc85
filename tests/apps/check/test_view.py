"""What a person at the board would stumble over is found before a run begins, a sentence each."""

import pytest

from muzero_jax.apps.check import promises
from muzero_jax.games.environment import environment_of
from muzero_jax.games.notation import Notation, words
from muzero_jax.games.view import View
from tests.reference.drop import DROP, squares


def problems(view, **fields):
    game = DROP._replace(view=view, **fields)
    return promises.view(environment_of(game)._replace(game=game))


def test_a_view_and_a_notation_that_can_be_played_with_have_no_problem():
    assert problems(DROP.view) == problems(View()) == problems(View(page="go")) == []


@pytest.mark.parametrize(
    "view, says",
    [
        (View(squares, page="checkers"), "view.page"),
        (View(squares, inks=("green", "red")), "view.inks"),
        (View(lambda state: [["."], [".", "X"]]), "view.squares must"),
        (View(lambda state: [[0, 1]]), "view.squares must"),
        (View(lambda state: 1 / 0), "view or notation raised ZeroDivisionError"),
        (View(lambda state: [["."] * 4], page="go"), "view.squares draws"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(view, says):
    (sentence,) = problems(view)
    assert sentence.startswith(says)


def test_moves_must_read_back_as_themselves():
    def twins(shape, num_actions):
        return Notation(*words(["left", "left", "right"]), [], [])

    (sentence,) = problems(DROP.view, notation=twins)
    assert sentence.startswith("the notation writes action 0 as 'left' and reads that as action 1")
