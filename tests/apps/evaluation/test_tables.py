"""The one way to print a table."""

from muzero_jax.apps.evaluation import tables


def test_columns_are_as_wide_as_their_widest_cell_and_stand_to_their_side():
    lines = tables.align([["", "name", "Elo", "x"], ["1", "x", "-12", ""], ["12", "longer", "3", "yy"]], "><>")
    assert lines == ["    name    Elo   x", " 1  x       -12", "12  longer    3  yy"]


def test_strength_is_a_line_an_opponent_with_what_its_score_may_be():
    drawn = {"score": 0.5, "ci95": [0.25, 0.75], "wins": 3, "draws": 2, "losses": 3, "distinct_games": 7}
    beaten = {"score": 1.0, "ci95": (0.676, 1.0), "wins": 8, "draws": 0, "losses": 0}
    assert tables.strength({"random": beaten, "mcts:1000": drawn}).splitlines()[1:] == [
        "opponent   score   95% interval     won / drawn / lost  distinct games",
        "random     100.0%  67.6% to 100.0%  8 / 0 / 0           -",
        "mcts:1000  50.0%   25.0% to 75.0%   3 / 2 / 3           7",
    ]


def test_where_one_seat_won_every_game_the_table_says_that_a_side_seems_to_win_by_force():
    match = {"score": 0.5, "ci95": [0.4, 0.6], "wins": 64, "draws": 0, "losses": 64}
    for first, second, is_forced in ((1.0, 0.0, True), (0.0, 1.0, True), (0.5, 0.5, False), (1.0, 1.0, False)):
        told = tables.strength({"x": match | {"score_as_first": first, "score_as_second": second}})
        assert ("by force" in told) == is_forced
