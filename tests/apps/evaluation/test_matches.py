"""Matches are fair, legal and counted right, also when devices share them; intervals are the textbook's."""

import functools
from dataclasses import replace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import arena, matches
from muzero_jax.apps.evaluation.matches import MatchResult
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts_player
from muzero_jax.games.environment import make_environment
from muzero_jax.ops.mesh import make_mesh
from tests.reference import tiny_run
from tests.reference.nim import best_actions, make_nim, make_state

TIC_TAC_TOE = make_environment("tic_tac_toe")
NIM = make_nim(9)
FIXED = Player("takes params + 1 stones", lambda params, key, states: jnp.full(states.stones.shape, params, jnp.int32))
LAST = Player("last legal", lambda params, key, states: 8 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1))
RANDOM = random_player(TIC_TAC_TOE)


def jit_match(environment, player_a, player_b, num_games, opening_plies):
    """(params of A, params of B, key) -> MatchResult, in one piece."""
    match = matches.match_in_pieces(environment, player_a, player_b, num_games=num_games, opening_plies=opening_plies)
    return jax.jit(
        lambda params_a, params_b, key: match.advance(params_a, params_b, key, match.begin(key), 1000).result
    )


@pytest.fixture(scope="module")
def random_against_random():
    """1,024 games of tic-tac-toe."""
    return jit_match(TIC_TAC_TOE, RANDOM, RANDOM, 1024, 2)(None, None, jax.random.key(1))


@pytest.fixture(scope="module")
def fixed_nim_match():
    """Nim from 9 stones without an opening: a player always takes params + 1 stones."""
    return jit_match(NIM, FIXED, FIXED, 4, 0)


# --- matches ----------------------------------------------------------------------------------------------------


def test_a_random_player_scores_half_against_itself_and_more_when_it_starts(random_against_random):
    summary = matches.summarise(random_against_random, stochastic=True)
    low, high = summary["ci95"]
    assert low < 0.5 < high
    assert summary["score_as_first"] > 0.55 > 0.45 > summary["score_as_second"]
    assert summary["games"] == 1024 == summary["wins"] + summary["draws"] + summary["losses"]
    assert 900 < summary["distinct_games"] < 1024  # some came twice, and are samples nonetheless


def test_a_match_played_move_by_move_is_the_match_played_at_once(random_against_random):
    """1,024 games between players who draw lots, two moves at a time."""
    key = jax.random.key(1)
    begin, advance, _ = matches.match_in_pieces(TIC_TAC_TOE, RANDOM, RANDOM, num_games=1024, opening_plies=2)
    advance = jax.jit(functools.partial(advance, None, None, key, num_moves=2))
    games, num_calls = jax.jit(begin)(key), 0
    while not games.states.terminated.all():
        games, num_calls = advance(games), num_calls + 1
    assert num_calls == 4  # seven moves after the opening
    jax.tree.map(np.testing.assert_array_equal, games.result, random_against_random)


@pytest.mark.parametrize(
    "taken, points, length, illegal",
    [
        ((0, 0), (1, -1), (9, 9), (0, 0)),  # one each: the first seat takes the last
        ((1, 0), (-1, 1), (6, 6), (0, 0)),  # 2+1+2+1+2 leaves 1 for B, and 1+2+1+2+1+2 = 9 is A's, as second
        ((0, 2), (1, -1), (5, 5), (0, 1)),  # B first: 3+1+3+1 leaves 1, of which 3 cannot be taken: played as 1
        ((7, 0), (1, -1), (9, 9), (5, 4)),  # A's action is out of range, and played as 1
    ],
)
def test_points_lengths_and_illegal_actions_of_nim_by_hand(fixed_nim_match, taken, points, length, illegal):
    """Figures of A as first and as second; an illegal action is counted and replaced, not punished."""
    result = fixed_nim_match(*taken, jax.random.key(0))
    for field, (first, second) in zip(result[:3], (points, length, illegal), strict=True):
        np.testing.assert_array_equal(field, [[first] * 2, [second] * 2])


# --- openings and games that repeat -----------------------------------------------------------------------------


@pytest.mark.parametrize("num_openings", [36, 80])
def test_openings_without_replacement_repeat_only_when_all_are_used(num_openings):
    """Tic-tac-toe has 9 * 8 openings of two moves; devices share them, and first moves are equally frequent."""
    draw = jax.jit(
        lambda key, share: matches.draw_openings(TIC_TAC_TOE, key, num_openings, 2, replace=False, share=share)
    )
    drawn = draw(jax.random.key(0), 0)
    lines = drawn.actions.T.tolist()
    assert len(set(map(tuple, lines))) == len(np.unique(drawn.moves, axis=0)) == min(num_openings, 72)
    counts = np.bincount([first for first, _ in lines], minlength=9)
    assert counts.max() - counts.min() <= 1 and lines != draw(jax.random.key(1), 0).actions.T.tolist()
    lines += draw(jax.random.key(0), 1).actions.T.tolist()  # of the other device
    assert len(set(map(tuple, lines))) == 72


def test_openings_are_told_apart_by_their_deals_on_all_devices():
    """Heaps of 3 to 8 stones, and no moves: equal hashes mean equal heaps, also if a device has one opening alone."""
    dealt = make_nim(9)._replace(init=lambda key: make_state(jax.random.randint(key, (), 3, 9), jnp.int32(0)))
    draw = jax.jit(lambda share: matches.draw_openings(dealt, jax.random.key(0), 1, 0, replace=False, share=share))
    heaps: dict[bytes, set[int]] = {}
    for share in range(8):
        drawn = draw(share)
        heaps.setdefault(np.asarray(drawn.moves).tobytes(), set()).add(int(drawn.starts.stones[0]))
    assert len(heaps) > 1 and all(len(of) == 1 for of in heaps.values())


def test_deterministic_players_count_each_game_once():
    """Nim from 3 stones after one random ply, where all take one, by hand.

    A ply of 3 would end the game, so it is taken back: 2, 1 or 3 stones are left. The games are 1 + 1 + 1, 2 + 1 and,
    again, 1 + 1 + 1, each from either seat: whoever has the first seat wins one, and loses the other.
    """
    result = jit_match(make_nim(3), FIXED, FIXED, 64, 1)(0, 0, jax.random.key(0))
    summary, every = matches.summarise(result), matches.summarise(result, stochastic=True)
    assert summary["games"] == summary["distinct_games"] == 4 and (summary["wins"], summary["losses"]) == (2, 2)
    assert (summary["score_as_first"], summary["score_as_second"]) == (0.5, 0.5)
    assert (every["games"], every["distinct_games"]) == (64, 4)
    assert [s["ci95"] for s in (summary, every)] == [list(matches.wilson_interval(0.5, n)) for n in (4, 64)]


def test_a_match_is_stochastic_if_a_player_or_the_game_draws_from_the_key():
    mcts = rollout_mcts_player(TIC_TAC_TOE, most_simulations=2)
    found = [matches.is_stochastic(TIC_TAC_TOE, LAST, other) for other in (LAST, RANDOM, mcts)]
    assert found == [False, True, True]
    assert matches.is_stochastic(make_environment("backgammon"), LAST, LAST)


# --- summaries --------------------------------------------------------------------------------------------------

MOVES = np.array([[[0, 1], [0, 2]], [[0, 1], [0, 2]]], np.uint32)  # of four games that differ
NONE = np.zeros((2, 2), int)


def test_summary_of_a_hand_worked_match():
    result = MatchResult(np.array([[1, 0], [-1, 1]]), np.array([[3, 5], [7, 9]]), NONE + 1, MOVES)
    assert matches.summarise(result) == {
        "wins": 2,
        "draws": 1,
        "losses": 1,
        "games": 4,
        "distinct_games": 4,
        "score": 0.625,
        "ci95": list(matches.wilson_interval(0.625, 4)),
        "score_as_first": 0.75,
        "score_as_second": 0.5,
        "mean_length": 6.0,
        "mean_length_lost": 7.0,
        "illegal_actions": 4,
    }
    assert "mean_length_lost" not in matches.summarise(MatchResult(np.ones((2, 2)), NONE, NONE, MOVES))


def test_a_game_for_points_is_measured_by_mean_points():
    """3 - 1 - 1 - 1 = 0 points, although three of four games are lost; a deviation of 2 is a standard error of 1."""
    lost_more_often = MatchResult(np.array([[3.0, -1.0], [-1.0, -1.0]]), NONE, NONE, MOVES)
    counted = matches.summarise(lost_more_often)
    assert (counted["wins"], counted["points_won"], counted["points_lost"]) == (1, 3, 3)
    assert counted["score"] == 0.25 and counted["mean_points"] == 0.0
    np.testing.assert_allclose(counted["mean_points_ci95"], [-3.1824, 3.1824], atol=1e-4)  # Student's t of 3 degrees
    assert matches.points_of(counted) == (0.0, *counted["mean_points_ci95"])
    assert (counted["points_as_first"], counted["points_as_second"]) == (1.0, -1.0)
    alike = matches.summarise(MatchResult(np.full((2, 2), 2.0), NONE, NONE, MOVES))
    assert alike["mean_points"] == 2 and alike["mean_points_ci95"][0] == 4 * matches.wilson_interval(1.0, 4)[0] - 2
    won_by_one = MatchResult(np.array([[1.0, 1.0], [1.0, -1.0]]), NONE, NONE, MOVES)
    assert matches.summarise(won_by_one, is_for_points=True)["mean_points"] == 0.5  # by the rules, if not by the games
    assert "mean_points" not in matches.summarise(won_by_one)
    assert matches.points_of(matches.summarise(won_by_one))[0] == 0.5


@pytest.mark.parametrize(
    ("score", "num_games", "low", "high"),
    [
        (0.5, 100, 0.4038, 0.5962),  # 50 of 100, as in any table
        (1.0, 10, 0.7225, 1.0),  # 1 / (1 + z^2 / 10) = 10 / 13.8415
        (0.9, 20, 0.6990, 0.9721),
    ],
)
def test_wilson_interval_of_known_cases(score, num_games, low, high):
    np.testing.assert_allclose(matches.wilson_interval(score, num_games), (low, high), atol=1e-4)


# --- matches that devices share ---------------------------------------------------------------------------------------

BEST = jnp.array([0] + [(best_actions(stones) or [0])[0] for stones in range(1, 10)], jnp.int32)
PERFECT = Player("perfect", lambda params, key, states: params[states.stones])


def test_a_match_on_two_devices_plays_every_opening_from_both_sides():
    """Nim: 6 games are asked for. From 9 stones perfect play wins whenever it starts, and mostly if not."""
    match = arena.ShardedMatch(NIM, PERFECT, random_player(NIM), tiny_run.mesh(), num_games=6, opening_plies=0)
    match.compile(jax.ShapeDtypeStruct(BEST.shape, BEST.dtype), None)
    reports = []
    summary = match(BEST, None, jax.random.key(0), lambda *counts: reports.append(counts))
    assert summary["games"] == 8 == summary["wins"] + summary["losses"] and summary["wins"] > summary["losses"]
    assert summary["score_as_first"] == 1 and summary["illegal_actions"] == 0
    assert reports[0] == (0, 8) and match(BEST, None, jax.random.key(0)) == summary


def test_devices_play_different_games():
    """Else repeated games would count as samples."""
    player = random_player(NIM)
    match = arena.ShardedMatch(NIM, player, player, make_mesh(2), num_games=64, opening_plies=0)
    moves = match.play(None, None, jax.random.key(0)).moves
    assert (moves[:, :16] != moves[:, 16:]).any()


def test_deterministic_players_play_every_opening_once_from_both_sides():
    """Hex 3x3 has 9 openings of one stone, which two devices share."""
    hex_3x3 = make_environment("hex", board_size=3)
    first = Player("first", lambda params, key, states: jnp.argmax(states.legal_action_mask, axis=-1))
    last = Player("last", lambda params, key, states: 9 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1))
    match = arena.ShardedMatch(hex_3x3, first, last, tiny_run.mesh(), num_games=64, opening_plies=1)
    summary = match(None, None, jax.random.key(0))
    assert summary["games"] == summary["distinct_games"] == 18


def test_an_arena_seats_a_rival_with_its_own_weights_and_pools_several_matches(monkeypatch):
    zeros, points = np.zeros((2, 2, 2), np.uint32), (1, 1, 1, 0, -1)
    results = [MatchResult(np.full((2, 2), each), zeros[..., 0] + 4, zeros[..., 0], zeros) for each in points]
    match = Mock(
        spec=arena.ShardedMatch,
        summarise=functools.partial(matches.summarise, stochastic=True),
        **{"play.side_effect": results},
    )
    made = Mock(return_value=match)
    monkeypatch.setattr(arena, "ShardedMatch", made)
    evaluation = replace(tiny_run.CONFIG.evaluation, mcts_simulations=(2,))
    agent = tiny_run.agent()._replace(config=replace(tiny_run.CONFIG, evaluation=evaluation))
    ours, key = arena.Arena(agent, tiny_run.mesh()), jax.random.key(0)
    ours.play("random", "new", key, num_games=4)
    ours.play("self", "new", key, num_games=4, rival="old")
    together = ours.play("mcts:2", "newer", key, num_games=4, num_matches=3)
    wrapped = [call.args[:2] for call in match.play.call_args_list]
    assert wrapped == [("new", 0), ("new", "old"), *[("newer", 2)] * 3]
    assert [together[name] for name in ("games", "wins", "draws", "losses")] == [12, 4, 4, 4]
    compiled = [(call.args[2].name, call.kwargs["num_games"]) for call in made.call_args_list]
    by_rules = "rollout MCTS (2 simulations)"
    assert compiled == [(by_rules, 4), ("agent (2 simulations)", 4)], "each is compiled once"
