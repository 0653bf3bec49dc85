"""A game in a notebook: by clicks on the buttons over the drawing, and by typed moves where there are none."""

import sys

from muzero_jax.apps.play import board_picture, notebook
from muzero_jax.apps.play.notebook import NotebookGame
from muzero_jax.apps.play.position import BLACK, WHITE
from tests.reference.play import fake_thinker, notation, opening


def make_game(name="tic_tac_toe", you=BLACK, favourite=4):
    return NotebookGame(fake_thinker(favourite=favourite), opening(name), you)


def moves(game):
    return [ply.action for ply in game.position.plies]


def test_a_click_is_your_move_and_the_agent_answers_on_the_drawing_of_the_page():
    game = make_game()
    cells = game.panel.cells
    cells[0, 0].click()
    assert moves(game) == [0, 4] and [cells[cell].disabled for cell in ((0, 0), (1, 1), (0, 1))] == [True, True, False]
    assert "It plays b2" in game.panel.line.value and "you are X" in game.panel.line.value
    assert game.panel.picture.value == board_picture.draw(game.position, game.notation).svg


def test_the_agent_begins_where_you_are_second_and_new_exchanges_colours():
    game = make_game(you=WHITE)
    assert moves(game) == [4]
    game.new()
    assert game.you == BLACK and moves(game) == []


def test_a_game_ends_with_its_result_and_takes_no_more():
    game = make_game(favourite=8)
    for action in (0, 1, 2):
        game.click(action)
    assert "The game is over: X wins" in game.said
    assert all(button.disabled for button in game.panel.cells.values())


def test_undo_takes_your_last_move_back_and_a_typed_move_is_a_click():
    game = make_game()
    game.undo()  # nothing to take back is no error
    game.play("a1").click(4)
    assert moves(game) == [0, 4] and game.said == "Illegal move."
    game.click(1)
    assert moves(game.undo()) == [0, 4]
    assert game.hint() == notation("tic_tac_toe").write(None, 8)


def test_a_swap_has_a_button_that_is_shown_while_it_is_legal():
    game = make_game("hex", you=WHITE)
    (swap,) = game.panel.others
    assert swap == 16 and game.panel.others[swap].layout.display is None
    game.panel.others[swap].click()
    assert moves(game)[:2] == [4, 16] and game.panel.others[swap].layout.display == "none"


def test_a_notebook_without_buttons_gets_a_picture_and_typed_moves(monkeypatch):
    assert notebook.WIDGET in make_game()._repr_mimebundle_()
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    typed = make_game()
    assert typed.panel is None and set(typed._repr_mimebundle_()) == {"text/plain", "image/svg+xml"}
    assert moves(typed.play("a1")) == [0, 4]
