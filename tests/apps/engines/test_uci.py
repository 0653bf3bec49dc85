"""UCI, on Gardner's chess: what a GUI sends and what it must get back."""

import re

import pytest

from muzero_jax.apps.engines import uci
from muzero_jax.apps.play.position import WHITE
from tests.reference.play import fake_thinker, notation, opening

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


def test_it_introduces_itself_and_is_ready(engine):
    answers = lines(engine, "uci")
    assert answers[0].startswith("id name") and answers[-1] == "uciok"
    assert "option name Simulations type spin default 4 min 1 max 16384" in answers
    assert lines(engine, "isready") == ["readyok"]
    assert lines(engine, "ucinewgame") == lines(engine, "debug on") == lines(engine, "") == []
    assert lines(engine, "please uci")[-1] == "uciok"


def test_a_game_is_told_by_its_moves_and_answered_by_a_legal_one(engine):
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
def test_what_cannot_be_done_is_said_and_changes_nothing(engine, words):
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
