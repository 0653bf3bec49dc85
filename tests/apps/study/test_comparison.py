"""Groups of runs: which belong together, what they score together by any metric, and what so few can show."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.study import comparison, learning_curves
from tests.reference import told_runs
from tests.reference.told_runs import HEX, tell

RULES = replace(HEX, model="rules")


@pytest.fixture
def runs(tmp_path):
    """Three seeds of one group, and two of another that differs in its model."""
    first = [tell(tmp_path / f"hex-5-seed{k}", [0.2, 0.4 + k / 10], seed=k, final=0.6 + k / 10) for k in range(3)]
    second = [tell(tmp_path / f"rules/seed{k}", [0.5, 0.9], seed=k, final=0.8, config=RULES) for k in range(2)]
    return first + second


def test_runs_that_differ_only_in_seed_form_a_group_named_by_folder_or_flags(runs, tmp_path):
    assert list(comparison.group_names(runs).values()) == ["hex-5"] * 3 + ["rules"] * 2
    unclear = [tell(tmp_path / name / "seed0", [0.5], config=config) for name, config in (("r", HEX), ("s/r", RULES))]
    first, second = comparison.group_names(unclear).values()
    assert first.endswith("--model learned") and second.endswith("--model rules")


@pytest.mark.parametrize(
    "scores, mean, interval",
    [
        ([0.3], 0.3, [np.nan, np.nan]),
        ([0.0, 0.6], 0.3, [0.0, 0.6]),  # of two or three runs the lowest and the highest
        ([0.0, 0.4, 0.6, 100.0], 0.5, None),  # the outer half does not count
    ],
)
def test_a_group_is_judged_by_its_interquartile_mean(scores, mean, interval):
    found = comparison.estimate(scores)
    assert found.mean == pytest.approx(mean)
    if interval:
        np.testing.assert_allclose([found.low, found.high], interval)


def test_final_scores_are_those_of_the_final_matches_and_the_table_says_what_was_spent(runs):
    points = comparison.read_runs(runs)
    first, second = (comparison.final_scores(of) for of in comparison.groups_of(points).values())
    assert first["mcts:1000"] == pytest.approx([0.6, 0.7, 0.8]) and second["mcts:1000"] == [0.8, 0.8]
    _, heading, *rows = comparison.format_table(points).splitlines()
    assert heading.split()[-2:] == ["mcts:100", "mcts:1000"]
    assert rows[0].split()[:5] == ["hex-5", "3", "2,000", "20", "2.0"] and "70.0%" in rows[0] and "80.0%" in rows[1]


def test_any_key_of_the_metrics_compares_runs(runs, tmp_path):
    """The final value of a noisy metric of training is the mean of its last tenth."""
    assert "200 [200, 200]" in comparison.format_table(comparison.read_runs(runs, ["elo"]))
    long = tell(tmp_path / "r", [0.5] * 40, final=0.5)
    assert [p.score for p in comparison.read_run(long, "", ["train/loss"]) if p.is_final] == [38.5]
    record = {"iteration": 1, "selfplay/mean_return": 120.0, "total/frames": 10}
    (long / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    (point,) = comparison.read_run(long, "g")  # of a single-player game
    assert (point.metric, point.score, point.is_final) == ("selfplay/mean_return", 120.0, True)
    judged = {run_dir: (0.9 + index / 100, 50) for index, run_dir in enumerate(runs)}
    points = comparison.read_runs(runs, ["mcts:1000", comparison.WINNING_MOVES], judged)
    assert "91.0% [90.0, 92.0]" in comparison.format_table(points)


@pytest.mark.parametrize(
    "one, other, p, least",
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.1, 0.1),  # 20 ways to choose three of six, and two sides
        ([1.0, 3.0, 5.0], [2.0, 4.0, 6.0], 0.7, 0.1),
        ([0.5] * 4, [0.5] * 4, 1.0, 2 / 70),
        (
            [0.0, 1.0],
            [2.0, 2.0, 3.0],
            0.1,
            0.1,
        ),  # of ten splits only this one is as far apart: 0 and 1 against the rest
    ],
)
def test_the_permutation_test_of_few_runs_has_a_smallest_p(one, other, p, least):
    assert comparison.difference(one, other) == pytest.approx((p, least))


def test_all_splits_of_eight_runs_against_eight_are_counted():
    """In plain loops: the share of the 12,870 splits whose means are as far apart."""
    scores = np.random.default_rng(1).normal(0.8, 0.02, 16)
    wanted = abs(scores[:8].mean() - scores[8:].mean()) - 1e-12
    splits = [list(chosen) for chosen in itertools.combinations(range(16), 8)]
    far = [abs(scores[chosen].mean() - np.delete(scores, chosen).mean()) >= wanted for chosen in splits]
    found = comparison.difference(scores[:8].tolist(), scores[8:].tolist())
    assert found == pytest.approx((np.mean(far), 2 / 12_870))


def test_a_test_that_samples_its_splits_says_so_and_repeats_itself(monkeypatch, runs):
    monkeypatch.setattr(comparison, "MOST_SPLITS", 9)
    monkeypatch.setattr(comparison, "SAMPLED_SPLITS", 500)
    one, other = [0.0, 1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 3.5]
    first, least = comparison.difference(one, other)
    assert (first, least) == comparison.difference(one, other) and least == 1 / 501
    assert "random splits" in comparison.format_differences(comparison.read_runs(runs, ["mcts:1000"]))


def test_each_group_is_compared_with_the_first_unless_it_has_one_run(runs):
    text = comparison.format_differences(comparison.read_runs(runs, ["mcts:1000"]))
    assert "rules against hex-5" in text and "2 against 3 runs cannot show less than 0.1" in text
    assert comparison.format_differences(comparison.read_runs(runs[2:4])) == ""


def test_a_curve_is_interpolated_and_goes_as_far_as_the_shortest_of_its_runs(tmp_path):
    runs = [tell(tmp_path / "r-seed0", [0.1, 0.3, 0.9]), tell(tmp_path / "r-seed1", [0.2, 0.4], seed=1)]
    points = comparison.read_runs(runs)
    places, score = learning_curves.curve(points, "mcts:100", "frames")
    assert (places[0], places[-1]) == (told_runs.FRAMES_A_MINUTE, 2 * told_runs.FRAMES_A_MINUTE)
    middle = np.interp(1.5 * told_runs.FRAMES_A_MINUTE, places, score.mean)
    assert score.mean[0] == pytest.approx(0.15) and middle == pytest.approx(0.25, abs=0.01)
    assert learning_curves.curve(points, "random", "minutes") is None


def test_compare_prints_a_table_or_json_and_draws_and_names_runs_without_scores(runs, tmp_path, capsys):
    words, silent, picture = ["compare", *map(str, runs)], tell(tmp_path / "silent", []), tmp_path / "a.png"
    assert evaluate.main([*words, str(silent), "--plot", str(picture)]) == 0
    output, error = capsys.readouterr()
    assert "70.0%" in output and picture.stat().st_size > 5000 and str(silent) in error
    assert evaluate.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"]["mcts:1000"]["mean"] == 0.8
