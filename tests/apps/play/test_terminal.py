"""Play in the terminal, line by line through a pipe, and in a notebook, by clicks and typed moves."""

import io
import subprocess
import sys

import numpy as np
from rich.console import Console

from muzero_jax.apps.commands import play
from muzero_jax.apps.play import board_picture, notebook, solo, terminal
from muzero_jax.apps.play.notebook import NotebookGame
from muzero_jax.apps.play.position import BLACK, WHITE
from muzero_jax.games.catalogue import make_notation
from tests.reference.pages import ROOT
from tests.reference.play import fake_thinker, notation, of_chance, opening

# --- the terminal -----------------------------------------------------------------------------------------------------


THINKER = fake_thinker(favourite=4)


def played(text, name="tic_tac_toe", colour=None, thinker=THINKER, **console):
    """The game after the lines of `text`, and all that was printed."""
    out = io.StringIO()
    console = Console(file=out, width=100, **console)
    game = terminal.TerminalGame(opening(name), thinker, notation(name), console, colour=colour)
    game.run(io.StringIO(text.replace(" ", "\n")))
    return game, out.getvalue()


def test_a_person_plays_a_game_through_a_pipe():
    game, text = played("x a1 c1 b1")
    assert "Which side do you play, X (moves first) or O? x or o" in text
    assert "I play b2" in text and "I play c3" in text
    assert "│  Game over: X wins  │" in text and game.position.winner == BLACK
    assert "1*X*X*X" in text and text.count("*") == 3


def test_a_person_chooses_and_changes_sides_and_a_swap_is_announced():
    assert played("green w quit", name="hex")[0].colour == WHITE and played("QUIT")[0].colour is None
    game, text = played("a1 undo", colour=WHITE)
    assert text.index("I play b2") < text.index("O to move") and [ply.action for ply in game.position.plies] == [4]
    game, text = played("a1 side", colour=BLACK)
    assert "you play O now\nI play " in text and game.colour == WHITE
    game, text = played("swap", name="hex", colour=WHITE)
    assert [ply.action for ply in game.position.plies][:2] == [4, 16] and text.count("I play") == 2
    assert text.count("white swapped: black's stone became white's, mirrored") == 1


def test_hint_eval_moves_help_and_the_lettered_edges_of_hex():
    _, text = played("hint eval moves help quit hint", colour=BLACK)
    assert "I would play b2\n          b2   33% after search,  11% at first sight\n" in text
    assert "+0.04 after 4 simulations, +0.25 at first sight" in text
    assert "a1 b1 c1 a2 b2 c2 a3 b3 c3" in text and text.count("hint ") == 2
    _, text = played("b quit", name="hex")
    assert text.startswith("Hex: Black joins top and bottom; white joins left and right. White's first move may be")
    board = ["  a b c d", "   b b b b", "1 w . . . . w", " 2 w . . . . w", "  3 w . . . . w", "   4 w . . . . w"]
    assert "\n".join([*board, "        b b b b", "black to move"]) in text


def test_a_mistake_gets_a_message_and_the_game_continues():
    game, text = played("a1 a1 z9 play undo undo new resign eval", colour=BLACK)
    assert "illegal move; help lists what I understand" in text and text.count("invalid coordinate; help") == 2
    assert "there is nothing to take back" in text
    assert "Game over: O wins by resignation" in text and "the game is over; help" in text


# --- a single-player game, and dice ---------------------------------------------------------------------------------


def test_a_person_plays_2048_by_keys_and_by_words_asks_and_watches():
    out, position = io.StringIO(), of_chance("2048")
    moves, thinker = make_notation(position.environment), fake_thinker(favourite=0)
    game = solo.SoloGame(position, thinker, moves, Console(file=out, width=100))
    game.run(["a", "down", "hint", "eval", "moves", "watch 3", "undo", "help", "resign", "watch 0"])
    text = out.getvalue()
    assert "I would play left" in text and "expected from here: +0.04 after 4 simulations, +0.25 at first sight" in text
    assert "I played left" in text and "unknown word" in text and "watch takes a number" in text
    assert f"{game.position.total:g} points after 4 moves" in text and len(game.position.plies) == 4
    game.run(["watch 1000"])
    assert game.position.is_over and game.position.winner is None
    assert game.position.total == sum(float(ply.state.rewards[0]) for ply in game.position.plies) > 0
    assert f"Game over: {game.position.total:,g} points after {len(game.position.plies)} moves" in out.getvalue()


def test_undo_keeps_the_dice_and_a_new_game_rolls_others():
    first = position = of_chance("backgammon")
    while first.colour_to_move == BLACK:
        first = first.play(first.legal_actions()[0])
    again = first.undo()
    again = again.play(again.legal_actions()[0])
    np.testing.assert_array_equal(first.state._dice, again.state._dice)
    games = [position := position.new() for _ in range(8)]
    assert len({tuple(np.asarray(game.state._dice).tolist()) for game in games}) > 2


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_draws_a_tree_and_a_film_of_any_position(untrained_run, tmp_path):
    for flags in ("--tree {}/out.svg --depth 2 --width 3", "--film {}/out.svg"):
        assert play.main([f"--run={untrained_run}", *flags.format(tmp_path).split(), "--moves", "b2 a1"]) == 0
        svg = (tmp_path / "out.svg").read_text()
        assert svg.count('class="mark red"') >= 1 and ("move 3: plays" in svg or "red thinks" in svg)


def test_an_untrained_run_speaks_gtp_and_nothing_else_on_stdout(untrained_run):
    """As a whole process, with every byte of its stdout; time decides the budget."""
    commands = b"1 name\n\xff\xfe\n2 genmove b\nplay b 1e9\n"
    process = subprocess.run(
        [sys.executable, "experiments/play.py", "--run", untrained_run, "--engine", "--notation", "action"]
        + ["--time-per-move", "0.02", "--num-simulations", "16"],
        input=commands,
        capture_output=True,
        cwd=ROOT,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    answers = process.stdout.decode().split("\n\n")
    assert answers.pop(2) in [f"=2 {action}" for action in range(9)]
    assert answers == ["=1 muzero_jax", "? unknown command", "? invalid action: not a number from 0 to 8", ""]


# --- a notebook -------------------------------------------------------------------------------------------------------


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
