"""Other programs: their processes, their names, what each protocol tells them, and how their answers are read."""

import shlex
import sys

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines import engine, engines
from muzero_jax.apps.engines.engine import EngineError, EngineMove, EngineProcess
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.engines.gtp import GtpEngine, HexEngine
from muzero_jax.apps.engines.uci import UciEngine
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.environment import make_environment
from tests.reference import engines as programs
from tests.reference.games import environment_of
from tests.reference.nim import make_nim, make_state

PROGRAM = shlex.quote(sys.executable)
PLIES = [EngineMove(0, 4, "b2"), EngineMove(1, 0, "a1"), EngineMove(0, 1, "b1")]


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


@pytest.mark.parametrize("arguments, status", [([], 0), (["--stays"], -9)])
def test_a_program_ends_by_quit_or_is_killed(start, monkeypatch, arguments, status):
    monkeypatch.setattr(engine, "QUIT_SECONDS", 0.5 if arguments else 10.0)
    process = start("gtp", *arguments)
    assert answer(process, "name")
    process.close()
    process.close()
    assert process._process.returncode == status


def test_a_program_that_a_wrapper_started_ends_with_the_wrapper():
    process = EngineProcess(["/bin/sh", "-c", "sleep 60 >&- 2>&- & echo $!; exit"], "wrapped", seconds=20.0)
    child = int(process.read())
    assert programs.is_alive(child)
    with pytest.raises(EngineError, match="exit status 0"):
        process.read()
    process.close(politely=False)
    assert programs.is_gone(child)


# --- names and games --------------------------------------------------------------------------------------------------


def test_a_name_says_protocol_command_and_settings():
    text = f"uci:{PROGRAM} -c 'a b' --x; Skill Level=3 ; go nodes 10;"
    command = (sys.executable, "-c", "a b", "--x")
    assert engines.parse(text) == EngineSpec(text, "uci", command, ("Skill Level=3", "go nodes 10"))
    assert engines.parse("random") is engines.parse("gtp") is engines.parse("agent:hex_5x5") is None


@pytest.mark.parametrize(
    "game, protocols, others",
    [
        ("backgammon", "gnubg", "gtp uci"),
        ("2048", "", "gtp gnubg"),
        ("gardner_chess", "gtp uci", "usi gnubg"),
        ("animal_shogi", "gtp usi", "uci gnubg"),
    ],
)
def test_a_game_accepts_only_its_own_protocols(game, protocols, others):
    environment = environment_of(game if GAMES[game].protocol in (None, "gnubg") else "tic_tac_toe")
    environment = environment._replace(game=GAMES[game])  # the rules of chess and shogi take seconds to trace
    for protocol in protocols.split():
        engines.check(EngineSpec("x", protocol, ("x",), ()), environment)
    for protocol in others.split():
        with pytest.raises(ValueError, match=game):
            engines.check(EngineSpec("x", protocol, ("x",), ()), environment)


def test_no_program_is_told_of_hidden_moves_or_plays_after_a_deal_that_it_did_not_see():
    dealt = make_nim(9)._replace(init=lambda key: make_state(jax.random.randint(key, (), 3, 9), jnp.int32(0)))
    for environment, says in ((make_environment("kuhn_poker"), "hides"), (dealt, "deals at random")):
        with pytest.raises(ValueError, match=says):
            engines.check(EngineSpec("x", "gtp", ("x",), ()), environment)


# --- GTP --------------------------------------------------------------------------------------------------------------


def test_a_gtp_engine_gets_every_move_from_the_opening_on(start):
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


def test_an_engine_may_reject_a_forced_pass_and_nothing_else(start):
    engine = GtpEngine(start("gtp", "--refuses", "play w pass"), 3, 3)
    engine.new_game()
    assert engine.choose([*PLIES[:1], EngineMove(1, 9, "pass", is_forced_pass=True)], 0) == "a1"
    engine.new_game()
    with pytest.raises(EngineError, match="gtp:fake rejected 'play w pass'.*'I would rather not'"):
        engine.choose([*PLIES[:1], EngineMove(1, 9, "pass")], 0)
    with pytest.raises(EngineError, match="visits 9"):
        engine.greet(["visits 9"])


# --- a swap in Hex is one position, whatever a program means by it ----------------------------------------------------


SWAPPED = [
    EngineMove(0, 1, "b1"),
    EngineMove(1, 9, "swap-pieces"),
    EngineMove(0, 2, "c1"),
    EngineMove(1, 0, "a1"),
    EngineMove(0, 4, "b2"),
]
MIRRORED = ["play w a3", "play b a1", "play w b2", "genmove b"]


@pytest.mark.parametrize(
    "swaps, told, move",
    [
        ("pieces", ["play w swap-pieces", "play b c1", "play w a1", "play b b2", "genmove w"], "c2"),
        ("sides", ["play w swap-pieces", *MIRRORED], "a3"),  # there black's stone is on b1 still, and c1 is free
        (None, MIRRORED, "a3"),
    ],
)
def test_a_swap_in_hex_is_sent_as_the_program_understands_it(start, swaps, told, move):
    engine = HexEngine(start("gtp", *(["--swaps", swaps] if swaps else [])), 3, 3)
    engine.greet([])
    engine.new_game()
    begun = len(start.told())
    assert (engine.choose(SWAPPED, 1), engine.swaps) == (move, swaps)
    assert start.told()[begun:] == ["play b b1", *told]


# --- UCI and USI ------------------------------------------------------------------------------------------------------


def test_a_uci_engine_gets_the_whole_game_at_every_move(start):
    engine = UciEngine(start("uci", "--moves", "a2a3 b2b3"), "uci", "gardner")
    engine.greet(["skill level = 3", "go nodes 10"])
    engine.new_game()
    assert engine.choose([], 0) == "a2a3"
    assert engine.choose([EngineMove(0, 0, "a2a3"), EngineMove(1, 0, "e4e3")], 0) == "b2b3"
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
def test_an_option_or_variant_that_a_uci_engine_lacks_is_refused(start, variant, settings, says):
    with pytest.raises(EngineError, match=says):
        UciEngine(start("uci"), "uci", variant).greet(settings)
