"""Play in the terminal, line by line through a pipe, and the command's flags."""

import functools
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands import play
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.apps.play import drawing, solo, terminal
from muzero_jax.apps.play.position import BLACK, WHITE, opening_of
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.reference.play import fake_thinker, notation, opening

ROOT = Path(__file__).parents[3]


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


def test_either_side_is_asked_for_played_and_changed_and_a_swap_is_said():
    assert played("green w quit", name="hex")[0].colour == WHITE and played("quit")[0].colour is None
    game, text = played("a1 undo", colour=WHITE)
    assert text.index("I play b2") < text.index("O to move") and [ply.action for ply in game.position.plies] == [4]
    game, text = played("a1 side", colour=BLACK)
    assert "you play O now\nI play " in text and game.colour == WHITE
    game, text = played("swap", name="hex", colour=WHITE)
    assert [ply.action for ply in game.position.plies][:2] == [4, 16] and text.count("I play") == 2
    assert text.count("white swapped: black's stone became white's, mirrored") == 1


def test_each_side_is_drawn_in_the_ink_of_its_game_in_a_terminal_and_without_colours_elsewhere():
    def styled(name, moves):
        return played(moves, name=name, colour=BLACK, force_terminal=True)[1]

    connect_four, hex_board = styled("connect_four", "a b"), styled("hex", "a1 a2")
    assert "\x1b[1;31mR" in connect_four and "\x1b[1;33mY" in connect_four
    assert "\x1b[1;97;40mB" in hex_board  # white on black
    assert "\x1b[1;4;30;107mW" in hex_board  # black on white, underlined: the last stone
    assert "\x1b[" not in played("a1", colour=BLACK)[1]


def test_hint_eval_moves_and_help_say_what_they_should():
    _, text = played("hint eval moves help quit hint", colour=BLACK)
    assert "I would play b2\n          b2   33% after search,  11% at first sight\n" in text
    assert "+0.04 after 4 simulations, +0.25 at first sight" in text
    assert "a1 b1 c1 a2 b2 c2 a3 b3 c3" in text
    assert text.count("hint ") == 2 and text.count("after search") == 3 and text.count("Three of your marks") == 2


def test_the_goal_is_said_before_anything_is_asked_and_again_for_a_new_game_and_hex_has_lettered_edges():
    _, text = played("b quit", name="hex")
    assert text.startswith("Hex: Black joins top and bottom; white joins left and right. White's first move may be")
    assert "Small b and w around the board are the edges of black and white." in text.split("Which side")[0]
    board = ["  a b c d", "   b b b b", "1 w . . . . w", " 2 w . . . . w", "  3 w . . . . w", "   4 w . . . . w"]
    assert "\n".join([*board, "        b b b b", "black to move"]) in text
    assert played("new", colour=BLACK)[1].count("Tic-tac-toe: Three of your marks") == 2


def test_hint_puts_the_move_that_it_would_play_first_and_says_why_others_have_larger_shares(monkeypatch):
    """On the empty Hex board of issue 22, two moves had 24% and e3, which it played, 7%."""
    analyse = type(THINKER).analyse

    def analyse_otherwise(*arguments, **keywords):
        analysis = analyse(*arguments, **keywords)
        return analysis._replace(action=8, policy=analysis.policy[[0, 4, 2, 3, 1, 5, 6, 7, 8]])

    monkeypatch.setattr(type(THINKER), "analyse", analyse_otherwise)
    lines = played("hint", colour=BLACK)[1].split("I would play ")[1].splitlines()
    assert lines[0] == "c3" and [line.split()[0] for line in lines[1:4]] == ["c3", "b1", "a1"]
    assert lines[4].startswith("The move is the best of those that search tried most.")
    drawn = fake_thinker(favourite=4, temperature=2.0)
    assert drawn.why == "The move is drawn from the shares, at temperature 2."


def test_mistakes_are_said_and_the_game_goes_on():
    game, text = played("a1 a1 z9 play undo undo new resign eval", colour=BLACK)
    assert "illegal move; help lists what I understand" in text and text.count("invalid coordinate; help") == 2
    assert "there is nothing to take back" in text
    assert "Game over: O wins by resignation" in text and "the game is over; help" in text


@pytest.mark.parametrize(
    "name, first, second",
    [
        ("gardner_chess", "w White", "b black"),  # white moves first there
        ("hex", "b black B", "w white"),
        ("tic_tac_toe", "x X b black", "o O w white"),
        ("connect_four", "r red Red b black", "y yellow w white"),
    ],
)
def test_a_side_goes_by_its_name_its_initial_and_where_nothing_else_does_by_black_and_white(name, first, second):
    for colour, words in ((BLACK, first), (WHITE, second)):
        assert {terminal.colour_of(word, opening(name)) for word in words.split()} == {colour}
    assert terminal.colour_of("green", opening(name)) is None


# --- a single-player game, and dice ---------------------------------------------------------------------------------

of_chance = functools.cache(lambda name: opening_of(make_environment(name), seed=5))


def solo_game(lines):
    """The game of 2048 after the lines, and all that was printed."""
    out, position = io.StringIO(), of_chance("2048")
    thinker = fake_thinker(favourite=0)
    game = solo.SoloGame(position, thinker, make_notation(position.environment), Console(file=out, width=100))
    game.run(lines)
    return game, out.getvalue()


def test_a_person_plays_2048_by_keys_and_by_words_asks_and_watches():
    game, text = solo_game(["a", "down", "hint", "eval", "moves", "watch 3", "undo", "help", "resign", "watch 0"])
    assert "2048: Slide all tiles one way." in text and "Which side" not in text
    assert "I would play left" in text and "expected from here: 0.04 after 4 simulations, 0.25 at first sight" in text
    assert "I played left" in text and "watch N" in text and "invalid" in text and "watch takes a number" in text
    assert f"{game.position.total:g} points after 4 moves" in text and len(game.position.plies) == 4
    game, text = solo_game(["watch 1000"])
    assert game.position.is_over and game.position.winner is None
    assert game.position.total == sum(float(ply.state.rewards[0]) for ply in game.position.plies) > 0
    assert f"Game over: {game.position.total:g} points after {len(game.position.plies)} moves" in text


def test_taking_back_throws_no_other_dice_and_a_new_game_does():
    first = position = of_chance("backgammon")
    text = drawing.plain(drawing.draw(position, make_notation(position.environment)))
    assert "dice: X " in text and text.splitlines()[0].split()[6] == "bar"
    while first.colour_to_move == BLACK:
        first = first.play(first.legal_actions()[0])
    again = first.undo()
    again = again.play(again.legal_actions()[0])
    np.testing.assert_array_equal(first.state._dice, again.state._dice)
    games = [position := position.new() for _ in range(8)]
    assert len({tuple(np.asarray(game.state._dice).tolist()) for game in games}) > 2


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags, says",
    [
        ("--run {run} --time-per-move 0", "--time-per-move"),
        ("--run {run} --temperature nan", "--temperature"),
        ("--run {run} --seed 100000000000000000000", "--seed"),
        ("--run {run} --num-simulations 100000000000", "--num-simulations"),
        ("--run {run} --colour green", "--colour"),
        ("--run {run} --notation morse", "--notation"),
        ("--run {run} --board-size 5", "leave the board size out"),
        ("--run {run}/nothing", "config.json"),
        ("", "--agent NAME (2048, backgammon,"),
        ("--run {run} --agent hex_5x5", "--run and --agent"),
        ("--agent {run}", "give a run as --run"),
        ("--run {run} --tree {run}/none/tree.svg", "cannot write --tree"),
        ("--run {run} --tree x.png", "--tree"),
        ("--run {run} --tree x.svg --moves z9", "--moves: z9 is move 1"),
        ("--run {run} --tree x.svg --depth 0", "--depth"),
        ("--run {run} --tree x.svg --web", "choose one of --engine, --web, --tree and --film"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(untrained_run, capsys, monkeypatch, tmp_path, flags, says):
    monkeypatch.chdir(tmp_path)
    assert report_errors(play.main, flags.format(run=untrained_run).split()) == EXIT_ERROR
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_the_command_draws_a_tree_and_a_film_of_any_position(untrained_run, tmp_path):
    for flags in ("--tree {}/out.svg --depth 2 --width 3", "--film {}/out.svg"):
        assert play.main([f"--run={untrained_run}", *flags.format(tmp_path).split(), "--moves", "b2 a1"]) == 0
        svg = (tmp_path / "out.svg").read_text()
        assert svg.count('class="mark red"') >= 1 and ("move 3: plays" in svg or "red thinks" in svg)


def test_an_untrained_run_speaks_gtp_and_nothing_else_on_stdout(untrained_run):
    """As a whole process, with every byte of its stdout; time decides the budget."""
    commands = b"1 name\n\xff\xfe\n2 genmove b\n3 genmove w\nplay b 1e9\n4 all_legal_moves\n5 final_score"
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
    first, second = answers[2].split()[1], answers[3].split()[1]
    legal = [str(action) for action in range(9) if str(action) not in (first, second)]
    assert answers == [
        "=1 muzero_jax",
        "? unknown command",
        f"=2 {first}",
        f"=3 {second}",
        "? invalid action: not a number from 0 to 8",
        f"=4 {' '.join(legal)}",
        "?5 cannot score",
        "",
    ]


def test_ones_own_game_or_network_can_be_played(untrained_run):
    def build(config):
        usual = algorithms.make(config)
        return usual._replace(environment=usual.environment._replace(name="my game"))

    def refuse(config):
        raise ValueError(f"my own {config.env}")

    position, thinker, moves = play.load(play.Arguments(run=untrained_run), build)
    assert position.name == "my game" and moves.write(position.state, 4) == "b2"
    assert thinker.analyse(position).action in position.legal_actions()
    with pytest.raises(ValueError, match="my own tic_tac_toe"):
        play.main(["--run", str(untrained_run)], refuse)
