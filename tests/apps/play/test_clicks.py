"""Which move a click names on a board that a game borrows, and the notation that such a board brings."""

import numpy as np
import pytest

from muzero_jax.apps.play import drawing
from muzero_jax.apps.play.clicks import clicked_actions
from muzero_jax.apps.play.position import new_game
from muzero_jax.apps.play.web_session import board_state
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of
from muzero_jax.games.notation import ACTION, action_numbers
from tests.reference.drop import DROP

NOTHING = [[-1, -1], [-1, -1]]


@pytest.mark.parametrize(
    "page, location, actions",
    [
        pytest.param("othello", [0, 1, 2, 3, -1], [[0, 1], [2, 3]], id="cells and a pass"),
        pytest.param("othello", [3, 1, -1], [[-1, 1], [-1, 0]], id="two cells, where the layout says so"),
        pytest.param("othello", [0, 0, 1, 3], [[-1, 2], [-1, 3]], id="two actions in one cell"),
        pytest.param("othello", [0, 1, 2], NOTHING, id="fewer actions than cells, merely numbered"),
        pytest.param("connect_four", [0, 1], [[0, 1], [0, 1]], id="columns"),
        pytest.param("connect_four", [2, -1, 1], [[0, 2], [0, 2]], id="columns, where the layout says so"),
        pytest.param("connect_four", [0, 1, 2], NOTHING, id="one action more than columns, merely numbered"),
        pytest.param("chess", [0, 1, 2, 3], NOTHING, id="a move of two clicks"),
        pytest.param(None, [0, 1, 2, 3], NOTHING, id="text"),
    ],
)
def test_a_click_names_the_one_action_of_a_cell_or_column(page, location, actions):
    assert clicked_actions(page, (2, 2), np.array(location)).tolist() == actions


def test_a_borrowed_board_of_columns_has_one_naming_for_clicks_moves_and_text():
    environment = environment_of(DROP)._replace(game=DROP)
    position, notation = new_game(environment), make_notation(environment)
    position = position.play(notation.read(position.state, "b"))
    state = board_state(position, notation)
    assert state["clicks"] == [["a", "b", "c"]] * 2 and state["legal"] == ["a", "b", "c"] and state["moves"] == ["b"]
    assert drawing.plain(drawing.draw(position, notation)) == "  a b c\n1 . . .\n2 . B ."
    numbers = make_notation(environment, ACTION)
    assert board_state(position, numbers)["clicks"] == [["0", "1", "2"]] * 2


def test_a_board_has_no_labels_beside_moves_that_are_numbers():
    game = DROP._replace(notation=action_numbers)
    environment = environment_of(game)._replace(game=game)
    position, notation = new_game(environment), make_notation(environment)
    assert drawing.plain(drawing.draw(position, notation)) == " . . .\n . . ."
    assert board_state(position, notation)["legal"] == ["0", "1", "2"]
