"""Our engine as a controller meets it: GTP's framing, each game's sessions, and HexGui's habits."""

import functools
import io
import re

import pytest

from muzero_jax.apps.engines import gtp, protocol
from muzero_jax.games.notation import ACTION, STANDARD
from tests.reference.play import fake_thinker, notation, opening

ANSWER = re.compile(r"[=?][0-9]* [^\n\x00-\x08\x0b-\x1f]*(\n[^\n]+)*\n\n")
CENTRE = {"hex": 5, "tic_tac_toe": 4, "connect_four": 3, "go_9x9": 40}


@functools.cache
def centre_thinker(name):
    """Programs are shared between sessions; the fake agent remembers nothing."""
    return fake_thinker(favourite=CENTRE[name])


def session(name, kind=STANDARD, thinker=None):
    return gtp.GtpSession(opening(name), thinker or centre_thinker(name), notation(name, kind))


def talk(engine, text, ok=True):
    """The texts of the answers to lines, all of which must be failures unless `ok`."""
    answers = []
    for line in text.strip().split("\n"):
        answer = engine.answer(line.strip())
        assert ANSWER.fullmatch(answer) and (answer[0] == "=") == ok, answer
        answers.append(answer[2:].strip())
    return answers


texts, failures = talk, functools.partial(talk, ok=False)


# --- framing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, answer",
    [
        ("name", "= muzero_jax\n\n"),
        ("12 name", "=12 muzero_jax\n\n"),
        ("  007\tprotocol_version  # please", "=007 2\n\n"),
        ("3 play b a1", "=3 \n\n"),
        ("4 play b z1", "?4 invalid coordinate\n\n"),
        ("5 nonsense b a1", "?5 unknown command\n\n"),
        ("9" * 40 + " name", "=" + "9" * 40 + " muzero_jax\n\n"),
        ("na\x00m\x07e\r\n", "= muzero_jax\n\n"),
        ("7", "?7 unknown command\n\n"),
        ("  \t \r\n", None),
        ("# only a comment", None),
        ("\x00\x01", None),
    ],
)
def test_answers_are_framed_as_gtp_2_says(line, answer):
    assert session("hex").answer(line) == answer


def test_every_command_of_the_list_is_known_and_the_list_holds_what_controllers_need():
    engine = session("hex")
    commands = texts(engine, "list_commands")[0].split("\n")
    needed = """name version protocol_version known_command list_commands quit boardsize clear_board komi play
        genmove undo showboard final_score reg_genmove all_legal_moves time_settings time_left hexgui-analyze_commands
        swap-pieces loadsgf"""
    assert set(needed.split()) <= set(commands)
    assert set(texts(engine, "\n".join(f"known_command {c}" for c in commands))) == {"true"}
    assert texts(engine, "known_command\nknown_command zugzwang") == ["false", "false"]


def test_a_command_that_breaks_is_answered_and_the_session_goes_on(capsys):
    engine = session("hex")
    engine._commands["name"] = lambda _: 1 / 0
    assert failures(engine, "name") == ["internal error: ZeroDivisionError"]
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert texts(engine, "version")


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_of_hex_with_a_swap():
    engine = session("hex")
    assert texts(engine, "boardsize 4\nclear_board\nplay b c1") == ["", "", ""]
    assert texts(engine, "all_legal_moves")[0].split()[-1] == "swap-pieces"
    board = texts(engine, "play white swap-pieces\nshowboard")[1].split("\n")
    assert board[0] == "a b c d" and board[4:6] == ["  3 w W . . . w", "   4 w . . . . w"]
    assert texts(engine, "genmove b\ngenmove w\nundo\nundo\nundo") == ["b2", "d4", "", "", ""]
    assert texts(engine, "swap-pieces") == [""]
    wrong = "swap-pieces\nplay b swap-pieces\nplay b a3\nplay b b9\nplay b\nplay x a1\nfinal_score"
    kinds = ["illegal move"] * 3 + ["invalid coordinate"] + ["syntax error"] * 2 + ["cannot score"]
    assert [failure.partition(":")[0] for failure in failures(engine, wrong)] == kinds


def test_the_end_of_a_game_of_hex():
    engine = session("hex")
    assert failures(engine, "undo") == ["cannot undo"]
    texts(engine, "play b b1\nplay w a1\nplay b b2\nplay w a2\nplay b b3\nplay w a3\nplay b b4")
    assert texts(engine, "final_score\ngenmove w\nreg_genmove b\nall_legal_moves") == ["B+", "resign", "resign", ""]
    assert failures(engine, "play w a4\nplay b a4\nmuzero-value") == ["the game is over"] * 3
    assert texts(engine, "undo\ngenmove b") == ["", "d4"]
    assert texts(engine, "play w resign\nfinal_score\nundo\nclear_board") == ["", "B+R", "", ""]


def test_sessions_of_tic_tac_toe_and_connect_four():
    played = texts(session("tic_tac_toe"), "genmove b\nplay w a1\ngenmove b\nplay w b1\nplay b c1\nundo\nplay b a3")
    assert played == ["b2", "", "c3", "", "", "", ""]
    engine = session("connect_four")
    assert texts(engine, "play b D\ngenmove w") == ["", "d"]
    assert texts(engine, "showboard")[0].split("\n")[4:] == ["4 . . . . . . .", "5 . . . Y . . .", "6 . . . R . . ."]
    texts(engine, "play b e\nplay w e\nplay b f\nplay w f\nplay b g")
    assert texts(engine, "final_score\ngenmove w") == ["B+", "pass"]
    assert failures(engine, "boardsize 8\nboardsize 6 7") == ["unacceptable size"] * 2
    assert texts(engine, "boardsize 7 6\nboardsize 7\ngenmove b") == ["", "", "d"]


def test_an_agent_of_every_board_follows_the_controllers():
    asked = []

    def resize(size):
        asked.append(size)
        if size != 3:
            raise ValueError("no such board")
        return opening("tic_tac_toe"), centre_thinker("tic_tac_toe"), notation("tic_tac_toe")

    engine = gtp.GtpSession(opening("hex"), centre_thinker("hex"), notation("hex"), resize=resize)
    texts(engine, "play b a1\nboardsize 4\nboardsize 4 4")
    assert asked == [] and engine.position.plies == (), "its own board: a new game, and nothing is loaded"
    assert failures(engine, "boardsize 20\nboardsize 3 5") == ["unacceptable size"] * 2
    assert texts(engine, "genmove b\nboardsize 3\nplay b a1\ngenmove w") == ["b2", "", "", "b2"]
    assert asked == [20, 3] and len(engine.moves.columns) == 3 and len(engine.position.plies) == 2


def test_a_session_of_go():
    engine = session("go_9x9")
    texts(engine, "boardsize 9\nclear_board\nkomi 6.5\nplay b D4\nplay w J9")
    assert texts(engine, "genmove b\nplay w pass\nplay b PASS") == ["E5", "", ""]
    assert texts(engine, "final_score\ngenmove w\nshowboard")[:2] == ["W+5.5", "pass"]  # 2 stones to 1, no area
    assert len(failures(engine, "play w I5\nplay b c3\nkomi x\nkomi nan\nkomi\nboardsize 19\nboardsize nine")) == 7


def test_an_engine_that_speaks_action_numbers():
    engine = session("hex", ACTION)
    assert texts(engine, "play b 2\nplay w 16\ngenmove b\nreg_genmove w") == ["", "", "5", "15"]
    assert texts(engine, "all_legal_moves")[0] == "0 1 2 3 4 6 7 9 10 11 12 13 14 15"
    assert len(failures(engine, "play w 5\nplay w 17\nplay w a1\nplay w -1\nplay w 99999999999999999999")) == 5
    assert texts(session("go_9x9", ACTION), "play b 81\nplay w 81\ngenmove b") == ["", "", "pass"]


def test_an_engine_that_is_told_stones_searches_for_either_side():
    """HexGui: the size first, which starts anew, then stones in scan order."""
    engine = session("hex")
    texts(engine, "play b a1\nboardsize 4 4\nplay w a1\nplay b b1\nplay b c1\nplay b a2\nplay w b2\nplay w d4")
    moves = texts(engine, "genmove w\ngenmove w\ngenmove b\nundo\nundo\nundo\nreg_genmove b")
    assert moves == ["c4", "b4", "a4", "", "", "", "c4"]
    assert texts(engine, "showboard")[0].split("\n")[2:4] == ["1 w W B B . w", " 2 w B W . . w"]


def test_what_hexgui_shows_of_the_agent():
    engine = session("hex")
    for line in texts(engine, "hexgui-analyze_commands")[0].split("\n"):
        kind, label, command = line.split("/")
        assert kind in ("pspairs", "gfx", "string", "var", "varc", "plist") and label
        assert texts(engine, f"known_command {command.split()[0]}") == ["true"]
    texts(engine, "play b a1")
    policy, prior, value, variation = texts(engine, "muzero-policy\nmuzero-prior\nmuzero-value\nmuzero-variation")
    assert policy.startswith("b2 0.21 b1 0.05 c1 0.05") and "swap-pieces" not in prior
    assert value == "search +0.040 (4 simulations), network +0.250" and variation == "b2 d4 c4 b4 a4 d3"


def test_the_move_that_it_would_play_stands_first_and_is_coloured_most_whatever_its_share():
    thinker = fake_thinker(favourite=5)
    engine, analyse = session("hex", thinker=thinker), thinker.analyse
    thinker.analyse = lambda *arguments, **keywords: analyse(*arguments, **keywords)._replace(action=2)
    policy, gfx, variation = texts(engine, "muzero-policy\nmuzero-gfx\nmuzero-variation")
    assert policy.startswith("c1 0.05 b2 0.21 a1 0.05") and policy.count("c1") == 1
    assert gfx.startswith("INFLUENCE c1 1.00 b2 0.70 a1 0.17") and "TEXT plays c1, value" in gfx
    assert variation.split()[:3] == ["c1", "b2", "d4"] and texts(engine, "reg_genmove b") == ["c1"]


def test_the_networks_policy_takes_no_search_and_no_draw():
    plain, asked = (session("hex", thinker=fake_thinker(temperature=1.0, seed=3)) for _ in range(2))
    search, asked.thinker._search = asked.thinker._search, None
    assert texts(asked, "muzero-prior")[0].startswith("a1 0.06 b1 0.06")
    asked.thinker._search = search
    commands = "genmove b\ngenmove w\ngenmove b"
    assert texts(asked, commands) == texts(plain, commands)


def test_time_commands_choose_the_budget():
    engine = session("hex", thinker=fake_thinker(most_simulations=32))
    texts(engine, "time_settings 3600 0 0")
    assert "(32 simulations)" in texts(engine, "muzero-value")[0]
    texts(engine, "time_left b 0 0\ntime_left w 3000 10")
    assert "(32 simulations)" not in texts(engine, "muzero-value")[0]
    assert texts(engine, "genmove w\ntime_settings 0 0 0") == ["a1", ""]
    assert "(4 simulations)" in texts(engine, "muzero-value")[0]
    failures(engine, "time_settings 1 2\ntime_settings 1 2 inf\ntime_left b 1\ntime_left x 1 1\ntime_left b nan 1")


def test_a_clock_shares_main_time_out_and_then_gives_each_stone_its_share_of_a_period():
    clock = gtp.Clock()
    assert clock.allot(0) is None
    clock.settings(60.0, 20.0, 2)
    assert clock.allot(0) == pytest.approx(10.0 - protocol.MARGIN), "a stone of the period that will come"
    clock.spend(0, 61.0)
    assert clock.allot(0) == pytest.approx(10.0 - protocol.MARGIN)
    clock.spend(0, 15.0)
    assert clock.allot(0) == pytest.approx(5.0 - protocol.MARGIN), "one stone is left of the period"
    clock.spend(0, 4.0)
    assert clock.allot(0) == clock.allot(0) == pytest.approx(10.0 - protocol.MARGIN), "the next period"
    clock.left(1, 300.0, 0)
    assert clock.allot(1) == pytest.approx(10.0 - protocol.MARGIN)


# --- SGF --------------------------------------------------------------------------------------------------------------


def test_sgf_files_of_hex_and_go_are_loaded_up_to_a_move(tmp_path):
    hex_file, go_file = tmp_path / "hex.sgf", tmp_path / "go.sgf"
    hex_file.write_text("(;FF[4]GM[11]SZ[4]C[a \\] b]\n;B[b1];W[swap-pieces](;B[d4];W[c3])(;B[a1]))")
    engine = session("hex")
    board = texts(engine, f"loadsgf {hex_file}\nshowboard")[1].split("\n")
    assert board[2:6] == ["1 w . . . . w", " 2 w W . . . w", "  3 w . . W . w", "   4 w . . . B w"]
    assert texts(engine, f"loadsgf {hex_file} 2\nshowboard")[1].count("W") == 0
    go_file.write_text("(;GM[1]SZ[9]AB[aa][ba]AW[ii];W[ca];B[];W[tt])")
    engine = session("go_9x9")
    assert texts(engine, f"loadsgf {go_file}\nshowboard")[1].split("\n")[1] == "9 B B W . . . . . ."


def test_a_file_that_cannot_be_loaded_leaves_the_position(tmp_path):
    engine = session("hex")
    texts(engine, "play b d1")
    for text in ("", "nonsense", "(;SZ[4];B[a1]", "(;SZ[5];B[a1])", "(;SZ[4];B[a1];W[a1])", "(;SZ[4];B[z9])"):
        (tmp_path / "bad.sgf").write_text(text)
        assert failures(engine, f"loadsgf {tmp_path}/bad.sgf")[0].startswith("cannot load file"), text
    failures(engine, f"loadsgf {tmp_path}\nloadsgf {tmp_path}/no.sgf\nloadsgf")
    assert texts(engine, "showboard")[0].split("\n")[2] == "1 w . . . B w"


# --- the stream -------------------------------------------------------------------------------------------------------


def test_quit_and_the_end_of_input_end_it_and_a_closed_pipe_does_too():
    out = io.BytesIO()
    session("hex").serve(protocol.read_lines(io.BytesIO(b"1 quit\n2 name\n")), out)
    assert out.getvalue() == b"=1 \n\n"
    session("hex").serve(protocol.read_lines(io.BytesIO(b"")), out)
    out.close()
    session("hex").serve(iter(["name", "name"]), out)


def test_a_line_longer_than_memory_should_hold_is_one_command():
    stream = io.BytesIO(b"x" * 3 * protocol.MOST_BYTES + b"\n" + b"y" * (protocol.MOST_BYTES - 1) + b"\nname\n")
    assert [line.strip()[:1] for line in protocol.read_lines(stream)] == ["x", "y", "n"]


# --- engine against engine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hex", "tic_tac_toe", "connect_four", "go_9x9"])
def test_engines_play_games_against_each_other_without_one_failure(name):
    """Five games each of four games; both boards stay the same, and both name the same winner."""
    drawing = fake_thinker(favourite=0, temperature=1.0, seed=1)
    for _ in range(5):
        black, white = (session(name, thinker=drawing) for _ in "bw")
        for ply in range(200):
            mover, other = (black, white)[:: 1 if ply % 2 == 0 else -1]
            colour = "bw"[ply % 2]
            (move,) = texts(mover, f"genmove {colour}")
            assert texts(other, f"play {colour} {move}") == [""]
            assert texts(mover, "showboard") == texts(other, "showboard")
            if mover.position.is_over:
                break
        assert mover.position.is_over and texts(mover, "final_score") == texts(other, "final_score")
        assert texts(other, "genmove b") in (["pass"], ["resign"])
