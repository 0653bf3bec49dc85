"""Groups of runs: which belong together, what they score together by any metric, and what so few can show."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.study import comparison, learning_curves
from tests.reference import told_runs
from tests.reference.told_runs import HEX, tell

RULES = replace(HEX, model="rules")
KEYS = ["train/loss", "elo"]


@pytest.fixture
def runs(tmp_path):
    """Three seeds of one group, and two of another that differs in its model."""
    first = [tell(tmp_path / f"hex-5-seed{k}", [0.2, 0.4 + k / 10], seed=k, final=0.6 + k / 10) for k in range(3)]
    second = [tell(tmp_path / f"rules/seed{k}", [0.5, 0.9], seed=k, final=0.8, config=RULES) for k in range(2)]
    return first + second


def test_runs_that_differ_in_their_seed_alone_are_a_group_called_as_their_folders(runs):
    assert list(comparison.group_names(runs).values()) == ["hex-5"] * 3 + ["rules"] * 2


def test_groups_whose_folders_say_nothing_are_told_apart_by_their_flags(tmp_path):
    runs = [tell(tmp_path / name / "seed0", [0.5], config=config) for name, config in (("r", HEX), ("s/r", RULES))]
    first, second = comparison.group_names(runs).values()
    assert first.endswith("--model learned") and second.endswith("--model rules")


def test_with_four_runs_the_outer_half_does_not_count():
    assert comparison.estimate([0.0, 0.4, 0.6, 1.0]).mean == pytest.approx(0.5)
    assert comparison.estimate([0.0, 0.4, 0.6, 100.0]).mean == pytest.approx(0.5)


def test_one_run_has_no_interval():
    found = comparison.estimate([0.3])
    assert found.mean == 0.3 and np.isnan([found.low, found.high]).all()


def test_final_scores_are_those_of_the_final_matches(runs):
    points = comparison.read_runs(runs)
    first, second = (comparison.final_scores(of) for of in comparison.groups_of(points).values())
    assert first["mcts:1000"] == pytest.approx([0.6, 0.7, 0.8]) and second["mcts:1000"] == [0.8, 0.8]


def test_any_key_of_the_metrics_compares_runs(runs):
    finals = [point for point in comparison.read_run(runs[0], "", KEYS) if point.is_final]
    assert [(point.frames, point.score) for point in finals] == [(2000, 2.0), (2000, 200.0)]
    table = comparison.format_table(comparison.read_runs(runs, KEYS))
    assert "2 [2, 2]" in table and "200 [200, 200]" in table and "mcts" not in table


def test_the_final_value_of_a_noisy_metric_of_training_is_the_mean_of_its_last_tenth(tmp_path):
    run_dir = tell(tmp_path / "r", [0.5] * 40, final=0.5)
    assert [p.score for p in comparison.read_run(run_dir, "", ["train/loss"]) if p.is_final] == [38.5]


def test_a_single_player_game_is_compared_by_its_mean_return(tmp_path):
    run_dir = tell(tmp_path / "r", [], final=0.5)
    (run_dir / "metrics.jsonl").write_text('{"iteration": 1, "selfplay/mean_return": 120.0, "total/frames": 10}\n')
    (point,) = comparison.read_run(run_dir, "g")
    assert (point.metric, point.score, point.is_final) == ("selfplay/mean_return", 120.0, True)
    assert "120" in comparison.format_table([point]) and "%" not in comparison.format_table([point]).splitlines()[-1]


def test_winning_move_accuracies_stand_beside_what_the_runs_measured(runs):
    judged = {run_dir: (0.9 + index / 100, 50) for index, run_dir in enumerate(runs)}
    points = comparison.read_runs(runs, ["mcts:1000", comparison.WINNING_MOVES], judged)
    assert "91.0% [90.0, 92.0]" in comparison.format_table(points)


@pytest.mark.parametrize(
    "one, other, p, least",
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.1, 0.1),  # 20 ways to choose three of six, and two sides
        ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0], 0.7, 0.1),
        ([1.0, 2.0], [3.0, 4.0], 1 / 3, 1 / 3),
        ([0.5] * 4, [0.5] * 4, 1.0, 2 / 70),
    ],
)
def test_a_few_runs_show_little_by_the_permutation_test(one, other, p, least):
    assert comparison.difference(one, other) == pytest.approx((p, least))


def test_each_group_is_compared_with_the_first_and_one_run_alone_is_not(runs):
    text = comparison.format_differences(comparison.read_runs(runs, ["mcts:1000"]))
    assert "rules against hex-5" in text and "2 against 3 runs cannot show less than 0.2" in text
    assert comparison.format_differences(comparison.read_runs(runs[2:4])) == ""


def test_between_two_evaluations_a_runs_score_is_interpolated(runs):
    points = comparison.groups_of(comparison.read_runs(runs))["hex-5"]
    places, score = learning_curves.curve(points, "mcts:100", "frames")
    assert (places[0], places[-1]) == (told_runs.FRAMES_A_MINUTE, 2 * told_runs.FRAMES_A_MINUTE)
    middle = np.interp(1.5 * told_runs.FRAMES_A_MINUTE, places, score.mean)
    assert score.mean[0] == pytest.approx(0.2) and middle == pytest.approx((0.2 + 0.5) / 2, abs=0.01)


def test_a_curve_goes_as_far_as_the_shortest_of_its_runs(tmp_path):
    runs = [tell(tmp_path / "r-seed0", [0.1, 0.2, 0.3]), tell(tmp_path / "r-seed1", [0.1, 0.2], seed=1)]
    places, _ = learning_curves.curve(comparison.read_runs(runs), "mcts:100", "minutes")
    assert places[-1] == 2.0
    assert learning_curves.curve(comparison.read_runs(runs), "random", "minutes") is None


POINT = comparison.Point("g", "r", 0, 1, 1, 1.0, 1.0, "mcts:100", 0.2, False, 128)


def test_a_curve_ends_in_the_final_match_and_not_in_a_hook():
    """The last evaluation and the longer final match are of one agent, which had spent the same."""
    late = [POINT._replace(minutes=2.0, score=0.6, is_final=True), POINT._replace(minutes=2.0, score=0.4)]
    places, score = learning_curves.curve([POINT, *late], "mcts:100", "minutes")
    np.testing.assert_allclose(score.mean, np.interp(places, [1.0, 2.0], [0.2, 0.6]))


def lines_of(points, axis="minutes"):
    """The labels and the places of the lines that a panel shows."""
    axes = Figure().subplots()
    learning_curves._panel(axes, comparison.groups_of(points), "mcts:100", axis)
    return [(line.get_label(), *line.get_xdata()[[0, -1]]) for line in axes.lines]


def test_a_group_whose_runs_share_no_part_of_an_axis_is_drawn_run_by_run():
    """As after `--seeds 2`: the first waits for its matches to compile, and is measured when the second has ended."""
    first, last = POINT._replace(run="0", minutes=1.02), POINT._replace(run="1", minutes=1.01)
    points = [first, first._replace(score=0.4, is_final=True), POINT._replace(run="1", minutes=0.2), last]
    assert learning_curves.curve(points, "mcts:100", "minutes") is None
    assert [places[1:] for places in lines_of(points)] == [(1.02, 1.02), (0.2, 1.01)]
    assert lines_of(points)[0][0] == "g (2)"
    together = [point._replace(frames=int(100 * point.minutes)) for point in points] + [first._replace(frames=30)]
    assert lines_of(together, "frames") == [("g (2)", 30, 101)]


def test_the_table_has_a_line_a_group_with_what_was_spent(runs):
    table = comparison.format_table(comparison.read_runs(runs))
    _, heading, first, second = table.splitlines()
    assert heading.split()[-2:] == ["mcts:100", "mcts:1000"]
    assert first.split()[:5] == ["hex-5", "3", "2,000", "20", "2.0"] and "70.0%" in first and "80.0%" in second


def test_a_metric_that_not_all_have_cannot_be_drawn(runs, tmp_path):
    with pytest.raises(ValueError, match=r"not all runs have mcts:7 .* choose of mcts:100"):
        learning_curves.plot(comparison.read_runs(runs), tmp_path / "all.svg", wanted=["mcts:7"])


def test_digits_at_a_names_end_belong_to_it(tmp_path):
    configs = [replace(HEX, minutes=minutes) for minutes in (1.0, 2.0)]
    runs = [tell(tmp_path / f"lr-0.00{k}", [0.1], config=config) for k, config in enumerate(configs)]
    assert list(comparison.group_names(runs).values()) == ["lr-0.000", "lr-0.001"]


def test_runs_without_scores_are_refused_in_a_sentence(tmp_path):
    run_dir = tell(tmp_path / "new", [])
    with pytest.raises(ValueError, match=r"was measured yet in .*new"):
        evaluate.main(["compare", str(run_dir)])
