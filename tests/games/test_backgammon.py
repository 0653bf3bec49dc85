"""Backgammon by hand: doubles, turns of several moves, bearing off, what a win is worth, passes and signs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.games import backgammon
from muzero_jax.games.catalogue import game_of, make_notation
from tests.reference.games import with_compiled_chance


@pytest.fixture(scope="module")
def environment():
    return with_compiled_chance("backgammon")


@functools.cache
def opening():
    return jax.jit(with_compiled_chance("backgammon").init)(jax.random.key(0))


@jax.jit
def playable(board, dice):
    """The state with these dice to play: pgx's legal moves, our observation."""
    left = backgammon.pgx_rules._set_playable_dice(dice)
    legal = backgammon.pgx_rules._legal_action_mask(board, left)
    state = opening().replace(_board=board, _dice=dice, _playable_dice=left, legal_action_mask=legal)
    return state.replace(observation=backgammon.observe(state))


def position(dice, checkers=None):
    """The mover with two dice (1 to 6) to play; `checkers` by index of pgx's board, else the opening's."""
    board = np.array(opening()._board)
    if checkers is not None:
        board = np.zeros(28, np.int32)
        board[list(checkers)] = list(checkers.values())
    return playable(board, np.array(dice, np.int32) - 1)


def dice_seen(state):
    """How often each die may still be played, by the observation."""
    return state.observation[-24:].reshape(6, 4).sum(1).tolist()


def play(environment, state, *moves):
    """The last afterstate of several moves of one turn, each by its name."""
    notation = make_notation(environment)
    for move in moves:
        action = notation.read(state, move)
        assert state.legal_action_mask[action], move
        after = environment.chance.move(state, jnp.int32(action))
        state = after.state
    return after


OFF, THEIR_OFF, BAR, THEIR_BAR = 26, 27, 24, 25


def test_two_dice_are_two_moves_of_the_same_player_and_then_the_other_rolls(environment):
    state = position((3, 1))
    first = play(environment, state, "8/5")
    assert (first.awaits_chance, first.discount, first.reward, first.is_last) == (False, 1, 0, False)
    assert first.state.current_player == state.current_player
    second = play(environment, first.state, "6/5")
    assert (second.awaits_chance, second.discount) == (True, 1)
    assert second.state.current_player == state.current_player, "an afterstate is in the mover's frame"
    then = environment.chance.resolve(second.state, jnp.int32(backgammon.ROLLS.index((1, 3))))
    assert (then.discount, then.reward, then.is_last) == (-1, 0, False)
    assert then.state.current_player == 1 - state.current_player
    assert then.state._dice.tolist() == [1, 3] and dice_seen(then.state) == [0, 1, 0, 1, 0, 0]


def test_the_observation_holds_the_movers_checkers_the_opponents_both_homes_and_the_dice():
    state = position((4, 4), {0: 8, 3: -1, BAR: 2, THEIR_BAR: -1, OFF: 5, THEIR_OFF: -13})
    points, homes, dice = np.split(np.asarray(state.observation).astype(int), [48 * 6, 48 * 6 + 4 * 15])
    mine, theirs = np.split(points.reshape(48, 6).sum(1), 2)
    assert (mine[0], theirs[3]) == (6, 1) and (mine.sum(), theirs.sum()) == (6, 1), "a stack of 8 looks like one of 6"
    assert homes.reshape(4, 15).sum(1).tolist() == [2, 5, 1, 13]
    assert dice.reshape(6, 4).tolist() == [[0] * 4] * 3 + [[1] * 4] + [[0] * 4] * 2, "doubles are four dice"
    assert points.reshape(48, 6)[27].tolist() == [1, 0, 0, 0, 0, 0], "at least one, and no more"


def test_doubles_are_four_moves(environment):
    state, waits, signs = position((3, 3)), [], []
    for move in ("13/10", "13/10", "8/5", "8/5"):
        after = play(environment, state, move)
        state = after.state
        waits.append(bool(after.awaits_chance))
        signs.append(float(after.discount))
    assert waits == [False, False, False, True] and signs == [1, 1, 1, 1]


def test_the_opening_dice_differ_and_later_rolls_have_the_odds_of_two_dice(environment):
    starts = jax.jit(jax.vmap(environment.init))(jax.random.split(jax.random.key(0), 64))
    assert (starts._turn == 0).all() and (starts._dice[:, 0] != starts._dice[:, 1]).all()
    assert set(np.asarray(starts.current_player).tolist()) == {0, 1}

    probabilities = np.asarray(jax.jit(environment.chance.probabilities)(opening()))
    assert len(backgammon.ROLLS) == 21 and probabilities.sum() == pytest.approx(1)
    for (low, high), probability in zip(backgammon.ROLLS, probabilities, strict=True):
        assert probability == pytest.approx((1 if low == high else 2) / 36)


def test_the_last_checker_borne_off_wins_two_points_if_the_opponent_has_none_off(environment):
    state = position((6, 2), {23: 1, OFF: 14, 0: -15})
    after = play(environment, state, "1/off(2)")
    assert (after.reward, after.discount, after.is_last, after.awaits_chance) == (2, 0, True, False)
    winner = int(state.current_player)
    assert after.state.rewards[winner] == 2 and after.state.rewards[1 - winner] == -2


def test_a_player_without_a_move_has_six_pass_actions_that_count_as_one(environment):
    shut_out = position((2, 2), {BAR: 1, 0: 14, 1: -2, 5: -13})
    assert np.flatnonzero(shut_out.legal_action_mask).tolist() == list(range(6))
    after = play(environment, shut_out, "pass")
    assert (after.awaits_chance, after.discount, after.reward) == (True, 1, 0)
    same = game_of(environment).same_as
    boards = [environment.chance.move(shut_out, jnp.int32(action)).state._board.tolist() for action in range(6)]
    assert {same.get(action, action) for action in range(6)} == {0}, "all passes are one move to people"
    assert all(board == shut_out._board.tolist() for board in boards)


def test_the_pip_count_is_the_distance_to_bear_off():
    assert int(backgammon.pips(opening()._board)) == 167
    assert int(backgammon.pips(backgammon.pgx_rules._flip_board(opening()._board))) == 167
    assert int(backgammon.pips(position((1, 2), {BAR: 1, 23: 2, OFF: 12})._board)) == 27


def test_the_drawing_shows_the_first_players_side_whoever_is_to_move(environment):
    squares = backgammon.squares(opening())
    assert squares[0][:8] == ["13", "14", "15", "16", "17", "18", "bar", "19"]
    assert squares[1] == ["X", ".", ".", ".", "O", ".", ".", "O", ".", ".", ".", ".", "X", "."]
    after = play(environment, position((3, 1)), "8/5", "6/5").state
    assert backgammon.squares(environment.chance.resolve(after, jnp.int32(0)).state) == backgammon.squares(after)


def test_checkers_are_seen_from_the_first_players_side_with_the_dice_still_to_play(environment):
    board = backgammon.checkers(opening())
    assert board.points[23] == 2 and board.points[12] == 5 and board.points[7] == 3 and board.points[5] == 5
    assert board.points[0] == -2 and board.points[11] == -5 and board.bar == (0, 0) and board.off == (0, 0)
    assert backgammon.checkers(play(environment, position((3, 1)), "8/5").state).dice == ((3, False), (1, True))
    doubles = play(environment, position((3, 3)), "13/10", "13/10", "8/5").state
    assert sorted(backgammon.checkers(doubles).dice) == [(3, False), (3, False), (3, False), (3, True)]
    after = play(environment, position((1, 2), {0: 15, 1: -1, 5: -14}), "24/23")
    other = environment.chance.resolve(after.state, jnp.int32(0)).state
    assert backgammon.checkers(other).bar == (0, 1) and backgammon.checkers(other).points[22] == 1
