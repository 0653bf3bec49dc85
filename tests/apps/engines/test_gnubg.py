"""GNU Backgammon as an opponent: what it is told, what its turns mean, and the dice that our rules play for them."""

import functools
import shutil
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines import engines, gnubg
from muzero_jax.apps.engines.engine import EngineError
from muzero_jax.apps.evaluation.engine_matches import Conditions, EngineMatch
from muzero_jax.apps.evaluation.player import random_player
from muzero_jax.apps.evaluation.players import Entrant
from muzero_jax.games.backgammon import mover_points, roll
from muzero_jax.games.catalogue import make_notation
from tests.games.test_backgammon import BAR, OFF, THEIR_BAR, THEIR_OFF, position
from tests.reference.games import environment_of

FAKE = Path(__file__).parents[2] / "reference" / "fake_gnubg.py"
REAL = shutil.which("gnubg") or shutil.which("/usr/games/gnubg")
OPENING = [0, -2, 0, 0, 0, 0, 5, 0, 3, 0, 0, 0, -5, 5, 0, 0, 0, -3, 0, -5, 0, 0, 0, 0, 2, 0]
KEY = jax.random.key(0)


@functools.cache
def environment():
    environment = environment_of("backgammon")
    return environment._replace(chance=environment.chance._replace(move=jax.jit(environment.chance.move)))


@pytest.fixture
def start():
    """`start(turns)`: the scripted program; `start(command=...)`: another one. All are ended."""
    running = []

    def begin(*turns, command=(), settings=()):
        spec = engines.EngineSpec("gnubg", engines.GNUBG, command or (sys.executable, str(FAKE), *turns), settings)
        running.append(engines.start(spec, environment(), seconds=20.0))
        return running[-1]

    yield begin
    for engine in running:
        engine.process.close()


def turn_of(engine, state):
    """All dice that the engine plays of one turn, and the board after them."""
    played, notation = [], make_notation(environment())
    while True:
        played.append(engine.choose([], 0, state))
        after = environment().chance.move(state, jnp.int32(notation.read(state, played[-1])))
        state = after.state
        if after.awaits_chance or state.terminated or not engine._rest:
            return played, mover_points(state)


def test_a_position_is_sent_from_the_movers_side_with_negative_opposing_checkers(start):
    assert mover_points(position((3, 1))) == OPENING and roll(position((3, 1))) == (3, 1)
    state = position((5, 5), {BAR: 2, THEIR_BAR: -1, OFF: 4, THEIR_OFF: -3, 23: 6, 0: 3, 10: -11})
    assert mover_points(state) == [2, 6, *[0] * 12, -11, *[0] * 9, 3, -1]
    engine = start()
    assert engine.hints(position((3, 1)), 1) == [] and engine.title == "GNU Backgammon 1.07.fake"
    assert engine.process._last[-2].endswith(f"set board simple {' '.join(map(str, OPENING))} | set dice 3 1")


def test_an_unknown_word_in_a_setting_is_an_error_despite_a_flood_on_stderr(start):
    start(settings=("set evaluation chequerplay evaluation plies 2",))
    with pytest.raises(EngineError, match="rejected a setting with .Unknown keyword .sett"):
        start(settings=("chatter 20000", "sett plies 2"))


# --- what its turns mean ----------------------------------------------------------------------------------------------


def board_with(**places):
    """26 numbers, which are 0 but at these places: p6=2 for point 6, bar=1, their_bar=-1."""
    board = [0] * 26
    for place, count in places.items():
        board[{"bar": 0, "their_bar": 25}.get(place) if "bar" in place else int(place[1:])] = count
    return board


@pytest.mark.parametrize(
    "before, turn, after",
    [
        ({"p8": 3, "p6": 5}, "8/5 6/5", {"p8": 2, "p6": 4, "p5": 2}),
        ({"p24": 2, "p13": 5}, "24/18(2) 13/7(2)", {"p18": 2, "p13": 3, "p7": 2}),
        ({"bar": 1, "p20": -1}, "bar/20*", {"p20": 1, "their_bar": -1}),
        ({"p8": 1, "p5": -1, "p2": -1}, "8/5*/2*", {"p2": 1, "their_bar": -2}),
        ({"p13": 2, "p7": -1}, "13/7*(2)", {"p7": 2, "their_bar": -1}),
        ({"p8": 1, "p5": -1}, "8/2", {"p5": -1, "p2": 1}),
        ({"p2": 1, "p1": 2}, "2/off 1/off(2)", {}),
        ({"bar": 2}, "", {"bar": 2}),
    ],
)
def test_a_gnubg_turn_leads_to_the_expected_board(before, turn, after):
    assert gnubg.after_turn(board_with(**before), turn) == board_with(**after)


# --- the dice that our rules play -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "turn, dice, checkers, expected",
    [
        ("8/5 6/5", (3, 1), None, {"8/5", "6/5"}),
        ("24/13", (5, 6), None, {"24/18", "18/13"}),  # point 19 is held, so the 6 comes first
        ("13/3(2)", (5, 5), None, {"13/8", "8/3"}),
        ("bar/20 13/7", (5, 6), {BAR: 1, 11: 14, 23: -15}, {"bar/20", "13/7"}),
        ("5/off 1/off", (6, 1), {19: 1, 23: 1, OFF: 13, 0: -15}, {"5/off(6)", "1/off"}),
        ("6/off 5/4", (6, 1), {18: 1, 19: 1, OFF: 13, 0: -15}, {"6/off", "5/4"}),
    ],
)
def test_a_gnubg_turn_is_played_one_die_at_a_time(start, turn, dice, checkers, expected):
    state = position(dice, checkers)
    played, board = turn_of(start(turn), state)
    assert set(played) == expected and board == gnubg.after_turn(mover_points(state), turn)
    assert len(played) == (4 if dice[0] == dice[1] else 2)


def test_an_impossible_turn_is_an_error_and_a_turn_begun_by_the_opening_continues(start):
    with pytest.raises(EngineError, match="'13/5'"):
        start("13/5").choose([], 0, position((3, 1)))
    state = position((3, 1)).replace(_played_dice_num=jnp.int32(1))
    assert state.legal_action_mask[make_notation(environment()).read(state, start().choose([], 0, state))]


# --- matches ----------------------------------------------------------------------------------------------------------


def test_a_match_begins_with_the_dice_that_its_openings_ended_with():
    """Its actions, played again, would meet other dice. The other player is to move."""
    match = EngineMatch(environment(), *entrants(), num_games=4, opening_plies=2, conditions=Conditions())
    openings = match._openings(KEY)
    assert len(openings) == 2
    for start, first, actions in openings:
        assert actions == [] and roll(start) is not None and mover_points(start) != OPENING
        assert int(start.current_player) == 1 - first and int(start._turn) == 1


def entrants():
    name = f"gnubg:{REAL or sys.executable} -t -q"
    spec = engines.parse(name)
    ours = Entrant("random", random_player(environment()), None, "random")
    return Entrant(name, spec, None, spec), ours


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="gnubg is not installed (Debian: apt install gnubg)")
def test_the_real_program_beats_random_play_in_points_and_no_move_is_illegal():
    match = EngineMatch(environment(), *entrants(), num_games=4, opening_plies=2, conditions=Conditions())
    summary = match(None, None, KEY)
    assert summary["wins"] == 4 and summary["illegal_actions"] == 0
    assert summary.get("points_won", 4) >= 4
