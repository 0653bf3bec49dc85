"""What an engine is told, word for word, and what is made of its answers."""

import pytest

from muzero_jax.apps.engines.engine import EngineError, Ply
from muzero_jax.apps.engines.gtp import GtpEngine
from muzero_jax.apps.engines.uci import UciEngine
from tests.reference import engines

PLIES = [Ply(0, 4, "b2"), Ply(1, 0, "a1"), Ply(0, 1, "b1")]


@pytest.fixture
def play(tmp_path):
    """Starts a scripted engine and returns it, and what it was told so far."""
    running, log = [], tmp_path / "log"

    def start(protocol, *arguments, game=(3, 3), variant=None, seconds=20.0):
        process = engines.started(protocol, "--log", log, *arguments, seconds=seconds)
        running.append(process)
        return GtpEngine(process, *game) if protocol == "gtp" else UciEngine(process, protocol, variant)

    yield start, lambda: log.read_text().splitlines()
    for process in running:
        process.close(politely=False)


# --- GTP --------------------------------------------------------------------------------------------------------------


def test_a_gtp_engine_is_told_a_game_from_its_opening(play):
    start, told = play
    engine = start("gtp", "--banner", "Welcome!", game=(7, 6, 7.5))  # a banner is no answer
    engine.greet(["level 3"])
    engine.new_game()
    assert engine.choose(PLIES[:1], 1) == "a1"
    assert engine.choose(PLIES, 1) == "c1"
    assert told() == [
        "name", "version", "level 3", "boardsize 7 6", "clear_board", "komi 7.5",
        "play b b2", "genmove w", "play b b1", "genmove w",
    ]  # fmt: skip
    engine.new_game()
    assert engine.choose([], 0) == "a1"
    assert engine.title == "Fake 1.0"


def test_a_square_board_has_one_size_and_a_board_without_names_none(play):
    start, told = play
    start("gtp").new_game()
    assert told() == ["boardsize 3", "clear_board"]
    start("gtp", game=(0, 0)).new_game()
    assert told() == ["boardsize 3", "clear_board", "clear_board"]


def test_a_forced_pass_may_be_refused_and_no_other_move(play):
    start, _ = play
    engine = start("gtp", "--refuses", "play w pass")
    engine.new_game()
    assert engine.choose([*PLIES[:1], Ply(1, 9, "pass", is_forced_pass=True)], 0) == "a1"
    engine.new_game()
    with pytest.raises(EngineError, match="gtp:fake refuses 'play w pass'.*'I would rather not'"):
        engine.choose([*PLIES[:1], Ply(1, 9, "pass")], 0)


def test_what_an_engine_refuses_is_named_unless_it_is_a_command_that_it_has_not(play):
    start, _ = play
    with pytest.raises(EngineError, match="boardsize 3"):
        start("gtp", "--refuses", "boardsize").new_game()
    with pytest.raises(EngineError, match="visits 9"):
        start("gtp").greet(["visits 9"])


# --- UCI --------------------------------------------------------------------------------------------------------------


def test_a_uci_engine_is_told_the_whole_game_at_every_move(play):
    start, told = play
    engine = start("uci", "--moves", "a2a3 b2b3", variant="gardner")
    engine.greet(["skill level = 3", "go nodes 10"])
    engine.new_game()
    assert engine.choose([], 0) == "a2a3"
    assert engine.choose([Ply(0, 0, "a2a3"), Ply(1, 0, "e4e3")], 0) == "b2b3"
    assert told() == [
        "uci", "setoption name UCI_Variant value gardner", "setoption name skill level value 3",
        "ucinewgame", "isready", "position startpos", "go nodes 10",
        "position startpos moves a2a3 e4e3", "go nodes 10",
    ]  # fmt: skip
    assert engine.title == "Fake"


def test_usi_differs_in_its_first_words(play):
    start, told = play
    engine = start("usi", "--moves", "2c2b", variant="dobutsu")
    engine.greet([])
    engine.new_game()
    assert engine.choose([], 0) == "2c2b"
    assert [told()[0], told()[2]] == ["usi", "usinewgame"] and told()[-1] == "go movetime 1000"


def test_an_option_that_it_has_not_is_answered_with_the_closest(play):
    start, _ = play
    with pytest.raises(EngineError, match="'Skil'.* Skill Level"):
        start("uci").greet(["Skil=3"])
    with pytest.raises(EngineError, match="does not play chess"):
        start("uci", variant="chess").greet([])


# --- answers ----------------------------------------------------------------------------------------------------------


def test_nonsense_is_named(play):
    engine = play[0]("gtp", "--then", "say hello there")
    engine.new_game()
    with pytest.raises(EngineError, match="answered 'genmove b' with 'hello there'"):
        engine.choose([], 0)


@pytest.mark.parametrize("word", ["(none)", "0000", ""])
def test_an_engine_that_takes_the_game_for_over_answers_with_a_word_that_is_no_move(play, word):
    assert play[0]("uci", "--then", f"say bestmove {word}").choose([], 0) == word


def test_resignation_is_an_answer(play):
    start, _ = play
    assert start("usi", "--then", "say bestmove resign").choose([], 0) == "resign"
    assert start("gtp", "--then", "say = resign|").choose([], 0) == "resign"


def test_an_engine_that_hangs_is_given_up(play):
    with pytest.raises(EngineError, match="in time"):
        play[0]("uci", "--then", "hang", seconds=0.2).choose([], 0)
