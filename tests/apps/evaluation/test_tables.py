"""The one way to print a table."""

from muzero_jax.apps.evaluation import tables


def test_columns_are_as_wide_as_their_widest_cell_and_stand_to_their_side():
    lines = tables.align([["", "name", "Elo"], ["1", "x", "-12"], ["12", "longer", "3"]], "><>")
    assert lines == ["    name    Elo", " 1  x       -12", "12  longer    3"]


def test_the_last_side_is_for_all_columns_after_it_and_no_line_ends_in_blanks():
    assert tables.align([["a", "bb", "ccc"], ["aaa", "b", ""]], "<") == ["a    bb  ccc", "aaa  b"]


def test_fields_are_a_line_each_and_numbers_have_three_digits():
    assert tables.fields({"wins": 3, "score": 0.12345}) == " wins  3\nscore  0.123"


def test_strength_is_a_line_an_opponent_with_what_its_score_may_be():
    drawn = {"score": 0.5, "ci95": [0.25, 0.75], "wins": 3, "draws": 2, "losses": 3, "distinct_games": 7}
    beaten = {"score": 1.0, "ci95": (0.676, 1.0), "wins": 8, "draws": 0, "losses": 0}
    assert tables.strength({"random": beaten, "mcts:1000": drawn}).splitlines() == [
        "Strength (colours balanced, every opening played from both sides)",
        "opponent   score   95% interval     won / drawn / lost  distinct games",
        "random     100.0%  67.6% to 100.0%  8 / 0 / 0           -",
        "mcts:1000  50.0%   25.0% to 75.0%   3 / 2 / 3           7",
    ]


def test_where_one_seat_won_every_game_the_table_says_that_a_side_seems_to_win_by_force():
    match = {"score": 0.5, "ci95": [0.4, 0.6], "wins": 64, "draws": 0, "losses": 64}
    for first, second, word in ((1.0, 0.0, "first"), (0.0, 1.0, "second")):
        told = tables.strength({"mcts:1000": match | {"score_as_first": first, "score_as_second": second}})
        assert f"mcts:1000: whoever moved {word} won every game, so that side seems to win by force" in told
    for first, second in ((0.5, 0.5), (1.0, 1.0), (0.9, 0.1)):
        assert "force" not in tables.strength({"x": match | {"score_as_first": first, "score_as_second": second}})


def test_a_share_that_there_is_not_is_no_number():
    assert (tables.percent(None), tables.percent(0.125)) == ("-", "12.5%")
    assert tables.percent_interval([0.0, 1.0]) == "[0.0, 100.0]"


def test_a_summary_is_aligned_text(capsys):
    tables.summary_table([{"opponent": "random", "games": "98"}, {"opponent": "mcts:1000", "games": "256"}], "Final")
    tables.summary_table([], "None")
    assert capsys.readouterr().out == "Final\nopponent   games\nrandom     98\nmcts:1000  256\nNone\n"
