"""A game on the host: by our rules, in the seats that it was given, and kept as a file that we can read."""

import functools

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines.engine import Engine, EngineError, Ply
from muzero_jax.apps.evaluation import engine_games
from muzero_jax.apps.evaluation.engine_games import Arbiter, EngineSeat, PlayedGame, PlayerSeat
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
    """A player that makes the moves of a list and then resigns, and notes what it was asked."""

    def __init__(self, *actions):
        self.actions, self.asked, self.num_games = list(actions), [], 0

    def new_game(self):
        self.num_games += 1

    def choose(self, state, plies, colour, key):
        self.asked.append((colour, [ply.text for ply in plies]))
        return self.actions.pop(0) if self.actions else None


def start(name="tic_tac_toe", seed=0):
    return jax.jit(environment_of(name).init)(jax.random.key(seed))


@pytest.mark.parametrize("seed", range(4))
def test_the_first_seat_moves_first_whoever_pgx_says_begins(seed):
    first, second = Script(0, 1, 2), Script(3, 4)
    played = arbiter().play(start(seed=seed), [], [first, second], KEY)
    assert [ply.text for ply in played.plies] == ["a1", "a2", "b1", "b2", "c1"]
    assert [ply.colour for ply in played.plies] == [0, 1, 0, 1, 0]
    assert (played.lead > 0, played.score, played.illegal_actions) == (True, "B+", 0)
    assert first.num_games == second.num_games == 1 and second.asked == [(1, ["a1"]), (1, ["a1", "a2", "b1"])]


@pytest.mark.parametrize(
    "opening, first, second, lead, score, actions",
    [
        ([0, 3, -1, 1], Script(2), Script(4), 1.0, "B+", [0, 3, 1, 4, 2]),  # nobody is asked before it was played
        ([], Script(), Script(), -1.0, "W+R", []),
        ([], Script(0), Script(), 1.0, "B+R", [0]),
        ([], Script(0, 2, 3, 7, 8), Script(1, 4, 5, 6), 0.0, "0", [0, 1, 2, 4, 3, 5, 7, 6, 8]),
    ],
)
def test_outcomes_by_hand(opening, first, second, lead, score, actions):
    played = arbiter().play(start(), opening, [first, second], KEY)
    assert (played.lead, played.score, [ply.action for ply in played.plies]) == (lead, score, actions)
    assert played.num_opening == len([action for action in opening if action >= 0])


def test_an_illegal_action_is_counted_and_the_first_legal_one_played():
    played = arbiter().play(start(), [], [Script(0, 0), Script(99)], KEY)
    assert [ply.action for ply in played.plies] == [0, 1, 2] and played.illegal_actions == 2


def test_a_game_that_begins_after_an_opening_says_who_has_the_first_seat_and_a_colour_may_move_twice():
    state = start()
    played = arbiter().play(state, [], [Script(3, 4), Script(0, 1, 2)], KEY, first=1 - int(state.current_player))
    assert [ply.colour for ply in played.plies] == [1, 0, 1, 0, 1] and (played.lead, played.score) == (-1, "W+")
    nim = make_nim(3, passes_turn=False)
    played = Arbiter(nim).play(nim.init(KEY), [], [Script(0, 0, 0), Script()], KEY)
    assert [ply.colour for ply in played.plies] == [0, 0, 0] and played.lead > 0


def test_a_pass_that_is_forced_is_asked_of_nobody():
    """A game of Othello in which black has no move after eight."""
    state, notation, white = start("othello"), arbiter("othello").notation, Script()
    opening = [notation.read(state, text) for text in "f5 f6 d3 g5 h5 h4 f7 h6".split()]
    played = arbiter("othello").play(state, opening, [Script(), white], KEY)
    assert played.plies[8:] == (Ply(0, 64, "pass", is_forced_pass=True),) and white.asked[0][1][-1] == "pass"


def test_a_seat_asks_a_player_of_ours_with_its_weights():
    seat = PlayerSeat(Player("its weights", lambda params, key, states: jnp.full(1, params)), jnp.int32(4))
    assert seat.choose(start(), [], 0, KEY) == 4


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
    def choose(text, plies=()):
        return EngineSeat(Says(text), arbiter().notation).choose(state, list(plies), 1, KEY)

    state, plies = environment_of("tic_tac_toe").move(start(), jnp.int32(4)).state, [Ply(0, 4, "b2")]
    assert choose("C1") == 2 and choose("Resign") is None
    for text in ("b2", "d7", "pass"):
        with pytest.raises(EngineError, match=f"'{text}', .* not a legal move after b2$"):
            choose(text, plies)
    with pytest.raises(EngineError, match=r"after \.\.\.( b2){12}$"):
        choose("b2", plies * 20)


def test_a_record_is_sgf_that_can_be_learned_from(tmp_path):
    played = arbiter().play(start(), [0], [Script(1, 2), Script(3, 4)], KEY)
    text = engine_games.record(arbiter(), played, ("me", "a\\b [1]"))
    assert "SZ[3]PB[me]PW[a\\\\b [1\\]]RE[B+]" in text and "GM[" not in text
    (tmp_path / "game.sgf").write_text(text)
    (game,) = read_games(tmp_path)
    assert game.moves == ("a1", "a2", "b1", "b2", "c1") and game.colours == (0, 1, 0, 1, 0) and game.size == 3
    frames = stored_games.play(environment_of("tic_tac_toe"), [game], keeps_state=False)
    assert frames.search_value.tolist() == [1.0, -1.0, 1.0, -1.0, 1.0]


def test_a_record_of_go_has_sgfs_points_komi_and_the_score():
    go, plies = arbiter("go_9x9"), (Ply(0, 0, "A9"), Ply(1, 80, "J1"), Ply(0, 81, "pass"), Ply(1, 81, "pass"))
    text = engine_games.record(go, PlayedGame(plies, 2, -1.0, "W+7.5", 0), ("a", "b"))
    assert "GM[1]SZ[9]KM[7.5]PB[a]PW[b]RE[W+7.5]" in text
    assert text.split("\n")[1:5] == [";B[aa]", ";W[ii]", ";B[]", ";W[])"]
