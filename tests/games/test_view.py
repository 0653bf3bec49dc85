"""What front ends show of a game: the cells that won, and who swapped."""

import pytest

from tests.reference.play import played


@pytest.mark.parametrize(
    "name, moves, cells",
    [
        ("tic_tac_toe", "b:a1 w:a2 b:b1 w:b2 b:c1", [(0, 0), (0, 1), (0, 2)]),
        ("connect_four", "b:a w:b b:a w:b b:a w:b b:a", [(2, 0), (3, 0), (4, 0), (5, 0)]),
        ("hex", "b:b3 w:swap b:a1 w:a2 b:a3 w:b2 b:a4 w:d2", [(1, 0), (1, 1), (1, 2), (1, 3)]),
        ("go_9x9", "b:E5 w:pass b:pass", []),
        ("tic_tac_toe", "b:a1 w:b2 b:c3 w:b1 b:b3 w:a3 b:c1 w:c2 b:a2", []),
    ],
)
def test_a_position_names_its_winning_cells_when_the_game_is_over_and_not_before(name, moves, cells):
    position = played(name, moves)
    assert position.is_over and position.winning_cells == cells and position.undo().winning_cells == []


def test_only_the_ply_after_which_the_sides_are_swapped_says_so():
    position = played("hex", "b:b3 w:swap")
    assert position.swapped and not position.undo().swapped and not position.play(0).swapped
    assert not played("tic_tac_toe", "").swapped
