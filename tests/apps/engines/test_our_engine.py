"""Our engine as controllers and GUIs meet it: GTP with HexGui's habits, and UCI."""

import functools
import io
import re

import pytest

from muzero_jax.apps.engines import gtp, protocol, uci
from muzero_jax.apps.engines.game_clock import GameClock
from muzero_jax.apps.play.position import WHITE
from muzero_jax.games.notation import STANDARD
from tests.reference.play import fake_thinker, notation, opening

# --- GTP --------------------------------------------------------------------------------------------------------------

ANSWER = re.compile(r"[=?][0-9]* [^\n\x00-\x08\x0b-\x1f]*(\n[^\n]+)*\n\n")
CENTRE = {"hex": 5, "tic_tac_toe": 4, "connect_four": 3, "go_9x9": 40}


@functools.cache
def centre_thinker(name):
    """Programs are shared between sessions; the fake agent remembers nothing."""
    return fake_thinker(favourite=CENTRE[name])


def session(name, kind=STANDARD, thinker=None, **options):
    return gtp.GtpSession(opening(name), thinker or centre_thinker(name), notation(name, kind), **options)


def talk(engine, text, ok=True):
    """The texts of the answers to lines, all of which must be failures unless `ok`."""
    answers = []
    for line in text.strip().split("\n"):
        answer = engine.answer(line.strip())
        assert ANSWER.fullmatch(answer) and (answer[0] == "=") == ok, answer
        answers.append(answer[2:].strip())
    return answers


@pytest.mark.parametrize(
    "line, answer",
    [
        ("12 name", "=12 muzero_jax\n\n"),
        ("  007\tprotocol_version  # please", "=007 2\n\n"),
        ("4 play b z1", "?4 invalid coordinate\n\n"),
        ("5 nonsense b a1", "?5 unknown command\n\n"),
        ("  \t \r\n", None),
    ],
)
def test_answers_are_framed_as_gtp_2_says(line, answer):
    assert session("hex").answer(line) == answer


def test_every_command_of_the_list_is_known_and_the_list_holds_what_controllers_need():
    engine = session("hex")
    commands = talk(engine, "list_commands")[0].split("\n")
    needed = """name version protocol_version known_command list_commands quit boardsize clear_board komi play
        genmove undo showboard final_score reg_genmove all_legal_moves time_settings time_left hexgui-analyze_commands
        swap-pieces loadsgf"""
    assert set(needed.split()) <= set(commands)
    analyses = [line.split("/")[2].split()[0] for line in talk(engine, "hexgui-analyze_commands")[0].split("\n")]
    assert set(talk(engine, "\n".join(f"known_command {c}" for c in commands + analyses))) == {"true"}
    assert talk(engine, "known_command\nknown_command zugzwang") == ["false", "false"]


# Commands and their answers, one session after another; `?` begins a failure, of which the first words are compared.
SESSIONS = {
    "a swap in Hex": (
        "hex",
        """boardsize 4 =; clear_board =; play b c1 =; play white swap-pieces =; genmove b = b2; genmove w = d4; undo =;
        undo =; undo =; swap-pieces =; swap-pieces ? illegal move; play b swap-pieces ? illegal move;
        play b a3 ? illegal move; play b b9 ? invalid coordinate; play b ? syntax error; play x a1 ? syntax error;
        final_score ? cannot score; boardsize 5 ? unacceptable size; boardsize nine ? boardsize not an integer""",
    ),
    "the end of Hex": (
        "hex",
        """undo ? cannot undo; play b b1 =; play w a1 =; play b b2 =; play w a2 =; play b b3 =; play w a3 =;
        play b b4 =; final_score = B+; genmove w = resign; reg_genmove b = resign; all_legal_moves =;
        play w a4 ? the game is over; play b a4 ? the game is over; muzero-value ? the game is over; undo =;
        genmove b = d4; play w resign =; final_score = B+R; undo =; clear_board =""",
    ),
    "stones in scan order": (  # HexGui: the size first, which starts anew, then stones of any colour
        "hex",
        """play b a1 =; boardsize 4 4 =; play w a1 =; play b b1 =; play b c1 =; play b a2 =; play w b2 =; play w d4 =;
        genmove w = c4; genmove w = b4; genmove b = a4; undo =; undo =; undo =; reg_genmove b = c4;
        all_legal_moves = d1 c2 d2 a3 b3 c3 d3 a4 b4 c4""",
    ),
    "Connect Four": (
        "connect_four",
        """play b D =; genmove w = d; play b e =; play w e =; play b f =; play w f =; play b g =; final_score = B+;
        genmove w = pass; boardsize 8 ? unacceptable size; boardsize 6 7 ? unacceptable size; boardsize 7 6 =;
        boardsize 7 =; genmove b = d""",
    ),
    "Go": (  # two stones to one, and no area
        "go_9x9",
        """boardsize 9 =; komi 6.5 =; play b D4 =; play w J9 =; genmove b = E5; play w pass =; play b PASS =;
        final_score = W+5.5; genmove w = pass; play w I5 ? invalid; play b c3 ? the game is over; komi x ? komi;
        komi nan ? komi; komi ? komi; boardsize 19 ? unacceptable""",
    ),
    "numbers": (
        "hex action",
        """play b 2 =; play w 16 =; genmove b = 5; reg_genmove w = 15;
        all_legal_moves = 0 1 2 3 4 6 7 9 10 11 12 13 14 15; play w 5 ? illegal; play w 17 ? invalid action;
        play w a1 ? invalid action; play w -1 ? invalid action; play w 99999999999999999999 ? invalid action""",
    ),
    "numbers of Go": ("go_9x9 action", "play b 81 =; play w 81 =; genmove b = pass"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_gtp_session_gives_the_listed_answers(name):
    game, text = SESSIONS[name]
    engine = session(*game.split())
    for exchange in " ".join(text.split()).split(";"):
        command, sign, expected = re.fullmatch(r" ?(.*?) ([=?]) ?(.*)", exchange).groups()
        (answer,) = talk(engine, command, ok=sign == "=")
        assert answer == expected if sign == "=" else answer.startswith(expected), (command, answer)


def test_boardsize_loads_an_agent_that_plays_on_every_board_for_that_size():
    asked = []

    def resize(size):
        asked.append(size)
        if size != 3:
            raise ValueError("no such board")
        return opening("tic_tac_toe"), centre_thinker("tic_tac_toe"), notation("tic_tac_toe")

    engine = session("hex", resize=resize)
    talk(engine, "play b a1\nboardsize 4\nboardsize 4 4")
    assert asked == [] and engine.position.plies == (), "its own board: a new game, and nothing is loaded"
    assert talk(engine, "boardsize 20\nboardsize 3 5", ok=False) == ["unacceptable size"] * 2
    assert talk(engine, "genmove b\nboardsize 3\nplay b a1\ngenmove w") == ["b2", "", "", "b2"]
    assert asked == [20, 3] and len(engine.moves.columns) == 3 and len(engine.position.plies) == 2


def test_hexgui_analyses_show_the_agents_policy_value_and_variation():
    """The move that it would play stands first and is coloured most."""
    engine = session("hex")
    talk(engine, "play b a1")
    policy, value, variation, gfx = talk(engine, "muzero-policy\nmuzero-value\nmuzero-variation\nmuzero-gfx")
    assert policy.startswith("b2 0.21 b1 0.05 c1 0.05") and gfx.startswith("INFLUENCE b2 1.00")
    assert value == "search +0.040 (4 simulations), network +0.250" and variation == "b2 d4 c4 b4 a4 d3"


def test_a_clock_shares_main_time_out_and_then_gives_each_stone_its_share_of_a_period():
    clock = GameClock()
    assert clock.allot(0) is None
    clock.settings(60.0, 20.0, 2)
    for spent, seconds in ((0.0, 10.0), (61.0, 10.0), (15.0, 5.0), (4.0, 10.0)):  # main time, then a stone at a time
        clock.spend(0, spent)
        assert clock.allot(0) == pytest.approx(seconds - protocol.MARGIN)
    clock.left(1, 300.0, 0)
    assert clock.allot(1) == pytest.approx(10.0 - protocol.MARGIN)


def test_a_new_game_restarts_both_clocks():
    engine = session("hex", thinker=fake_thinker(most_simulations=32))
    talk(engine, "time_settings 600 0 0")
    for new_game in ("clear_board", "boardsize 4"):
        begun = engine.clock.allot(0)
        engine.clock.spend(0, 300.0)
        assert engine.clock.allot(0) < begun / 1.9
        talk(engine, new_game)
        assert engine.clock.allot(0) == begun
    talk(engine, "time_settings 0 1 0\nclear_board")
    assert engine.clock.allot(0) is None


def test_with_little_time_left_a_move_waits_for_no_compilation():
    engine = session("hex", thinker=fake_thinker(most_simulations=32))
    talk(engine, "time_settings 600 0 0\ntime_left b 0 0")
    assert talk(engine, "muzero-value")[0].startswith("search +0.160 (16 simulations)")  # the smallest that is compiled


def test_another_board_is_prepared_for_a_clock_that_was_set_before():
    resized = opening("tic_tac_toe"), fake_thinker(most_simulations=32), notation("tic_tac_toe")
    engine = session("hex", thinker=fake_thinker(most_simulations=32), resize=lambda size: resized)
    talk(engine, "time_settings 600 0 0\nboardsize 3")
    assert talk(engine, "muzero-value")[0].startswith("search +0.320 (32 simulations)")


def test_sgf_files_of_hex_and_go_are_loaded_up_to_a_move(tmp_path):
    hex_file, go_file = tmp_path / "hex.sgf", tmp_path / "go.sgf"
    hex_file.write_text("(;FF[4]GM[11]SZ[4]C[a \\] b]\n;B[b1];W[swap-pieces](;B[d4];W[c3])(;B[a1]))")
    engine = session("hex")
    board = talk(engine, f"loadsgf {hex_file}\nshowboard")[1].split("\n")
    assert board[2:6] == ["1 w . . . . w", " 2 w W . . . w", "  3 w . . W . w", "   4 w . . . B w"]
    assert talk(engine, f"loadsgf {hex_file} 2\nshowboard")[1].count("W") == 0
    before = engine.position
    hex_file.write_text("(;SZ[4];B[a1];W[a1])")
    assert talk(engine, f"loadsgf {hex_file}", ok=False)[0].startswith("cannot load file") and engine.position is before
    go_file.write_text("(;GM[1]SZ[9]AB[aa][ba]AW[ii];W[ca];B[];W[tt])")
    board = talk(session("go_9x9"), f"loadsgf {go_file}\nshowboard")[1].split("\n")
    assert board[1] == "9 B B W . . . . . ."


# --- UCI, on Gardner's chess ------------------------------------------------------------------------------------------

INFO = re.compile(r"info depth 1 score cp -?[0-9]+ nodes [0-9]+ nps [0-9]+ time [0-9]+ pv [a-e][1-5][a-e][1-5][qrbn]?")


@pytest.fixture(scope="module")
def shared():
    name = "gardner_chess"
    return uci.UciSession(opening(name), fake_thinker(most_simulations=32), notation(name))


@pytest.fixture
def engine(shared):
    shared.answer("setoption name Simulations value 4")
    shared.answer("position startpos")
    return shared


def lines(engine, text):
    return engine.answer(text).splitlines()


def best_move(engine, text):
    info, best = lines(engine, text)
    assert INFO.fullmatch(info)
    word, move = best.split()
    assert word == "bestmove" and info.endswith(move)
    return move


def test_uci_introduces_the_engine_with_its_options_and_is_ready(engine):
    answers = lines(engine, "uci")
    assert answers[0].startswith("id name") and answers[-1] == "uciok"
    assert "option name Simulations type spin default 4 min 1 max 16384" in answers
    assert lines(engine, "isready") == ["readyok"]
    assert lines(engine, "ucinewgame") == lines(engine, "debug on") == lines(engine, "") == []
    assert lines(engine, "please uci")[-1] == "uciok"


def test_a_uci_game_of_moves_is_answered_by_legal_moves(engine):
    moves = []
    for _ in range(6):
        moves.append(best_move(engine, "go"))
        assert lines(engine, f"position startpos moves {' '.join(moves)}") == []
    assert len(engine.position.plies) == 6 and len(set(moves)) > 2


def test_a_position_from_fen_is_searched_for_the_side_to_move(engine):
    assert lines(engine, "position fen 4k/P4/5/4p/K4 b - - 0 1 moves e2e1n") == []
    assert engine.position.plies[0].colour == WHITE
    assert best_move(engine, "go")[0] in "abcde"


@pytest.mark.parametrize("words", ["position startpos moves e1e3", "position fen 5/5 w", "setoption name Hash value 1"])
def test_an_impossible_uci_request_gets_an_info_string_and_changes_nothing(engine, words):
    """Other nonsense is in `tests/fuzz`."""
    lines(engine, "position startpos moves a2a3")
    (answer,) = lines(engine, words)
    assert answer.startswith("info string ")
    assert len(engine.position.plies) == 1 and engine.thinker.num_simulations == 4


def test_nodes_and_times_choose_the_budget(engine):
    def nodes(text):
        return int(lines(engine, text)[0].split("nodes ")[1].split()[0])

    assert [nodes(text) for text in ("go", "go nodes 9", "go nodes 0")] == [4, 8, 1]
    lines(engine, "setoption name Simulations value 6")
    assert nodes("go depth 3") == 6
    lines(engine, "isready")
    assert nodes("go movetime 0") <= 16
    nodes("go movetime 3600000")
    engine.thinker.catch_up(engine.position)
    assert nodes("go wtime 9000000 btime 0 winc 0 binc 0 movestogo 1") == 32


def test_an_infinite_search_answers_when_it_is_stopped(engine):
    for stop in ("stop", "ponderhit"):
        (info,) = lines(engine, "go infinite")
        assert INFO.fullmatch(info)
        assert lines(engine, stop) == ["bestmove " + info.split()[-1]] and lines(engine, stop) == []


def test_there_is_no_move_when_the_game_is_over(engine):
    lines(engine, "position fen R3k/5/4K/5/5 b - - 0 1")
    assert engine.position.is_over
    assert lines(engine, "go") == ["bestmove 0000"] and lines(engine, "isready") == ["readyok"]


def test_a_search_that_cannot_be_compiled_between_two_answers_ends_no_session(capsys, monkeypatch):
    """A larger budget is compiled after an answer, where memory may run out."""
    engine, out = session("tic_tac_toe"), io.BytesIO()
    monkeypatch.setattr(engine, "thinker", fake_thinker(favourite=4))
    monkeypatch.setattr(engine.thinker, "catch_up", lambda position: [][0])
    engine.serve(["1 name", "2 name"], out)
    assert out.getvalue() == b"=1 muzero_jax\n\n=2 muzero_jax\n\n" and "IndexError" in capsys.readouterr().err
