"""Games from files as a replay buffer: worked by hand for two games of tic-tac-toe, and by its properties for any."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.sources import stored_games
from muzero_jax.games.environment import make_environment
from muzero_jax.games.game import Game
from muzero_jax.games.game_files import StoredGame
from muzero_jax.games.notation import Notation
from muzero_jax.learning import replay
from muzero_jax.types import Transition
from tests.reference import tic_tac_toe

FIRST_WINS, SECOND_WINS, DRAW = (0, 3, 1, 4, 2), (0, 3, 1, 4, 8, 5), (0, 1, 2, 4, 3, 5, 7, 6, 8)


@functools.cache
def environment():
    return make_environment("tic_tac_toe")


def game(*moves, name="games.txt, game 1", **fields):
    return StoredGame(name, tuple(map(str, moves)), **fields)


def play(*games, keeps_state=False):
    frames = stored_games.play(environment(), list(games), keeps_state=keeps_state)
    unpacked = replay.unpack(jax.device_put(frames), environment().observation_shape)
    return jax.tree.map(np.asarray, unpacked)


# --- frames -----------------------------------------------------------------------------------------------------------


def test_games_become_the_frames_that_one_writes_by_hand(monkeypatch):
    """In two batches. The third game did not end by the rules: it is cut off, and its discount stays."""
    monkeypatch.setattr(stored_games, "BATCH", 2)
    frames = play(game(*FIRST_WINS), game(*SECOND_WINS), game(4, 0, 8))
    np.testing.assert_array_equal(frames.action, [*FIRST_WINS, *SECOND_WINS, 4, 0, 8])
    np.testing.assert_array_equal(frames.reward, [0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 1] + [0, 0, 0])
    np.testing.assert_array_equal(frames.discount, [-1, -1, -1, -1, 0] + [-1, -1, -1, -1, -1, 0] + [-1, -1, -1])
    np.testing.assert_array_equal(frames.is_last, [0, 0, 0, 0, 1] + [0, 0, 0, 0, 0, 1] + [0, 0, 1])
    np.testing.assert_array_equal(frames.search_value, [1, -1, 1, -1, 1] + [-1, 1, -1, 1, -1, 1] + [0, 0, 0])
    np.testing.assert_array_equal(frames.search_policy, np.eye(9)[frames.action])
    assert not frames.explored.any() and frames.in_full is None and frames.state is None


def test_a_frame_holds_what_its_mover_saw_and_the_rules_state_if_it_is_kept():
    frames, boards, state = play(game(*DRAW), keeps_state=True), [], environment().init(jax.random.key(0))
    board = tic_tac_toe.EMPTY
    for ply, action in enumerate(DRAW):
        boards.append(board)
        board, *_ = tic_tac_toe.play(board, action)
        jax.tree.map(lambda x, y, t=ply: np.testing.assert_array_equal(x[t], y), frames.state, state)
        state = environment().move(state, jnp.int32(action)).state
    assert [tic_tac_toe.board_of(observation) for observation in frames.observation] == boards
    np.testing.assert_array_equal(frames.legal_action_mask, np.array(boards) == 0)


def test_a_value_is_the_discounted_return():
    reward, discount = np.array([[0.0], [0.0], [1.0], [7.0]]), np.array([[-0.5], [-0.5], [0.0], [-0.5]])
    values = stored_games.returns(reward, discount, np.array([[True], [True], [True], [False]]))
    np.testing.assert_array_equal(values, [[0.25], [-0.5], [1.0], [0.0]])


def test_moves_are_read_in_the_games_notation_in_sgf_and_as_numbers():
    np.testing.assert_array_equal(play(game("a1", "A2", "1", "b2", "c1")).action, FIRST_WINS)
    # Digits are read in the game's notation if it writes digits; SGF may have a notation of its own.
    notation = Notation(lambda state, action: str(action + 1), lambda state, text: int(text) - 1, list("123"), [])
    notation = notation._replace(read_sgf=lambda text: "abcdefghi".index(text))
    counted = environment()._replace(game=Game("counted", "Cells from 1 to 9", notation=lambda *board: notation))
    games = [game("1", "4", "2", "5", "3"), game(*"adbec", colours=(0, 1, 0, 1, 0), size=3)]
    frames = stored_games.play(counted, games, keeps_state=False)
    np.testing.assert_array_equal(frames.action, FIRST_WINS * 2)


def drawn_move(state, action, key):
    return environment().move(state, jnp.where(jax.random.bernoulli(key), action, 8 - action))


def drawn_init(key):
    return environment().init(key).replace(rewards=jax.random.uniform(key, 2))


@pytest.mark.parametrize("chance", [{"move": drawn_move}, {"init": drawn_init}])
def test_a_game_with_chance_is_refused_because_its_dice_would_roll_again(chance):
    with pytest.raises(ValueError, match="tic_tac_toe has chance"):
        stored_games.play(environment()._replace(**chance), [game(*FIRST_WINS)], keeps_state=False)


@pytest.mark.parametrize(
    "wrong, problem",
    [
        (game(0, 0), r"games.txt, game 1, move 2 \(0\): the rules do not allow it"),
        (game(*FIRST_WINS, 8), r"move 6 \(8\): the game is over"),
        (game("a1", "a2", colours=(1, 0)), r"move 1 \(a1\): it is the turn of the first player"),
        (game("a1", size=4), "its board has size 4, not 3"),
    ],
)
def test_an_illegal_move_is_an_error_that_names_file_game_and_move(wrong, problem):
    with pytest.raises(ValueError, match=problem):
        play(game(*DRAW, name="games.txt, game 2"), wrong)


# --- the buffer -------------------------------------------------------------------------------------------------------


def test_games_fill_the_buffer_one_after_another_and_repeat_to_its_end():
    frames = stored_games.play(environment(), [game(*FIRST_WINS), game(*SECOND_WINS)], keeps_state=False)
    buffer = stored_games.lay_out(frames, [5, 6], num_columns=1, replay_length=14)
    np.testing.assert_array_equal(buffer.transitions.action[:, 0], [*FIRST_WINS, *SECOND_WINS, *FIRST_WINS[:3]])
    assert (buffer.insert_index, buffer.num_stored, buffer.priority) == (0, 14, None)
    like = replay.init(jax.tree.map(lambda x: jnp.asarray(x[0]), play(game(*DRAW))), num_envs=1, replay_length=14)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), buffer) == jax.tree.map(lambda x: (x.shape, x.dtype), like)


def numbered(lengths):
    """Frames whose action is their own number, and whose reward is their game's."""
    total = sum(lengths)
    is_last = np.isin(np.arange(total), np.cumsum(lengths) - 1)
    empty = Transition(*[np.zeros(total, np.float32)] * 9)
    return empty._replace(action=np.arange(total), reward=np.repeat(np.arange(len(lengths)), lengths), is_last=is_last)


@pytest.mark.parametrize("lengths, columns", [([3, 5, 4, 2, 6], 2), ([4], 3)])
def test_every_move_starts_a_window_and_no_window_runs_from_one_game_into_another(lengths, columns):
    window = 4
    shared = stored_games.assign_columns(lengths, columns)
    length = max(sum(lengths[game] for game in column) for column in shared) + window - 1
    buffer = stored_games.lay_out(numbered(lengths), lengths, num_columns=columns, replay_length=length)
    buffer = buffer._replace(transitions=buffer.transitions._replace(discount=np.ones((length, columns))))
    start_weights = functools.partial(replay.start_weights, window_length=window, unroll_steps=1, end_weight=1)
    slot, column = np.nonzero(jax.jit(start_weights)(buffer))
    frames = buffer.transitions
    assert set(frames.action[slot, column]) == set(range(sum(lengths))) and (slot + window - 1 < length).all()
    for first, b in zip(slot, column, strict=True):
        action, game, is_last = (x[first : first + window, b] for x in (frames.action, frames.reward, frames.is_last))
        alive = 1 + (int(is_last.argmax()) if is_last.any() else window - 1)
        np.testing.assert_array_equal(action[:alive], action[0] + np.arange(alive))
        assert len(set(game[:alive])) == 1
