"""Games from files: lines of moves, SGF, folders of both, and errors for other files."""

import pytest

from muzero_jax.games.game_files import read_games


def write(path, text):
    path.write_text(text)
    return path


def test_a_line_is_a_game_and_its_result_is_left_out(tmp_path):
    text = "# tic-tac-toe\n\na1 a2 b1 b2 c1 1-0\n[0, 3, 1, 4, 8, 5]\n  # none\n*\nb2, B+R\n0 1 resign"
    games = read_games(write(tmp_path / "games.txt", text))
    assert [game.moves for game in games] == [tuple("a1 a2 b1 b2 c1".split()), tuple("031485"), ("b2",), ("0", "1")]
    assert [game.name[-6:] for game in games] == ["game 1", "game 2", "game 4", "game 5"]  # the third has no move
    assert not any(game.is_sgf for game in games)


def test_an_sgf_file_holds_one_game_or_more(tmp_path):
    text = "(;GM[11]SZ[4]C[a (; b \\] c];B[b1];W[swap-pieces](;B[d4];W[resign])(;B[a1]))\n(;SZ[5:5];B[a1];W[c3])"
    one, other = read_games(write(tmp_path / "two.sgf", text))
    assert (one.moves, one.colours, one.size) == (("b1", "swap-pieces", "d4"), (0, 1, 0), 4)
    assert (other.moves, other.colours, other.size) == (("a1", "c3"), (0, 1), 5)
    assert other.name == f"{tmp_path / 'two.sgf'}, game 2"


def test_a_folder_gives_its_text_and_sgf_files_in_the_order_of_their_names(tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "b.txt", "1")
    write(tmp_path / "a.SGF", "(;B[2])")
    write(tmp_path / "more" / "c.txt", "3")
    write(tmp_path / "notes.md", "4")
    assert [game.moves for game in read_games(tmp_path)] == [("2",), ("1",), ("3",)]


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("nothing", None, "there is no .*/nothing"),
        ("empty.txt", "# nothing\n", "holds no moves"),
        ("bad.sgf", "(;B[a1])(;B[a1]", "bad.sgf, game 2: it is not SGF"),
        ("bad.sgf", "(;AB[a1];W[b1])", "bad.sgf, game 1: it begins with stones"),
    ],
)
def test_a_file_without_readable_games_is_refused(tmp_path, name, text, says):
    if text:
        write(tmp_path / name, text)
    with pytest.raises(ValueError, match=says):
        read_games(tmp_path / name)
