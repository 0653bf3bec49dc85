"""Matches with other programs: fair, counted as all others, and ended by one error message if a program fails.

The scripted engine puts its stone on the first free cell, so that a player of ours can stand for it.
"""

import functools
import os
import shlex
import signal
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import load_agent
from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engine import EngineMove
from muzero_jax.apps.evaluation import engine_games, matches, players
from muzero_jax.apps.evaluation.engine_games import Arbiter, PlayedGame, Seat
from muzero_jax.apps.evaluation.engine_matches import Conditions, EngineMatch
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.players import Entrant
from muzero_jax.apps.sources import stored_games
from muzero_jax.games.game_files import read_games
from tests.reference import engines as programs
from tests.reference import tiny_run
from tests.reference.games import environment_of
from tests.reference.pages import ROOT

TIC_TAC_TOE = environment_of("tic_tac_toe")
KEY = jax.random.key(3)


def first_legal(params, key, states):
    return jnp.argmax(states.legal_action_mask, axis=-1)


def last_legal(params, key, states):
    return 8 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1)


LAST = Entrant("last", Player("last legal", last_legal), None, "last")


# --- one game ---------------------------------------------------------------------------------------------------------


@functools.cache
def arbiter(name="tic_tac_toe"):
    return Arbiter(environment_of(name))


class Script(Seat):
    """A player that makes the moves of a list and then resigns; it records its questions."""

    def __init__(self, *actions):
        self.actions, self.asked = list(actions), []

    def choose(self, state, plies, colour, key):
        self.asked.append((colour, [ply.text for ply in plies]))
        return self.actions.pop(0) if self.actions else None


def begun(name="tic_tac_toe"):
    return jax.jit(environment_of(name).init)(KEY)


@pytest.mark.parametrize(
    "opening, first, second, lead, score, actions, illegal",
    [
        ([0, 3, -1, 1], Script(2), Script(4), 1.0, "B+", [0, 3, 1, 4, 2], 0),  # no player is asked during the opening
        ([], Script(), Script(), -1.0, "W+R", [], 0),
        ([], Script(0), Script(), 1.0, "B+R", [0], 0),
        ([], Script(0, 2, 3, 7, 8), Script(1, 4, 5, 6), 0.0, "0", [0, 1, 2, 4, 3, 5, 7, 6, 8], 0),
        ([], Script(0, 0), Script(99), 1.0, "B+R", [0, 1, 2], 2),  # the first legal actions are played instead
    ],
)
def test_a_games_result_moves_and_illegal_actions_by_hand(opening, first, second, lead, score, actions, illegal):
    played = arbiter().play(begun(), opening, [first, second], KEY)
    assert (played.lead, played.score, [ply.action for ply in played.plies]) == (lead, score, actions)
    assert [ply.colour for ply in played.plies] == [turn % 2 for turn in range(len(actions))]
    assert played.illegal_actions == illegal


def test_a_forced_pass_is_played_without_asking_the_player():
    """A game of Othello in which black has no move after eight."""
    state, notation, white = begun("othello"), arbiter("othello").notation, Script()
    opening = [notation.read(state, text) for text in "f5 f6 d3 g5 h5 h4 f7 h6".split()]
    played = arbiter("othello").play(state, opening, [Script(), white], KEY)
    assert played.plies[8:] == (EngineMove(0, 64, "pass", is_forced_pass=True),) and white.asked[0][1][-1] == "pass"


def test_a_game_is_recorded_as_sgf_that_a_run_can_learn_from(tmp_path):
    played = arbiter().play(begun(), [0], [Script(1, 2), Script(3, 4)], KEY)
    text = engine_games.record(arbiter(), played, ("me", "a\\b [1]"))
    assert "SZ[3]PB[me]PW[a\\\\b [1\\]]RE[B+]" in text and "GM[" not in text
    (tmp_path / "game.sgf").write_text(text)
    (game,) = read_games(tmp_path)
    assert game.moves == ("a1", "a2", "b1", "b2", "c1") and game.colours == (0, 1, 0, 1, 0) and game.size == 3
    frames = stored_games.play(TIC_TAC_TOE, [game], keeps_state=False)
    assert frames.search_value.tolist() == [1.0, -1.0, 1.0, -1.0, 1.0]
    plies = (EngineMove(0, 0, "A9"), EngineMove(1, 80, "J1"), EngineMove(0, 81, "pass"), EngineMove(1, 81, "pass"))
    text = engine_games.record(arbiter("go_9x9"), PlayedGame(plies, 2, -1.0, "W+7.5", 0), ("a", "b"))
    assert "GM[1]SZ[9]KM[7.5]PB[a]PW[b]RE[W+7.5]" in text
    assert text.split("\n")[1:5] == [";B[aa]", ";W[ii]", ";B[]", ";W[])"]


# --- matches ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch):
    """The processes that a test starts, of which none may be left."""
    processes, start = [], engines.start
    monkeypatch.setattr(
        engines, "start", lambda *args, **kwargs: processes.append(start(*args, **kwargs)) or processes[-1]
    )
    yield processes
    assert all(programs.is_gone(engine.process._process.pid) for engine in processes)


def fake(*arguments, protocol="gtp", settings=""):
    name = programs.name(protocol, *arguments, settings=settings)
    return players.enter(players.parse(name), tiny_run.agent())


def make(a, b, environment=TIC_TAC_TOE, num_games=6, **conditions):
    return EngineMatch(environment, a, b, num_games=num_games, opening_plies=2, conditions=Conditions(**conditions))


@functools.cache
def reference(num_games):
    """The match that the scripted engine and `LAST` would play as players of ours, on one device."""
    pieces = matches.match_in_pieces(
        TIC_TAC_TOE, Player("first", first_legal), LAST.player, num_games=num_games, opening_plies=2
    )
    return jax.device_get(jax.jit(lambda: pieces.advance(None, None, KEY, pieces.begin(KEY), 100).result)())


@pytest.mark.parametrize("num_tables", [1, 3])
def test_a_match_with_an_engine_is_the_match_that_a_player_like_it_would_play(started, num_tables):
    """Openings, seats, outcomes and lengths, game for game; each opening from both sides; 19 games are 20."""
    match, finished = make(fake(), LAST, num_games=19, num_tables=num_tables), []
    summary = match(None, None, KEY, lambda *counts: finished.append(counts))
    for ours, theirs in zip(match._result[:-1], reference(20)[:-1], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert summary == matches.summarise(reference(20)) | {"engine": "Fake 1.0"}
    assert len(started) == num_tables and finished[-1] == (20, 20)


def test_the_engine_may_be_either_player_or_both_and_resign_and_all_games_are_kept_as_sgf(started, tmp_path):
    as_b = make(LAST, fake(), num_games=20)
    as_b(None, None, KEY)
    np.testing.assert_array_equal(as_b._result.points, -reference(20).points[::-1])
    both = make(fake(), fake("--noise", 10), folder=tmp_path / "games")(None, None, KEY)
    assert both["score"] == 0.5 and both["games"] == 6 and len(started) == 3
    resigned = make(LAST, fake("--then", "say = resign|"))(None, None, KEY)
    assert (resigned["wins"], resigned["losses"]) == (6, 0)
    games = read_games(tmp_path / "games")
    assert len(games) == 6 and [game.moves[:2] for game in games[::2]] == [game.moves[:2] for game in games[1::2]]
    assert len({game.moves[:2] for game in games}) > 1


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--then", "die"], r"ended \(exit status 3\) when asked 'genmove [bw]'; it said 'out of luck'"),
        (["--then", "hang"], "did not answer 'genmove [bw]' in time"),
        (["--then", "flood"], "'and another thing', which is not GTP"),
        (["--then", "say = z9|"], "'z9', which is not a legal move after [a-c][1-3] [a-c][1-3]"),
        (["--noise", 1_000_000, "--then", "die"], r"ended \(exit status 3\)"),
        (["--refuses", "play"], "rejected 'play [bw] [a-c][1-3]' with 'I would rather not'"),
    ],
)
def test_an_engine_that_fails_ends_the_match_with_a_one_line_error(started, arguments, sentence):
    with pytest.raises(ValueError, match=f"^the engine gtp:.* .*{sentence}") as error:
        make(fake(*arguments), LAST, seconds=0.5)(None, None, KEY)
    assert "had ended" not in str(error.value) and "\n" not in str(error.value)


def test_an_engine_that_fails_later_keeps_the_games_before_it(started, tmp_path):
    """It makes at most four moves a game and dies at the seventh, so a game has ended before."""
    folder = tmp_path / "games"
    with pytest.raises(ValueError, match=rf"; [1-5] of 6 games had ended: .* lost, kept in {folder}$") as error:
        make(fake("--then", "die", "--at", 6), LAST, folder=folder)(None, None, KEY)
    assert len(read_games(folder)) == int(str(error.value).split("; ")[-1][0])


def test_sigterm_reports_the_score_so_far_and_leaves_no_process(started):
    said = []
    match = make(fake("--then", "hang", "--at", 6), LAST, num_tables=2, say=said.append)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM))

    def report(finished, total):
        if finished == 1:  # both engines hang in the game that follows
            timer.start()

    with pytest.raises(KeyboardInterrupt):
        match(None, None, KEY, report)
    assert len(said) == 1 and " of 6 games had ended: " in said[0]


# --- real programs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_own_engine_over_a_pipe_plays_as_inside_the_process(started):
    """Hex 5x5 against the policy head: the same games, although batches round differently."""
    agent = load_agent(Path("agent:hex_5x5"), 16)
    command = shlex.join([sys.executable, f"{ROOT}/experiments/play.py"])
    name = f"gtp:{command} --agent hex_5x5 --num-simulations 16 --device cpu --engine"
    over_pipe, greedy, inside = (
        players.enter(players.parse(text), agent) for text in (name, "greedy", "agent:hex_5x5@16")
    )
    environment = agent.environment
    match = EngineMatch(environment, over_pipe, greedy, num_games=12, opening_plies=1, conditions=Conditions())
    match(None, greedy.params, KEY)
    pieces = matches.match_in_pieces(environment, inside.player, greedy.player, num_games=12, opening_plies=1)
    play = jax.jit(lambda params: pieces.advance(params, params, KEY, pieces.begin(KEY), 100).result)
    for ours, theirs in zip(match._result[:-1], jax.device_get(play(agent.params))[:-1], strict=True):
        np.testing.assert_array_equal(ours, theirs)


GNUGO = "gtp:{} --mode gtp --level 1 --chinese-rules --capture-all-dead"


@pytest.mark.parametrize(
    "game, program, line",
    [
        ("othello", "gtp-rhino", "gtp:{} --level 1"),
        pytest.param("go_9x9", "gnugo", GNUGO, marks=pytest.mark.slow),
        pytest.param(
            "gardner_chess", "fairy-stockfish", "uci:{}; Skill Level=20; go nodes 1000", marks=pytest.mark.slow
        ),
        pytest.param("animal_shogi", "fairy-stockfish", "usi:{}; go nodes 50", marks=pytest.mark.slow),
        pytest.param("chess", "fairy-stockfish", "uci:{}; go nodes 50", marks=pytest.mark.slow),
        pytest.param("shogi", "fairy-stockfish", "usi:{}; go nodes 50", marks=pytest.mark.slow),
    ],
)
def test_a_real_program_beats_random_play(started, tmp_path, game, program, line):
    """Passes, promotions, drops and captures of all kinds come up; every game can be read again."""
    environment = environment_of(game)
    entrants = [
        Entrant(text, engines.parse(text) or random_player(environment), None, text)
        for text in (line.format(programs.installed(program)), "random")
    ]
    match = make(*entrants, environment=environment, num_games=4, folder=tmp_path / "games")
    summary = match(None, None, KEY)
    assert summary["wins"] == 4 and summary["illegal_actions"] == 0
    frames = stored_games.play(environment, read_games(tmp_path / "games"), keeps_state=False)
    assert frames.is_last.sum() == 4
