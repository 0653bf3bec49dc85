"""Moves as text, boards as people draw them, positions from FEN."""

import importlib

import numpy as np
import pytest

from muzero_jax.apps.play.position import BLACK, WHITE
from muzero_jax.games import chess, go
from muzero_jax.games.catalogue import GAMES, find, make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.games.notation import ACTION
from tests.reference.play import notation, opening

CHESS = pytest.param("chess", marks=pytest.mark.slow)  # pgx's takes many seconds to compile
SHOGI = pytest.param("shogi", marks=pytest.mark.slow)  # likewise
STANDARD_GAMES = "tic_tac_toe connect_four othello hex go_9x9 gardner_chess animal_shogi".split() + [CHESS, SHOGI]


def written(name, *actions):
    return [notation(name).write(opening(name).state, action) for action in actions]


@pytest.mark.parametrize("name", STANDARD_GAMES)
def test_every_legal_move_of_a_random_game_reads_back_as_itself_and_as_nothing_else(name):
    game, generator = opening(name), np.random.default_rng(0)
    for _ in range(60):
        legal = game.legal_actions()
        assert_read_back(notation(name), game.state, legal)
        assert_read_back(notation(name, ACTION), game.state, legal)
        if game.is_over:
            break
        game = game.play(int(generator.choice(legal)))


@pytest.mark.parametrize(
    "name", [name for name in GAMES if name.startswith("minatar") or name in ("2048", "backgammon")]
)
def test_every_action_of_the_other_games_reads_back_as_itself(name):
    environment = make_environment(name)
    assert_read_back(make_notation(environment), None, range(environment.num_actions))


def assert_read_back(moves, state, actions):
    texts = [moves.write(state, action) for action in actions]
    assert len(set(texts)) == len(texts)
    for action, text in zip(actions, texts, strict=True):
        assert moves.read(state, text) == moves.read(state, text.upper()) == action


def test_actions_are_written_in_each_games_coordinates():
    assert written("go_9x9", 0, 8, 72, 80, 7, 81) == ["A9", "J9", "A1", "J1", "H9", "pass"]
    assert written("hex", 0, 3, 4, 15, 16) == ["a1", "d1", "a2", "d4", "swap-pieces"]
    assert written("othello", 0, 19, 26, 63, 64) == ["a1", "d3", "c4", "h8", "pass"]
    assert written("tic_tac_toe", 0, 2, 3, 4, 8) == ["a1", "c1", "a2", "b2", "c3"]
    assert written("connect_four", 0, 3, 6) == ["a", "d", "g"]


def test_moves_of_animal_shogi_by_hand():
    """The chick takes the chick, is taken by the lion, and is dropped. Direction 3 is forward, kind 8 drops a chick."""
    position, moves = opening("animal_shogi"), notation("animal_shogi")
    for text, action in [("2c2b", 3 * 12 + 6), ("2a2b", 3 * 12 + 7), ("1d1c", 3 * 12 + 3), ("C*3c", 8 * 12 + 1)]:
        assert moves.read(position.state, text.lower()) == action and moves.write(position.state, action) == text
        position = position.play(action)
    assert ["".join(row) for row in position.squares] == ["g.e", ".l.", "c.G", "EL."]


def test_a_chick_on_the_last_rank_becomes_a_hen_even_without_a_plus_sign():
    position, moves = opening("animal_shogi"), notation("animal_shogi")
    for text in ("2c2b", "1a2b", "c*1b", "3a3b"):
        position = position.play(moves.read(position.state, text))
    hen = moves.read(position.state, "1b1a+")
    assert moves.read(position.state, "1b1a") == hen and moves.write(position.state, hen) == "1b1a+"
    assert position.play(hen).squares[0][2] == "H"
    for text in ("1d1c+", "c*1b+", "k*2c", "1d1b", "1d0d", "4d4c"):
        with pytest.raises(ValueError):
            moves.read(position.state, text)


@pytest.mark.slow
def test_moves_of_shogi_by_hand():
    position, moves = opening("shogi"), notation("shogi")
    for text in ("7g7f", "3c3d", "8h2b+", "3a2b", "B*5e", "2b3a"):
        position = position.play(moves.read(position.state, text))
    assert position.squares[4][4] == "B" and position.game.view.hands(position.state) == ("", "B")
    for text in ("P*5d", "K*5f", "9i9f", "7g7f+", "5e5f+", "x"):
        with pytest.raises(ValueError):
            position.play(moves.read(position.state, text))


@pytest.mark.slow
def test_moves_of_chess_by_hand():
    assert written("chess", 89, 652, 2364, 2367) == ["a2a3", "b1a3", "e1c1", "e1g1"]  # 89 is square 1 (a2), plane 16


@pytest.mark.parametrize("name", STANDARD_GAMES)
def test_text_that_is_no_move_is_refused(name):
    moves, state = notation(name), opening(name).state
    names = {moves.write(state, action).lower() for action in range(opening(name).environment.num_actions)}
    for text in {"", "a0", "a10", "i5", "é1", "-1", "１", "e2", "99999"} - names:
        with pytest.raises(ValueError):
            moves.read(state, text)


@pytest.mark.parametrize("text", ["", "-1", "17", "a1", "１"])
def test_action_notation_takes_only_numbers_below_num_actions(text):
    with pytest.raises(ValueError, match="not a number from 0 to 16"):
        notation("hex", ACTION).read(opening("hex").state, text)


@pytest.mark.parametrize(
    "name, module, table",
    [
        pytest.param("chess", "pgx._src.games.chess", "FROM_PLANE", marks=pytest.mark.slow),
        ("gardner_chess", "pgx._src.gardner_chess_utils", "TO_MAP"),
    ],
)
def test_every_plane_of_a_chess_action_goes_where_pgx_says(name, module, table):
    """The table of pgx has -1 for what leaves the board."""
    size, table = opening(name).environment.board.shape[0], np.asarray(getattr(importlib.import_module(module), table))
    for square, file, rank in ((s, *divmod(s, size)) for s in range(size * size)):
        for plane, (ranks, files) in enumerate(chess.deltas(size), 9):
            on_board = 0 <= file + files < size and 0 <= rank + ranks < size
            assert table[square, plane] == ((file + files) * size + rank + ranks if on_board else -1)


@pytest.mark.slow
def test_a_promotion_names_its_piece():
    state, colour = find("chess").read_fen("1r2k3/P7/8/8/8/8/7p/4K3 w - - 0 1")
    position, moves = opening("chess").new(state, colour), notation("chess")
    promotions = {moves.write(state, action) for action in position.legal_actions()} - {
        "e1d1", "e1d2", "e1e2", "e1f1", "e1f2",
    }  # fmt: skip
    assert promotions == {start + piece for start in ("a7a8", "a7b8") for piece in "qrbn"}
    for text in ("a7a8", "a7a8k", "e1e2q"):
        with pytest.raises(ValueError):
            moves.read(state, text)
    assert position.play(moves.read(state, "a7b8n")).squares[0] == list(".N..k...")


@pytest.mark.slow
def test_a_fen_gives_the_side_to_move_and_the_castling_rights():
    state, colour = find("chess").read_fen("r3k2r/8/8/8/8/8/6p1/R3K2R b Kq - 3 20")
    position, moves = opening("chess").new(state, colour), notation("chess")
    assert position.colour_to_move == WHITE
    legal = {moves.write(state, action) for action in position.legal_actions()}
    assert "e8c8" in legal and "e8g8" not in legal and {"g2g1q", "g2h1n"} <= legal
    assert position.play(moves.read(state, "e8c8")).colour_to_move == BLACK
    history = np.asarray(state.observation)[..., 14:112]  # the seven positions before: nothing is known of them
    assert not history[..., :12].any() and not history[..., 14:26].any()


@pytest.mark.parametrize(
    "name, fen",
    [
        ("chess", "8/8/8/8/8/8/8/8 w - - 0 1"),
        ("chess", "P3k3/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("chess", "4k2R/8/8/8/8/8/8/4K3 w - - 0 1"),
        ("gardner_chess", "k4/5/5/5/K3r b - - 0 1"),
        ("gardner_chess", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"),
    ],
)
def test_a_fen_that_is_no_position_is_refused(name, fen):
    with pytest.raises(ValueError, match="FEN"):
        find(name).read_fen(fen)


def test_gardners_chess_reads_fen_and_keeps_the_sides_apart():
    state, colour = find("gardner_chess").read_fen("4k/P4/5/4p/K4 b - -")
    position, moves = opening("gardner_chess").new(state, colour), notation("gardner_chess")
    assert position.colour_to_move == WHITE
    position = position.play(moves.read(position.state, "e2e1n"))
    assert ["".join(row) for row in position.squares] == ["....k", "P....", ".....", ".....", "K...n"]
    position = position.play(moves.read(position.state, "a4a5q"))
    assert position.squares[0] == list("Q...k") and position.colour_to_move == WHITE


def test_area_counts_stones_and_the_regions_of_one_colour():
    rows = [list(row) for row in (".XO..", "XXOO.", "..XO.", "XXXOO", ".XO.O")]
    black, white = 8 + (1 + 2 + 1), 8 + (4 + 1)
    assert go.area_difference(rows) == black - white
    assert go.area_difference([["."] * 3] * 3) == 0
    assert go.area_difference([["X", ".", "O"]]) == 0
