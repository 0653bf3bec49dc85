"""Matches with other programs: fair, counted as all others, and over in one sentence where a program fails.

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
from muzero_jax.apps.evaluation import matches, players, tournament
from muzero_jax.apps.evaluation.engine_matches import Conditions, EngineMatch
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.players import Entrant
from muzero_jax.apps.sources import stored_games
from muzero_jax.games.game_files import read_games
from tests.reference import engines as programs
from tests.reference import tiny_run
from tests.reference.games import environment_of
from tests.reference.process import ROOT

TIC_TAC_TOE = environment_of("tic_tac_toe")
KEY = jax.random.key(3)


def first_legal(params, key, states):
    return jnp.argmax(states.legal_action_mask, axis=-1)


def last_legal(params, key, states):
    return 8 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1)


LAST = Entrant("last", Player("last legal", last_legal), None, "last")


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


def test_the_engine_may_be_either_player_or_both(started):
    as_b = make(LAST, fake(), num_games=20)
    as_b(None, None, KEY)
    np.testing.assert_array_equal(as_b._result.points, -reference(20).points[::-1])
    both = make(fake(), fake("--noise", 10))(None, None, KEY)
    assert both["score"] == 0.5 and both["games"] == 6 and len(started) == 3
    resigned = make(LAST, fake("--then", "say = resign|"))(None, None, KEY)
    assert (resigned["wins"], resigned["losses"]) == (6, 0)


def test_all_games_are_kept_as_sgf_with_the_players_in_their_seats(started, tmp_path):
    engine = fake()
    make(engine, LAST, folder=tmp_path / "games")(None, None, KEY)
    games = read_games(tmp_path / "games")
    assert len(games) == 6 and [game.moves[:2] for game in games[::2]] == [game.moves[:2] for game in games[1::2]]
    assert len({game.moves[:2] for game in games}) > 1
    files = sorted((tmp_path / "games").iterdir())
    assert [file.name for file in files[:2]] == ["game-0001.sgf", "game-0002.sgf"]
    assert f"PB[{engine.name}]PW[last]" in files[0].read_text() and "PB[last]PW[gtp:" in files[1].read_text()


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
def test_an_engine_that_fails_ends_the_match_in_one_sentence(started, arguments, sentence):
    with pytest.raises(ValueError, match=f"^the engine gtp:.* .*{sentence}") as error:
        make(fake(*arguments), LAST, seconds=0.5)(None, None, KEY)
    assert "had ended" not in str(error.value) and "\n" not in str(error.value)


def test_an_engine_that_fails_later_leaves_the_games_before_it(started, tmp_path):
    """Two games of three moves each at most: it dies in the second or third."""
    folder = tmp_path / "games"
    with pytest.raises(ValueError, match=rf"; [1-5] of 6 games had ended: .* lost, kept in {folder}$") as error:
        make(fake("--then", "die", "--at", 6), LAST, folder=folder)(None, None, KEY)
    assert len(read_games(folder)) == int(str(error.value).split("; ")[-1][0])


def test_a_record_that_cannot_be_written_ends_the_match_with_its_standing(started, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot write games to .*Not a directory; .*; 1 of 6 games had ended"):
        make(fake(), LAST, folder=tmp_path / "file" / "games")(None, None, KEY)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_match_that_is_interrupted_says_how_it_stood_and_leaves_no_process(started, number):
    said = []
    # The tests may run under nohup, or behind a shell's &, which ignores SIGINT.
    usual = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    previous = {each: signal.signal(each, handler) for each, handler in usual.items()}
    match = make(fake("--then", "hang", "--at", 6), LAST, num_tables=2, say=said.append)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), number))

    def report(finished, total):
        if finished == 1:  # both engines hang in the game that follows
            timer.start()

    try:
        with pytest.raises(KeyboardInterrupt):
            match(None, None, KEY, report)
    finally:
        timer.cancel()
        for each, handler in previous.items():
            signal.signal(each, handler)
    assert len(said) == 1 and " of 6 games had ended: " in said[0]


def test_an_engine_plays_in_a_tournament(started, saved_run, tmp_path):
    engine = programs.name("gtp")
    head = f"{saved_run}:greedy"
    field = tournament.enter((head, engine, "random"))
    result = tournament.play(
        field, tiny_run.mesh(), num_games=4, opening_plies=1, seed=0, conditions=Conditions(folder=tmp_path)
    )
    assert [player["name"] for player in result["players"]] == [head, engine, "random"]
    assert [match["games"] for match in result["matches"]] == [4, 4, 4]
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["match-01", "match-03"]
    assert len(read_games(tmp_path)) == 8
    assert engine in tournament.format_table(result)


# --- real programs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_own_engine_over_a_pipe_plays_as_inside_the_process(started):
    """Hex 5x5 against the policy head: the same games, though a batch of positions may round as no single one does."""
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
        pytest.param("gardner_chess", "fairy-stockfish", "uci:{}; Skill Level=0; go nodes 50", marks=pytest.mark.slow),
        pytest.param("animal_shogi", "fairy-stockfish", "usi:{}; go nodes 50", marks=pytest.mark.slow),
        pytest.param("chess", "fairy-stockfish", "uci:{}; go nodes 50", marks=pytest.mark.slow),
        pytest.param("shogi", "fairy-stockfish", "usi:{}; go nodes 50", marks=pytest.mark.slow),
    ],
)
def test_a_real_program_beats_random_play(started, tmp_path, game, program, line):
    """Passes, promotions, drops and captures of all kinds come up; every game can be read again."""
    environment = environment_of(game)
    entrants = [
        Entrant(text, Player(text, random_player(environment).act), None, text, engines.parse(text))
        for text in (line.format(programs.installed(program)), "random")
    ]
    match = make(*entrants, environment=environment, num_games=4, folder=tmp_path / "games")
    summary = match(None, None, KEY)
    assert summary["wins"] == 4 and summary["illegal_actions"] == 0
    frames = stored_games.play(environment, read_games(tmp_path / "games"), keeps_state=False)
    assert frames.is_last.sum() == 4
