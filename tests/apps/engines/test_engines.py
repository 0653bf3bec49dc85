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


def spec(protocol):
    return EngineSpec("x", protocol, ("x",), ())


def test_a_name_says_protocol_command_and_settings():
    text = f"uci:{PROGRAM} -c 'a b' --x; Skill Level=3 ; go nodes 10;"
    assert engines.parse(f"gtp:{PROGRAM}") == EngineSpec(f"gtp:{PROGRAM}", "gtp", (sys.executable,), ())
    assert engines.parse(text) == EngineSpec(
        text, "uci", (sys.executable, "-c", "a b", "--x"), ("Skill Level=3", "go nodes 10")
    )
    assert engines.parse("random") is engines.parse("gtp") is engines.parse("agent:hex_5x5") is None


@pytest.mark.parametrize("text", ["gtp:", "uci: ; Skill Level=3", "gtp:no-such-program --level 3", "gtp:'half"])
def test_a_name_that_starts_nothing_is_refused(text):
    with pytest.raises(ValueError, match=text.split()[0]):
        players.parse(text)


@pytest.mark.parametrize(
    "protocol, game, instead",
    [
        ("uci", "tic_tac_toe", "gtp:COMMAND"),
        ("uci", "animal_shogi", "usi:COMMAND"),
        ("gtp", "2048", "a single-player game"),
        ("gtp", "backgammon", "gnubg:COMMAND"),
        ("gnubg", "gardner_chess", "uci:COMMAND"),
    ],
)
def test_a_game_that_a_protocol_has_not_is_refused_and_the_right_one_named(protocol, game, instead):
    with pytest.raises(ValueError, match=f"{game} is .*{instead}"):
        engines.check(spec(protocol), environment_of(game))


def test_a_game_with_chance_of_ones_own_has_no_engine():
    with pytest.raises(ValueError, match="pig"):
        engines.check(spec("gtp"), load_environment("examples/pig.py"))


def test_every_game_without_chance_is_played_by_gtp_and_those_of_pieces_by_one_more():
    for game, protocol in [("tic_tac_toe", "gtp"), ("gardner_chess", "uci"), ("animal_shogi", "usi")]:
        engines.check(spec(protocol), environment_of(game))
        engines.check(spec("gtp"), environment_of(game))
    engines.check(spec("gtp"), make_nim(9))
    engines.check(spec("gnubg"), environment_of("backgammon"))


def test_an_engine_enters_a_match_under_its_name_and_nothing_else():
    entrant = players.load(players.parse(f"gtp:{PROGRAM} -V"), tiny_run.agent())
    assert entrant.name == f"gtp:{PROGRAM} -V" and entrant.engine == entrant.program and entrant.params is None
    with pytest.raises(ValueError, match="another program"):  # where players are asked by batches, as the oracle does
        entrant.player.act(None, jax.random.key(0), None)
