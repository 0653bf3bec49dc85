"""Other programs: their processes, their names, what each protocol tells them, and what is made of their answers."""

import shlex
import sys
import time

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines import engine, engines
from muzero_jax.apps.engines.engine import EngineError, EngineProcess, Ply
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.engines.gtp import GtpEngine, HexEngine, mirrored
from muzero_jax.apps.engines.uci import UciEngine
from muzero_jax.apps.evaluation import players
from muzero_jax.apps.evaluation.engine_games import Arbiter, EngineSeat
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.environment import make_environment
from tests.reference import engines as programs
from tests.reference.games import environment_of

PROGRAM = shlex.quote(sys.executable)
HEX = make_environment("hex", board_size=3)
PLIES = [Ply(0, 4, "b2"), Ply(1, 0, "a1"), Ply(0, 1, "b1")]


@pytest.fixture
def start(tmp_path):
    """Starts the scripted program, which has ended when the test is over; `start.told()` is what it was told."""
    running = []

    def start(protocol, *arguments, **options):
        running.append(programs.started(protocol, "--log", tmp_path / "log", *arguments, **options))
        return running[-1]

    start.told = lambda: (tmp_path / "log").read_text().splitlines()
    yield start
    for process in running:
        process.close(politely=False)
        assert programs.is_gone(process._process.pid)


def answer(process, line):
    process.send(line, is_move=True)
    return process.read()


# --- a process never keeps us waiting, and never outlives us ----------------------------------------------------------


def test_a_line_is_answered_by_a_line_whatever_it_says_on_stderr(start):
    """A pipe holds 64 KiB: a program whose complaints nobody reads would stop there."""
    process = start("gtp", "--noise", 5_000_000)
    assert [answer(process, "name"), answer(process, "version")] == ["= Fake", ""]


@pytest.mark.parametrize(
    "then, seconds, fault",
    [
        ("die", 20.0, r"gtp:fake ended \(exit status 3\) .* 'genmove b'; .*'out of luck'$"),
        ("hang", 0.3, "'genmove b' in time .--engine-seconds"),
        ("flood", 1.5, "'genmove b' in time .*'and another thing"),
        ("flood", 1e20, "10,000 bytes"),
        (f"say \x1b[31m{'a' * 500}", 1.5, r"it said '\[31maaa.{,200}aaa\.\.\.'$"),
    ],
)
def test_a_program_that_does_not_answer_is_given_up_with_its_last_words(start, monkeypatch, then, seconds, fault):
    monkeypatch.setattr(engine, "GRACE_SECONDS", 0.1)
    if seconds > 100:
        monkeypatch.setattr(engine, "MOST_BYTES", 10_000)
    process = start("gtp", "--then", then, seconds=seconds)
    begin = time.monotonic()
    process.send("genmove b", is_move=True)
    with pytest.raises(EngineError, match=fault):
        while True:
            process.read()
    assert time.monotonic() < begin + 15.0


@pytest.mark.parametrize("arguments, status", [([], 0), (["--stays"], -9)])
def test_a_program_ends_by_quit_or_is_killed(start, monkeypatch, arguments, status):
    monkeypatch.setattr(engine, "QUIT_SECONDS", 0.5 if arguments else 10.0)
    process = start("gtp", *arguments)
    assert answer(process, "name")
    process.close()
    process.close()
    assert process._process.returncode == status


def test_what_a_wrapper_started_ends_with_it():
    process = EngineProcess(["/bin/sh", "-c", "sleep 60 >&- 2>&- & echo $!; exit"], "wrapped", seconds=20.0)
    child = int(process.read())
    assert programs.is_alive(child)
    with pytest.raises(EngineError, match="exit status 0"):
        process.read()
    process.close(politely=False)
    assert programs.is_gone(child)


def test_a_file_that_is_no_program_is_refused(tmp_path):
    (tmp_path / "engine").write_text("no program")
    with pytest.raises(EngineError, match="mine cannot be started: Permission denied$"):
        EngineProcess([str(tmp_path / "engine")], "mine", seconds=20.0)


# --- names and games --------------------------------------------------------------------------------------------------


def test_a_name_says_protocol_command_and_settings():
    text = f"uci:{PROGRAM} -c 'a b' --x; Skill Level=3 ; go nodes 10;"
    command = (sys.executable, "-c", "a b", "--x")
    assert engines.parse(text) == EngineSpec(text, "uci", command, ("Skill Level=3", "go nodes 10"))
    assert engines.parse("random") is engines.parse("gtp") is engines.parse("agent:hex_5x5") is None


@pytest.mark.parametrize("text", ["gtp:", "uci: ; Skill Level=3", "gtp:no-such-program --level 3", "gtp:'half"])
def test_a_name_that_starts_nothing_is_refused(text):
    with pytest.raises(ValueError, match=text.split()[0]):
        players.parse(text)


@pytest.mark.parametrize(
    "game, protocols, others",
    [
        ("tic_tac_toe", "gtp", "uci usi gnubg"),
        ("backgammon", "gnubg", "gtp uci"),
        ("2048", "", "gtp gnubg"),
        ("gardner_chess", "gtp uci", "usi gnubg"),
        ("animal_shogi", "gtp usi", "uci gnubg"),
    ],
)
def test_a_game_is_played_by_its_protocols_alone(game, protocols, others):
    environment = environment_of(game if GAMES[game].protocol in (None, "gnubg") else "tic_tac_toe")
    environment = environment._replace(game=GAMES[game])  # the rules of chess and shogi take seconds to trace
    for protocol in protocols.split():
        engines.check(EngineSpec("x", protocol, ("x",), ()), environment)
    for protocol in others.split():
        with pytest.raises(ValueError, match=game):
            engines.check(EngineSpec("x", protocol, ("x",), ()), environment)


# --- GTP --------------------------------------------------------------------------------------------------------------


def test_a_gtp_engine_is_told_a_game_from_its_opening(start):
    engine = GtpEngine(start("gtp", "--banner", "Welcome!"), 7, 6, 7.5)  # a banner is no answer
    engine.greet(["level 3"])
    engine.new_game()
    assert engine.choose(PLIES[:1], 1) == "a1"
    assert engine.choose(PLIES, 1) == "c1"
    assert start.told() == [
        "name", "version", "level 3", "boardsize 7 6", "clear_board", "komi 7.5",
        "play b b2", "genmove w", "play b b1", "genmove w",
    ]  # fmt: skip
    engine.new_game()
    assert engine.choose([], 0) == "a1" and engine.title == "Fake 1.0"


def test_a_forced_pass_may_be_refused_and_nothing_else_that_it_knows(start):
    engine = GtpEngine(start("gtp", "--refuses", "play w pass"), 3, 3)
    engine.new_game()
    assert engine.choose([*PLIES[:1], Ply(1, 9, "pass", is_forced_pass=True)], 0) == "a1"
    engine.new_game()
    with pytest.raises(EngineError, match="gtp:fake rejected 'play w pass'.*'I would rather not'"):
        engine.choose([*PLIES[:1], Ply(1, 9, "pass")], 0)
    with pytest.raises(EngineError, match="visits 9"):
        engine.greet(["visits 9"])


@pytest.mark.parametrize(
    "protocol, says, expected",
    [
        ("gtp", "say = resign|", "resign"),
        ("gtp", "say hello there", None),
        ("uci", "say bestmove (none)", "(none)"),
        ("uci", "say bestmove ", ""),
        ("usi", "say bestmove resign", "resign"),
    ],
)
def test_an_answer_is_a_move_resignation_a_word_that_is_no_move_or_nonsense(start, protocol, says, expected):
    process = start(protocol, "--then", says)
    engine = GtpEngine(process, 3, 3) if protocol == "gtp" else UciEngine(process, protocol)
    engine.new_game()
    if expected is not None:
        assert engine.choose([], 0) == expected
    else:
        with pytest.raises(EngineError, match="answered 'genmove b' with 'hello there'"):
            engine.choose([], 0)


# --- a swap in Hex is one position, whatever a program means by it ----------------------------------------------------


def test_a_cell_is_mirrored_in_the_long_diagonal_and_a_word_is_not():
    cells = ["a1", "b1", "k11", "A2", "swap-pieces", "resign"]
    assert [mirrored(text) for text in cells] == ["a1", "a2", "k11", "b1", "swap-pieces", "resign"]


SWAPPED = [Ply(0, 1, "b1"), Ply(1, 9, "swap-pieces"), Ply(0, 2, "c1"), Ply(1, 0, "a1"), Ply(0, 4, "b2")]
MIRRORED = ["play w a3", "play b a1", "play w b2", "genmove b"]


@pytest.mark.parametrize(
    "swaps, told, move",
    [
        ("pieces", ["play w swap-pieces", "play b c1", "play w a1", "play b b2", "genmove w"], "c2"),
        ("sides", ["play w swap-pieces", *MIRRORED], "a3"),  # there black's stone is on b1 still, and c1 is free
        (None, MIRRORED, "a3"),
    ],
)
def test_a_program_is_told_a_swap_as_it_means_it(start, swaps, told, move):
    engine = HexEngine(start("gtp", *(["--swaps", swaps] if swaps else [])), 3, 3)
    engine.greet([])
    engine.new_game()
    begun = len(start.told())
    assert (engine.choose(SWAPPED, 1), engine.swaps) == (move, swaps)
    assert start.told()[begun:] == ["play b b1", *told]


class SwapsFirst:
    """Swaps where it may, else takes the last free cell."""

    def new_game(self):
        pass

    def choose(self, state, plies, colour, key):
        legal = state.legal_action_mask
        return 9 if legal[9] else int(8 - jnp.argmax(legal[8::-1]))


@pytest.mark.parametrize("swaps", ["--swaps pieces", "--swaps sides", ""])
def test_games_with_a_swap_are_played_to_their_end_by_every_kind_of_program(swaps):
    """A program that had another position would choose a cell that is taken, or refuse one that is free."""
    arbiter, key = Arbiter(HEX), jax.random.key(0)
    engine = engines.start(engines.parse(programs.name("gtp", *swaps.split())), HEX, seconds=20.0)
    seat = EngineSeat(engine, arbiter.notation)
    try:
        for opening in ([], [1, 9], [5, 9, 6, 8]):
            for seats in ([seat, SwapsFirst()], [SwapsFirst(), seat]):
                played = arbiter.play(HEX.init(key), opening, seats, key)
                assert played.score in ("B+", "W+") and played.num_opening == len(opening)
    finally:
        engine.process.close(politely=False)


# --- UCI and USI ------------------------------------------------------------------------------------------------------


def test_a_uci_engine_is_told_the_whole_game_at_every_move(start):
    engine = UciEngine(start("uci", "--moves", "a2a3 b2b3"), "uci", "gardner")
    engine.greet(["skill level = 3", "go nodes 10"])
    engine.new_game()
    assert engine.choose([], 0) == "a2a3"
    assert engine.choose([Ply(0, 0, "a2a3"), Ply(1, 0, "e4e3")], 0) == "b2b3"
    assert start.told() == [
        "uci", "setoption name UCI_Variant value gardner", "setoption name skill level value 3",
        "ucinewgame", "isready", "position startpos", "go nodes 10",
        "position startpos moves a2a3 e4e3", "go nodes 10",
    ]  # fmt: skip
    assert engine.title == "Fake"
    begun = len(start.told())
    engine = UciEngine(start("usi", "--moves", "2c2b"), "usi", "dobutsu")
    engine.greet([])
    engine.new_game()
    assert engine.choose([], 0) == "2c2b"
    told = start.told()[begun:]
    assert (told[0], told[2], told[-1]) == ("usi", "usinewgame", "go movetime 1000")


@pytest.mark.parametrize(
    "variant, settings, says", [(None, ["Skil=3"], "'Skil'.* Skill Level"), ("chess", [], "does not play chess")]
)
def test_an_option_that_it_has_not_is_refused(start, variant, settings, says):
    with pytest.raises(EngineError, match=says):
        UciEngine(start("uci"), "uci", variant).greet(settings)
