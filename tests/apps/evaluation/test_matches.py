"""Matches are fair, legal and counted right; intervals are the textbook's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import matches, opponents
from muzero_jax.apps.evaluation.matches import MatchResult
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts_player
from muzero_jax.games.environment import make_environment
from tests.reference.nim import make_nim, make_state

TIC_TAC_TOE = make_environment("tic_tac_toe")
NIM = make_nim(9)
LAST_LEGAL = Player(
    "last legal", lambda params, key, states: 8 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1)
)
FIXED = Player("takes params + 1 stones", lambda params, key, states: jnp.full(states.stones.shape, params, jnp.int32))

DIFFERENT = np.array([[[0, 1], [0, 2]], [[0, 1], [0, 2]]], np.uint32)  # the moves of four games that differ


def jit_match(environment, player_a, player_b, num_games, opening_plies):
    """(params of A, params of B, key) -> MatchResult, in one piece."""
    match = matches.match_in_pieces(environment, player_a, player_b, num_games=num_games, opening_plies=opening_plies)
    return jax.jit(
        lambda params_a, params_b, key: match.advance(params_a, params_b, key, match.begin(key), 1000).result
    )


@pytest.fixture(scope="module")
def mcts_against_random():
    """32 games of tic-tac-toe from the empty board, the MCTS with 500 simulations."""
    mcts = rollout_mcts_player(TIC_TAC_TOE, num_simulations=500)
    return jit_match(TIC_TAC_TOE, mcts, opponents.random_player(TIC_TAC_TOE), 32, 0)(None, None, jax.random.key(0))


@pytest.fixture(scope="module")
def random_against_random():
    """1,024 games of tic-tac-toe."""
    player = opponents.random_player(TIC_TAC_TOE)
    return jit_match(TIC_TAC_TOE, player, player, 1024, 2)(None, None, jax.random.key(1))


@pytest.fixture(scope="module")
def fixed_nim_match():
    """Nim from 9 stones without an opening: everyone always takes params + 1 stones."""
    return jit_match(NIM, FIXED, FIXED, 4, 0)


# --- matches ----------------------------------------------------------------------------------------------------


def test_mcts_never_loses_tic_tac_toe_against_random(mcts_against_random):
    summary = matches.summarise(mcts_against_random, stochastic=True)
    assert summary["losses"] == 0
    assert summary["wins"] > 24
    assert summary["illegal_actions"] == 0


def test_a_larger_budget_is_stronger():
    def mcts(num_simulations):
        return rollout_mcts_player(NIM, num_simulations=num_simulations)

    result = jit_match(NIM, mcts(100), mcts(4), 256, 1)(None, None, jax.random.key(0))
    assert matches.summarise(result, stochastic=True)["ci95"][0] > 0.6


def test_a_random_player_scores_half_against_itself_and_more_when_it_starts(random_against_random):
    summary = matches.summarise(random_against_random, stochastic=True)
    low, high = summary["ci95"]
    assert low < 0.5 < high
    assert summary["score_as_first"] > 0.55 > 0.45 > summary["score_as_second"]
    assert summary["games"] == 1024 == summary["wins"] + summary["draws"] + summary["losses"]
    assert 900 < summary["distinct_games"] < 1024  # some came twice, and are samples nonetheless


def test_a_deterministic_player_against_itself_gets_exactly_half_of_every_pair():
    result = jit_match(TIC_TAC_TOE, LAST_LEGAL, LAST_LEGAL, 128, 3)(None, None, jax.random.key(0))
    np.testing.assert_array_equal(result.points[0], -result.points[1])
    np.testing.assert_array_equal(result.length[0], result.length[1])
    assert matches.summarise(result)["score"] == 0.5
    assert len(np.unique(result.points[0])) > 1  # the openings differ


def test_the_winner_of_nim_is_who_takes_the_last_stone_from_either_seat(fixed_nim_match):
    # 9 stones, one each: the first seat takes the last. A takes 2 and B 1: 2+1+2+1+2 leaves 1 for B, who wins as
    # second; and 1+2+1+2+1+2 = 9: A takes the last as second.
    one_each = fixed_nim_match(0, 0, jax.random.key(0))
    np.testing.assert_array_equal(one_each.points, [[1, 1], [-1, -1]])
    np.testing.assert_array_equal(one_each.length, 9)
    two_and_one = fixed_nim_match(1, 0, jax.random.key(0))
    np.testing.assert_array_equal(two_and_one.points, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(two_and_one.length, 6)


def test_an_illegal_action_is_counted_and_replaced_not_punished(fixed_nim_match):
    # B always says 3 stones. A first, one each time: 9-1-3-1-3 leaves 1, which A takes. B first: 9-3-1-3-1 leaves 1,
    # of which 3 cannot be taken: counted, and played as 1, so B still takes the last stone.
    result = fixed_nim_match(0, 2, jax.random.key(0))
    np.testing.assert_array_equal(result.points, [[1, 1], [-1, -1]])
    np.testing.assert_array_equal(result.illegal_actions, [[0, 0], [1, 1]])
    assert matches.summarise(result, stochastic=True)["illegal_actions"] == 2


def test_an_action_out_of_range_is_illegal(fixed_nim_match):
    result = fixed_nim_match(7, 0, jax.random.key(0))
    assert (result.illegal_actions > 0).all()
    assert (fixed_nim_match(0, 0, jax.random.key(0)).illegal_actions == 0).all()


def test_the_same_player_may_move_twice():
    nim = make_nim(3, passes_turn=False)
    result = jit_match(nim, FIXED, FIXED, 2, 0)(0, 0, jax.random.key(0))
    np.testing.assert_array_equal(result.points, [[1], [-1]])  # the first seat makes every move


def test_an_opening_never_ends_a_game_and_both_seats_play_the_same_one():
    nim = make_nim(5)  # three plies of up to 3 stones would often end it
    openings = matches.draw_openings(nim, jax.random.key(0), 64, 3, replace=True).states
    assert not openings.terminated.any()
    assert (openings.stones >= 1).all()
    assert set(np.unique(openings.stones)) >= {1, 2}
    assert set(np.unique(openings.current_player)) == {0, 1}  # a ply taken back leaves the other player on move


def test_a_player_is_asked_only_where_it_is_on_move_in_some_game():
    calls = []

    def act(params, key, states):
        jax.debug.callback(lambda: calls.append(None))
        return jnp.zeros(states.stones.shape, jnp.int32)

    nim = make_nim(3, passes_turn=False)  # the first seat makes every move
    jit_match(nim, FIXED, Player("counts its calls", act), 2, 0)(0, None, jax.random.key(0))
    jax.effects_barrier()
    assert len(calls) == 3  # all in the seating where it is first


def test_matches_that_cannot_be_fair_or_played_are_refused():
    player = opponents.random_player(NIM)
    for num_games in (0, 3):
        with pytest.raises(ValueError, match="must be even"):
            matches.match_in_pieces(NIM, player, player, num_games=num_games, opening_plies=0)
    with pytest.raises(ValueError, match="0 or more plies"):
        matches.match_in_pieces(NIM, player, player, num_games=2, opening_plies=-1)
    with pytest.raises(ValueError, match="a single-player game, and a match needs two"):
        matches.match_in_pieces(NIM._replace(num_players=1), player, player, num_games=2, opening_plies=0)


# --- games that repeat ------------------------------------------------------------------------------------------


def test_deterministic_players_count_each_game_once():
    """Nim from 3 stones after one random ply, where all take one, by hand.

    A ply of 3 would end the game, so it is taken back: 2, 1 or 3 stones are left. The games are 1 + 1 + 1, 2 + 1 and,
    again, 1 + 1 + 1, each from either seat: whoever has the first seat wins one, and loses the other.
    """
    result = jit_match(make_nim(3), FIXED, FIXED, 64, 1)(0, 0, jax.random.key(0))
    summary = matches.summarise(result)
    assert summary["games"] == summary["distinct_games"] == 4 and (summary["wins"], summary["losses"]) == (2, 2)
    assert (summary["score_as_first"], summary["score_as_second"]) == (0.5, 0.5)
    assert summary["ci95"] == list(matches.wilson_interval(0.5, 4))
    every = matches.summarise(result, stochastic=True)
    assert (every["games"], every["distinct_games"]) == (64, 4)
    assert every["ci95"] == list(matches.wilson_interval(every["score"], 64))


def test_what_repeats_is_left_out_of_every_figure_unless_the_match_is_stochastic():
    moves = np.array([[[0, 1], [0, 2], [0, 1]], [[0, 1], [0, 1], [0, 1]]], np.uint32)
    points, lengths = np.array([[1, -1, 1], [0, 0, 0]]), np.array([[5, 7, 5], [6, 6, 6]])
    result = MatchResult(points, lengths, 0 * lengths, moves)  # type: ignore
    once = matches.summarise(result)
    assert [once[name] for name in ("wins", "draws", "losses", "games", "distinct_games")] == [1, 1, 1, 3, 3]
    assert (once["score"], once["mean_length"], once["ci95"]) == (0.5, 6.0, list(matches.wilson_interval(0.5, 3)))
    every = matches.summarise(result, stochastic=True)
    assert [every[name] for name in ("wins", "draws", "losses", "games", "distinct_games")] == [2, 3, 1, 6, 3]


@pytest.mark.parametrize("num_openings", [36, 72, 80])
def test_openings_without_replacement_differ_while_there_are_others(num_openings):
    """Tic-tac-toe has 9 * 8 openings of two moves; the first moves are as many as they can be."""
    draw = jax.jit(lambda key: matches.draw_openings(TIC_TAC_TOE, key, num_openings, 2, replace=False))
    (one, other), hashes = (
        (draw(jax.random.key(seed)).actions.T.tolist() for seed in (0, 1)),
        draw(jax.random.key(0)).moves,
    )
    assert len(set(map(tuple, one))) == len(np.unique(hashes, axis=0)) == min(num_openings, 72)
    counts = np.bincount([first for first, _ in one], minlength=9)
    assert counts.max() - counts.min() <= 1 and one != other


def test_devices_share_the_openings_of_one_draw():
    draw = jax.jit(
        lambda share: matches.draw_openings(TIC_TAC_TOE, jax.random.key(0), 36, 2, replace=False, share=share)
    )
    drawn = [tuple(actions) for share in (0, 1) for actions in draw(share).actions.T.tolist()]
    assert len(set(drawn)) == 72


def test_openings_with_replacement_come_twice():
    drawn = matches.draw_openings(TIC_TAC_TOE, jax.random.key(0), 72, 2, replace=True).actions.T.tolist()
    assert 30 < len(set(map(tuple, drawn))) < 60  # 72 (1 - 1 / e) is 45.5


def test_the_same_moves_from_different_starts_are_different_games():
    nim = make_nim(9)

    def init(key):
        return make_state(jax.random.randint(key, (), 8, 10), jnp.int32(0))

    match = jit_match(nim._replace(init=init), FIXED, FIXED, 32, 0)
    assert matches.summarise(match(0, 0, jax.random.key(0)))["distinct_games"] == 32


def test_a_match_is_stochastic_if_a_player_or_the_game_draws_from_the_key():
    random = opponents.random_player(TIC_TAC_TOE)
    mcts = rollout_mcts_player(TIC_TAC_TOE, num_simulations=2)
    assert not matches.is_stochastic(TIC_TAC_TOE, LAST_LEGAL, LAST_LEGAL)
    assert matches.is_stochastic(TIC_TAC_TOE, LAST_LEGAL, random) and matches.is_stochastic(
        TIC_TAC_TOE, mcts, LAST_LEGAL
    )
    assert matches.is_stochastic(make_environment("backgammon"), LAST_LEGAL, LAST_LEGAL)


# --- summaries --------------------------------------------------------------------------------------------------


def test_summary_of_a_hand_worked_match():
    nothing = np.zeros((2, 2), int)
    result = MatchResult(np.array([[1, 0], [-1, 1]]), np.array([[3, 5], [7, 9]]), nothing + 1, DIFFERENT)
    summary = matches.summarise(result)
    expected = {
        "wins": 2,
        "draws": 1,
        "losses": 1,
        "games": 4,
        "distinct_games": 4,
        "score": 0.625,
        "mean_length": 6.0,
        "mean_length_lost": 7.0,
    }
    assert "mean_length_lost" not in matches.summarise(MatchResult(np.ones((2, 2)), nothing, nothing, DIFFERENT))
    assert expected.items() <= summary.items()
    assert (summary["score_as_first"], summary["score_as_second"]) == (0.75, 0.5)
    assert summary["illegal_actions"] == 4
    assert all(type(value) in (int, float, list) for value in summary.values())


@pytest.mark.parametrize(
    ("score", "num_games", "low", "high"),
    [
        (0.5, 100, 0.4038, 0.5962),  # 50 of 100, as in any table
        (1.0, 10, 0.7225, 1.0),  # 1 / (1 + z^2 / 10) = 10 / 13.8415
        (0.0, 10, 0.0, 0.2775),
        (0.9, 20, 0.6990, 0.9721),
    ],
)
def test_wilson_interval_of_known_cases(score, num_games, low, high):
    np.testing.assert_allclose(matches.wilson_interval(score, num_games), (low, high), atol=1e-4)


def test_a_match_played_move_by_move_is_the_match_played_at_once(random_against_random):
    """1,024 games between players who draw lots, two moves at a time."""
    player, key = opponents.random_player(TIC_TAC_TOE), jax.random.key(1)
    begin, advance, _ = matches.match_in_pieces(TIC_TAC_TOE, player, player, num_games=1024, opening_plies=2)
    advance = jax.jit(functools.partial(advance, None, None, key, num_moves=2))
    games, num_calls = jax.jit(begin)(key), 0
    while not games.states.terminated.all():
        games, num_calls = advance(games), num_calls + 1
    assert num_calls == 4  # seven moves after the opening
    jax.tree.map(np.testing.assert_array_equal, games.result, random_against_random)


def test_games_that_count_more_than_one_are_added_up_in_points():
    nothing = np.zeros((2, 2), int)
    summary = matches.summarise(MatchResult(np.array([[3.0, -1.0], [2.0, -2.0]]), nothing + 5, nothing, DIFFERENT))
    assert (summary["wins"], summary["losses"], summary["score"]) == (2, 2, 0.5)
    assert (summary["points_won"], summary["points_lost"]) == (5, 3)
    plain = MatchResult(np.array([[1.0, 0.0], [-1.0, 1.0]]), nothing, nothing, DIFFERENT)
    assert "points_won" not in matches.summarise(plain)
