"""Engines by name: what a name means, and which games a protocol has."""

import shlex
import sys

import jax
import pytest

from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.evaluation import players
from muzero_jax.games.own_game import load_environment
from tests.reference import tiny_run
from tests.reference.games import environment_of
from tests.reference.nim import make_nim

PROGRAM = shlex.quote(sys.executable)


def test_a_name_says_protocol_command_and_settings():
    text = f"uci:{PROGRAM} -c 'a; b' --x; Skill Level=3 ; go nodes 10;"
    assert engines.parse(f"gtp:{PROGRAM}") == EngineSpec(f"gtp:{PROGRAM}", "gtp", (sys.executable,), ())
    assert engines.parse(text.replace("a; b", "a b")) == EngineSpec(
        text.replace("a; b", "a b"), "uci", (sys.executable, "-c", "a b", "--x"), ("Skill Level=3", "go nodes 10")
    )
    assert engines.parse("random") is engines.parse("gtp") is engines.parse("agent:hex_5x5") is None


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("gtp:", "names no program; write its command after the colon, as in gtp:PROGRAM"),
        ("uci: ; Skill Level=3", "names no program"),
        ("gtp:no-such-program --level 3", "there is no program 'no-such-program' to play as .*full path"),
        ("gtp:'half", "cannot be read: no closing quotation"),
    ],
)
def test_a_name_that_starts_nothing_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        players.parse(text)


@pytest.mark.parametrize(
    "protocol, game, sentence",
    [
        ("uci", "tic_tac_toe", "tic_tac_toe is not played by UCI, which is for chess, gardner_chess; .* gtp:COMMAND"),
        ("uci", "animal_shogi", "which is for chess, gardner_chess; name the engine as usi:COMMAND"),
        ("gtp", "2048", "a game for one player, and a match with an engine needs two"),
        (
            "gtp",
            "backgammon",
            "backgammon is not played by GTP, which is for games without chance; name the engine as gnubg:COMMAND",
        ),
    ],
)
def test_a_game_that_a_protocol_has_not_is_refused_in_a_sentence(protocol, game, sentence):
    spec = EngineSpec("x", protocol, ("x",), ())
    with pytest.raises(ValueError, match=sentence):
        engines.check(spec, environment_of(game))


def test_a_game_with_chance_of_ones_own_has_no_engine():
    with pytest.raises(ValueError, match="a match with an engine is for games without chance, and pig has it"):
        engines.check(EngineSpec("x", "gtp", ("x",), ()), load_environment("examples/pig.py"))


def test_every_game_without_chance_is_played_by_gtp_and_those_of_pieces_by_one_more():
    for game, protocol in [("tic_tac_toe", "gtp"), ("gardner_chess", "uci"), ("animal_shogi", "usi")]:
        engines.check(EngineSpec("x", protocol, ("x",), ()), environment_of(game))
        engines.check(EngineSpec("x", "gtp", ("x",), ()), environment_of(game))
    engines.check(EngineSpec("x", "gtp", ("x",), ()), make_nim(9))


def test_an_engine_enters_a_match_under_its_name_and_nothing_else():
    """Where players are asked by batches, as the oracle does, it is refused in a sentence."""
    entrant = players.load(players.parse(f"gtp:{PROGRAM} -V"), tiny_run.agent())
    assert entrant.name == f"gtp:{PROGRAM} -V" and entrant.engine == entrant.program and entrant.params is None
    with pytest.raises(ValueError, match="is another program, which plays matches and tournaments alone"):
        entrant.player.act(None, jax.random.key(0), None)
