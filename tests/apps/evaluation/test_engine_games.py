"""A game on the host: by our rules, in the seats that it was given, and kept as a file that we can read."""

import functools

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines.engine import Engine, EngineError, Ply
from muzero_jax.apps.evaluation import engine_games
from muzero_jax.apps.evaluation.engine_games import RESIGNS, Arbiter, EngineSeat, PlayedGame, PlayerSeat
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.apps.sources import stored_games
from muzero_jax.games.game_files import read_games
from tests.reference.games import environment_of
from tests.reference.nim import make_nim

KEY = jax.random.key(0)


@functools.cache
def arbiter(name="tic_tac_toe"):
    return Arbiter(environment_of(name))


class Script:
    """A player that makes the moves of a list, and notes what it was asked."""

    def __init__(self, *actions, is_legal=True):
        self.actions, self.is_legal, self.asked, self.num_games = list(actions), is_legal, [], 0

    def new_game(self):
        self.num_games += 1

    def choose(self, state, plies, colour, key):
        self.asked.append((colour, [ply.text for ply in plies]))
        return self.actions.pop(0), self.is_legal


def start(name="tic_tac_toe", seed=0):
    return jax.jit(environment_of(name).init)(jax.random.key(seed))


# --- games ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_first_seat_moves_first_whoever_pgx_says_begins(seed):
    first, second = Script(0, 1, 2), Script(3, 4)
    played = arbiter().play(start(seed=seed), [], [first, second], KEY)
    assert [ply.text for ply in played.plies] == ["a1", "a2", "b1", "b2", "c1"]
    assert [ply.colour for ply in played.plies] == [0, 1, 0, 1, 0]
    assert (played.lead > 0, played.score, played.illegal_actions) == (True, "B+", 0)
    assert first.num_games == second.num_games == 1
    assert second.asked == [(1, ["a1"]), (1, ["a1", "a2", "b1"])]


def test_a_game_that_begins_after_an_opening_says_who_has_the_first_seat():
    state = start()
    first, second = Script(3, 4), Script(0, 1, 2)
    played = arbiter().play(state, [], [first, second], KEY, first=1 - int(state.current_player))
    assert [ply.colour for ply in played.plies] == [1, 0, 1, 0, 1] and (played.lead, played.score) == (-1, "W+")


def test_an_opening_is_played_before_anybody_is_asked():
    first, second = Script(2), Script(4)
    played = arbiter().play(start(), [0, 3, -1, 1], [first, second], KEY)
    assert [ply.action for ply in played.plies] == [0, 3, 1, 4, 2] and played.num_opening == 3
    assert first.asked == [(0, ["a1", "a2", "b1", "b2"])]


def test_who_resigns_has_lost():
    lost = arbiter().play(start(), [], [Script(RESIGNS), Script()], KEY)
    won = arbiter().play(start(), [], [Script(0), Script(RESIGNS)], KEY)
    assert [(game.lead, game.score, len(game.plies)) for game in (lost, won)] == [(-1.0, "W+R", 0), (1.0, "B+R", 1)]


def test_a_drawn_game_leads_nobody():
    drawn = arbiter().play(start(), [], [Script(0, 2, 3, 7, 8), Script(1, 4, 5, 6)], KEY)
    assert (drawn.lead, drawn.score) == (0.0, "0")


def test_illegal_actions_are_counted():
    assert arbiter().play(start(), [], [Script(0, 1, 2, is_legal=False), Script(3, 4)], KEY).illegal_actions == 3


def test_a_player_that_moves_twice_keeps_its_colour():
    nim = Arbiter(make_nim(3, passes_turn=False))
    played = nim.play(make_nim(3, passes_turn=False).init(KEY), [], [Script(0, 0, 0), Script()], KEY)
    assert [ply.colour for ply in played.plies] == [0, 0, 0] and played.lead > 0


def test_a_pass_that_is_forced_is_asked_of_nobody():
    """A game of Othello in which black has no move after eight."""
    line = "f5 f6 d3 g5 h5 h4 f7 h6".split()
    state, notation = start("othello"), arbiter("othello").notation
    opening = [notation.read(state, text) for text in line]
    white = Script(RESIGNS)
    played = arbiter("othello").play(state, opening, [Script(), white], KEY)
    assert played.plies[8:] == (Ply(0, 64, "pass", is_forced_pass=True),) and white.asked[0][1][-1] == "pass"


# --- seats ------------------------------------------------------------------------------------------------------------


def test_a_player_of_ours_that_chooses_an_illegal_action_gets_the_first_legal_one():
    seat = PlayerSeat(Player("its weights", lambda params, key, states: jnp.full(1, params)), jnp.int32(4))
    state = start()
    assert seat.choose(state, [], 0, KEY) == (4, True)
    taken = environment_of("tic_tac_toe").move(state, jnp.int32(4)).state
    assert seat.choose(taken, [], 1, KEY) == (0, False)


class Says(Engine):
    """An engine that says one thing, and its process."""

    def __init__(self, text):
        self.text, self.process = text, self

    def greet(self, settings):
        pass

    def new_game(self):
        pass

    def choose(self, plies, colour, state=None):
        return self.text

    def failure(self, what):
        return EngineError(f"the engine X {what}")


def test_an_engines_move_is_read_as_the_game_writes_it_or_refused_with_the_moves_before_it():
    def seat(text):
        return EngineSeat(Says(text), arbiter().notation)

    state = environment_of("tic_tac_toe").move(start(), jnp.int32(4)).state
    assert seat("C1").choose(state, [], 1, KEY) == (2, True)
    assert seat("Resign").choose(state, [], 1, KEY) == (RESIGNS, True)
    plies = [Ply(0, 4, "b2")]
    for text in ("b2", "d7", "pass"):
        with pytest.raises(EngineError, match=f"^the engine X answered with '{text}', .* no legal move after b2$"):
            seat(text).choose(state, plies, 1, KEY)
    with pytest.raises(EngineError, match=r"after no move$"):
        seat("b2").choose(state, [], 1, KEY)
    with pytest.raises(EngineError, match=r"after \.\.\.( b2){12}$"):
        seat("b2").choose(state, plies * 20, 1, KEY)


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_is_sgf_that_can_be_learned_from(tmp_path):
    played = arbiter().play(start(), [0], [Script(1, 2), Script(3, 4)], KEY)
    (tmp_path / "game.sgf").write_text(engine_games.record(arbiter(), played, ("me", "a\\b [1]")))
    text = (tmp_path / "game.sgf").read_text()
    assert "SZ[3]PB[me]PW[a\\\\b [1\\]]RE[B+]" in text and "GM[" not in text
    (game,) = read_games(tmp_path)
    assert game.moves == ("a1", "a2", "b1", "b2", "c1") and game.colours == (0, 1, 0, 1, 0) and game.size == 3
    frames = stored_games.play(environment_of("tic_tac_toe"), [game], keeps_state=False)
    assert frames.search_value.tolist() == [1.0, -1.0, 1.0, -1.0, 1.0]


def test_a_record_of_go_has_sgfs_points_komi_and_the_score():
    go = arbiter("go_9x9")
    plies = (Ply(0, 0, "A9"), Ply(1, 80, "J1"), Ply(0, 81, "pass"), Ply(1, 81, "pass"))
    text = engine_games.record(go, PlayedGame(plies, 2, -1.0, "W+7.5", 0), ("a", "b"))
    assert "GM[1]SZ[9]KM[7.5]PB[a]PW[b]RE[W+7.5]" in text
    assert text.split("\n")[1:5] == [";B[aa]", ";W[ii]", ";B[]", ";W[])"]
    assert [go.notation.read_sgf(word) for word in ("aa", "ii", "")] == [0, 80, 81]
