"""A game in a notebook: by clicks on buttons, and by typed moves where there are none."""

import sys

import pytest

from muzero_jax.apps.play import notebook
from muzero_jax.apps.play.notebook import NotebookGame
from muzero_jax.apps.play.position import BLACK, WHITE
from tests.reference.play import fake_thinker, notation, opening


def make_game(name="tic_tac_toe", you=BLACK, favourite=4):
    return NotebookGame(fake_thinker(favourite=favourite), opening(name), you)


def moves(game):
    return [ply.action for ply in game.position.plies]


def test_a_click_is_your_move_and_the_agent_answers():
    game = make_game()
    game.panel.cells[0].click()
    assert moves(game) == [0, 4]
    assert game.panel.cells[0].disabled and game.panel.cells[4].disabled and not game.panel.cells[1].disabled
    assert "It plays b2" in game.panel.line.value and "you are X" in game.panel.line.value


def test_the_colours_of_the_buttons_are_those_of_the_stones():
    game = make_game()
    before = game.panel.cells[0].style.button_color
    game.panel.cells[0].click()
    cells = game.panel.cells
    assert len({cells[0].style.button_color, cells[4].style.button_color, before}) == 3
    assert cells[4].description == "●" and cells[8].style.button_color == before
    assert [cells[cell].tooltip for cell in (0, 1, 3)] == ["a1", "b1", "a2"]


def test_the_agent_begins_where_you_are_second():
    assert moves(make_game(you=WHITE)) == [4]


def test_a_click_that_the_rules_forbid_changes_nothing_but_a_line():
    game = make_game()
    game.click(0)
    game.click(4)
    assert moves(game) == [0, 4] and game.said == "Illegal move."


def test_a_game_ends_with_its_result_and_marks_the_row():
    game = make_game(favourite=8)
    for cell in (0, 1, 2):
        game.click(cell)
    assert "The game is over: X wins" in game.said
    assert [game.panel.cells[cell].description for cell in (0, 1, 2)] == ["★"] * 3
    assert all(button.disabled for button in game.panel.cells.values())
    game.click(5)
    assert game.said == "The game is over."


def test_undo_takes_your_last_move_back_and_new_exchanges_colours():
    game = make_game()
    game.undo()  # nothing to take back is no error
    game.click(0)
    game.click(1)
    assert moves(game.undo()) == [0, 4]
    game.new()
    assert game.you == WHITE and moves(game) == [4]


def test_a_typed_move_is_a_click():
    game = make_game()
    assert moves(game.play("a1")) == [0, 4]
    with pytest.raises(ValueError, match="invalid coordinate"):
        game.play("z9")


def test_a_swap_has_a_button_that_is_shown_while_it_is_legal():
    game = make_game("hex", you=WHITE)
    (swap,) = game.panel.others
    assert swap == 16 and game.panel.others[swap].layout.display is None
    game.panel.others[swap].click()
    assert moves(game)[:2] == [4, 16] and game.panel.others[swap].layout.display == "none"


def test_a_notebook_gets_the_buttons_and_a_picture_for_pages_without_them():
    bundle = make_game()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml", notebook.WIDGET}
    assert bundle[notebook.WIDGET]["model_id"]


def test_without_widgets_a_move_is_typed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    game = make_game()
    assert game.panel is None and notebook.WIDGET not in game._repr_mimebundle_()
    assert 'game.play("c3")' in repr(game)
    assert moves(game.play("a1")) == [0, 4]


def test_a_game_whose_actions_are_no_cells_is_typed_too():
    game = make_game("gardner_chess")
    assert game.panel is None and "image/svg+xml" in game._repr_mimebundle_()


def test_a_hint_is_a_move_in_the_games_notation():
    assert make_game().hint() == notation("tic_tac_toe").write(None, 4)
