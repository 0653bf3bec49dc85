"""GTP and UCI lines of any bytes: each command gets one answer, none ends the session, a refusal changes nothing."""

import io
import re
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muzero_jax.apps.engines import gtp, protocol, uci
from tests.fuzz import fuzzing
from tests.fuzz.agents import QuickThinker
from tests.fuzz.samples import disturbed, words
from tests.reference.play import notation, opening

GTP_ANSWER = re.compile(r"[=?][0-9]* [^\n\x00-\x08\x0b-\x1f]*(\n[^\n]+)*\n\n")
UCI_ANSWER = re.compile(r"(|(info|bestmove|id|option|uciok|readyok)\b[^\n\x00-\x08\x0b-\x1f]*\n)*")
THINKER = QuickThinker()

COLOURS = "b w B white black blue".split()
CELLS = "a1 a2 b1 b2 c3 d4 D1 e1 a0 a5 1a swap-pieces swap pass resign 7".split()
NUMBERS = "0 1 3 4 9 -1 7.5 0.0001 60 1e308 1e999 nan inf 1_0 ９ 99999999999999999999 abc".split()
GTP_WORDS = """name version protocol_version list_commands clear_board undo showboard final_score all_legal_moves
    swap-pieces muzero-policy muzero-prior muzero-value muzero-variation muzero-gfx hexgui-analyze_commands
    quit reg_genmove loadsgf time_settings # 12""".split()
PLAY = words("play", COLOURS[:2], CELLS[:8])
GTP_LINES = st.one_of(
    PLAY,
    PLAY,
    words(["", "7", "007 "], ["play", "genmove", "reg_genmove", "all_legal_moves"], COLOURS, CELLS),
    words(["genmove", "reg_genmove", "all_legal_moves"], COLOURS),
    words(GTP_WORDS),
    words(["komi", "known_command", "boardsize", "time_left b"], NUMBERS + GTP_WORDS, ["", "4", "x"]),
    words("time_settings", NUMBERS, NUMBERS, NUMBERS),
    words("time_left", COLOURS, NUMBERS, NUMBERS),
    words("loadsgf", ["/dev/null", "/dev/zero", "/etc", "no.sgf", "a" * 300, "~/x"], ["", "3", "x", "²"]),
)
UCI_MOVES = "a1 b2 c3 a2 e2e4 a2a3 0000 z9".split()
UCI_LINES = st.one_of(
    words("position startpos moves", st.lists(st.sampled_from(UCI_MOVES[:4]), max_size=5, unique=True).map(" ".join)),
    words("position startpos moves", UCI_MOVES, UCI_MOVES, UCI_MOVES),
    words("position", ["startpos", "fen", "fen 5/5/5/5/5 w - -", "fen x w - - 0 1", "", "moves"], ["", "moves a1"]),
    words("go", ["", "infinite", "ponder", "nodes", "movetime", "wtime", "btime", "depth"], NUMBERS),
    words("go wtime", NUMBERS, "btime", NUMBERS, "winc", NUMBERS, "movestogo", NUMBERS),
    words("go searchmoves", UCI_MOVES, UCI_MOVES),
    words("setoption name", ["Simulations", "simulations", "Hash"], "value", NUMBERS),
    words(["uci", "isready", "ucinewgame", "stop", "ponderhit", "quit", "debug on", "please uci", "register later"]),
)


def conversations(lines):
    """Several lines as bytes, the line's end taken out of each."""
    line = disturbed(lines.map(str.encode)).map(lambda line: line.replace(b"\n", b""))
    return st.lists(line, min_size=1, max_size=6)


@fuzzing.fuzzed(conversations(GTP_LINES))
def test_gtp(lines, folder):
    """One well-formed answer a command, which is no internal error; what is refused leaves the position as it was."""
    session = gtp.GtpSession(opening("hex"), THINKER, notation("hex"))
    for line in protocol.read_lines(io.BytesIO(b"\n".join(lines))):
        (number, words), before = gtp.parse(line), session.position
        answer = session.answer(line)
        assert (answer is None) == (not number and not words)
        if answer is None:
            continue
        assert GTP_ANSWER.fullmatch(answer) and answer[1:].startswith(number), answer
        assert "internal error" not in answer, (line, answer)
        assert answer[0] == "=" or session.position is before


def check_uci(session, lines):
    for line in protocol.read_lines(io.BytesIO(b"\n".join(lines))):
        before = session.position
        answer = session.answer(line)
        assert UCI_ANSWER.fullmatch(answer) and "internal error" not in answer, (line, answer)
        assert "info string" not in answer or session.position is before
        if line.split()[:1] == ["go"]:
            assert ("bestmove" in answer) != (session.held is not None), (line, answer)


@fuzzing.fuzzed(conversations(UCI_LINES))
def test_uci(lines, folder):
    check_uci(uci.UciSession(opening("tic_tac_toe"), THINKER, notation("tic_tac_toe")), lines)


@pytest.fixture(scope="module")
def chess():
    """Gardner's chess, whose positions from FEN are read once each: pgx needs a fifth of a second."""
    position = opening("gardner_chess")
    game = position.game._replace(read_fen=lru_cache(maxsize=None)(position.game.read_fen))
    return uci.UciSession(position._replace(game=game), THINKER, notation("gardner_chess"))


RANKS = ["4k", "P4", "5", "4p", "K4", "rnbqk", "ppppp", "PPPPP", "RNBQK", "1q3", "2K2", "k1K2", "P3R", "4q"]
FENS = words("fen", st.lists(st.sampled_from(RANKS), min_size=5, max_size=5).map("/".join), ["w", "b"], ["", "- - 0 1"])
CHESS_MOVES = "a2a3 b2b3 a4a5q a4a5 e2e1n c2c3 c1c2 d1d2 a1b2 a1a2".split()
CHESS_LINES = st.one_of(
    words("position", FENS, ["", "moves"], CHESS_MOVES),
    words("position startpos moves", CHESS_MOVES, CHESS_MOVES),
    words("go", ["", "infinite", "searchmoves a4a5q", "nodes 1", "nodes 2"]),
    words(["isready", "ucinewgame", "stop"]),
)


@pytest.mark.slow
def test_uci_of_chess_with_positions_from_fen(chess):
    """2,000 examples: each new FEN costs a fifth of a second."""

    @fuzzing.settings(2_000, is_repeated=False)
    @given(conversations(CHESS_LINES))
    def attempt(lines):
        check_uci(chess, lines)

    attempt()
