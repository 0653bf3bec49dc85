"""What every game promises: rewards and signs of the mover, where actions lie, and clear errors."""

from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from muzero_jax.games.catalogue import GAMES, find, make_notation
from muzero_jax.games.environment import make_environment
from tests.reference.games import MOVES, environment_of, moves_of

BIG_GAMES = [pytest.param(name, marks=pytest.mark.slow) for name in ("chess", "shogi")]
PIECE_GAMES = ["gardner_chess", "animal_shogi", *BIG_GAMES]
PLACEMENT_GAMES = ["tic_tac_toe", "othello", "hex", "go_9x9"]


@pytest.mark.parametrize("name", MOVES)
def test_discount_is_0_at_the_end_and_otherwise_minus_1_where_turns_alternate(name):
    moves = moves_of(name)
    np.testing.assert_array_equal(moves.discount, np.where(moves.ended, 0.0, -1.0))
    assert (moves.reward[~moves.ended] == 0).all()


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "hex"])
def test_a_reward_is_the_movers_and_no_legal_move_loses_for_its_mover(name):
    moves = moves_of(name)
    assert set(moves.reward[moves.ended]) <= {0.0, 1.0}
    assert (moves.reward == 1.0).any()
    assert {0, 1} == set(moves.player[moves.ended]), (
        "both players end games, so no player's index is taken for the mover"
    )


@pytest.mark.parametrize("name", PLACEMENT_GAMES)
def test_the_cell_of_an_action_is_empty_before_it_and_holds_the_movers_stone_after(name):
    moves = moves_of(name)
    location = np.asarray(environment_of(name).board.action_location)[moves.action]
    before, after = (
        view.reshape(len(location), -1, view.shape[-1]) for view in (moves.observation, moves.next_observation)
    )
    placed = np.flatnonzero(location >= 0)
    assert not before[placed, location[placed], :2].any()
    assert after[placed, location[placed], 1].all()
    num_actions = environment_of(name).num_actions
    assert (moves.action[location < 0] == num_actions - 1).all()


def test_go_has_boards_between_nine_and_nineteen():
    """`go_9x9` itself is pgx's game of that name; a larger board has its points and a pass."""
    assert [find("go_9x9").rules(size).id for size in (None, 9)] == ["go_9x9"] * 2
    larger = make_environment("go_9x9", board_size=13)
    assert (larger.num_actions, larger.observation_shape) == (13 * 13 + 1, (13, 13, 17))
    assert make_notation(larger).write(None, 0) == "A13"
    with pytest.raises(ValueError, match="sizes 5 to 19"):
        make_environment("go_9x9", board_size=20)


def test_a_column_of_connect_four_lies_at_its_top_cell():
    moves = moves_of("connect_four")
    assert environment_of("connect_four").board.action_location.tolist() == list(range(7))
    grown = moves.next_observation[..., 1].sum(axis=1) - moves.observation[..., 0].sum(axis=1)
    np.testing.assert_array_equal(np.argmax(grown, axis=1), moves.action)


def lone_pieces(name, num_cells):
    """Per square in pgx's numbering, a state with one piece of the mover there, and the plane that shows it."""
    state = jax.jit(environment_of(name).init)(jax.random.key(0))
    empty, plane = (0, 0) if "chess" in name else (-1, 1)  # a pawn; shogi's piece 1, a bishop or a lance
    boards = jnp.where(jnp.eye(num_cells, dtype=bool), 1, empty)

    def place(board):
        if name == "chess":
            return state.replace(_x=state._x._replace(board_history=state._x.board_history.at[0].set(board)))
        if name == "shogi":
            return state.replace(_x=state._x._replace(board=board))
        return state.replace(_board_history=state._board_history.at[0].set(board))

    return jax.jit(jax.vmap(place))(boards), plane


def squares_of_labels(name, num_actions):
    """The square, in pgx's numbering, that pgx itself decodes from each action."""
    labels = jnp.arange(num_actions)
    if "chess" in name:
        module = "pgx._src.games.chess" if name == "chess" else "pgx.gardner_chess"
        return jax.jit(jax.vmap(import_module(module).Action._from_label))(labels).from_
    if name == "animal_shogi":
        action = jax.jit(jax.vmap(import_module("pgx.animal_shogi").Action._from_label))(labels)
        return jnp.where(action.is_drop, action.to, action.from_)
    shogi = import_module("pgx._src.games.shogi")
    return jax.jit(jax.vmap(lambda label: shogi.Action._from_dlshogi_action(shogi.GameState(), label)))(labels).to


@pytest.mark.parametrize("name", PIECE_GAMES)
def test_a_piece_moves_cell_is_where_the_observation_shows_its_square(name):
    environment = environment_of(name)
    height, width = environment.board.shape
    states, plane = lone_pieces(name, height * width)
    observation = jax.jit(jax.vmap(pgx.make(name).observe))(states)
    cell_of_square = np.argmax(np.asarray(observation)[..., plane].reshape(height * width, -1), axis=1)
    assert len(set(cell_of_square)) == height * width
    squares = np.asarray(squares_of_labels(name, environment.num_actions))
    np.testing.assert_array_equal(environment.board.action_location, cell_of_square[squares])


@pytest.mark.parametrize("name", [name for name in GAMES if name not in ("chess", "shogi")] + BIG_GAMES)
def test_every_games_environment_describes_its_states(name):
    environment = environment_of(name)
    state = jax.eval_shape(environment.init, jax.random.key(0))
    assert state.observation.shape == environment.observation_shape
    assert state.legal_action_mask.shape == (environment.num_actions,)
    is_for_one = name == "2048" or name.startswith("minatar-")
    moves_twice = name in ("backgammon", "leduc_holdem", "phantom_tic_tac_toe", "dark_hex")
    discount = None if moves_twice else 1.0 if is_for_one else -1.0
    assert (environment.num_players, environment.discount) == (1 if is_for_one else 2, discount)
    assert (environment.chance and environment.chance.num_outcomes) == {"backgammon": 21, "2048": 32}.get(name)
    has_no_board = name == "backgammon" or name.endswith(("poker", "holdem")) or name.startswith("liars")
    assert (environment.board is None) == has_no_board
    if board := environment.board:
        assert board.shape == environment.observation_shape[:2] and board.action_location.shape == (
            environment.num_actions,
        )
        assert board.symmetries.observation_permutation.shape[1] == np.prod(environment.observation_shape)
        location = np.asarray(board.action_location)
        assert -1 <= location.min() <= location.max() < np.prod(board.shape)


def test_gamma_and_board_size_reach_the_environment():
    assert make_environment("tic_tac_toe", gamma=0.5).discount == -0.5
    assert make_environment("hex").board.shape == (11, 11)
    assert make_environment("hex", board_size=4).num_actions == 17


@pytest.mark.parametrize(
    ("name", "board_size", "says"),
    [
        ("hexx", None, "did you mean 'hex'"),
        ("sparrow_mahjong", None, "not supported"),
        ("chess", 8, "chess"),
        ("hex", 20, "2 to 19"),
    ],
)
def test_an_unknown_game_or_board_size_is_refused(name, board_size, says):
    with pytest.raises(ValueError, match=says):
        make_environment(name, board_size=board_size)
