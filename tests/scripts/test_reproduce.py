"""`scripts/reproduce.py`: a result is recorded, verified, and compared with new runs."""

import json

import pytest

from muzero_jax.apps.commands.command_line import report_errors
from scripts import reproduce
from tests.reference import told_runs

STUDY = {"flags": "--env hex", "groups": {"learned": "", "rules": "--model rules"}, "seeds": [0, 1]}


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A study, and what would train its runs: the commands, and runs that score 0.4 and 0.6, or what is put here."""
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    folder = tmp_path / "results" / "small"
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(STUDY))
    finals, commands = {0: 0.4, 1: 0.6}, []

    def train(flags, seed, run_dir):
        commands.append((tuple(flags), seed))
        told_runs.tell(run_dir, [0.2, 0.3], seed=seed, final=finals[seed])

    monkeypatch.setattr(reproduce, "train", train)
    return commands, finals


def reproduce_small(tmp_path, runs, *flags):
    return reproduce.main(["small", "--runs", str(tmp_path / runs), *flags])


def test_every_group_is_trained_with_every_seed_and_all_flags(trained, tmp_path):
    commands, _ = trained
    assert reproduce_small(tmp_path, "runs", "--record") == 0
    own = {("--env", "hex"), ("--env", "hex", "--model", "rules")}
    assert [seed for _, seed in commands] == [0, 1, 0, 1]
    assert set(commands) == {(flags, seed) for flags in own for seed in (0, 1)} and len(commands) == 4


def test_what_was_recorded_is_verified_until_somebody_changes_it(trained, tmp_path, capsys):
    reproduce_small(tmp_path, "runs", "--record")
    assert reproduce.main(["small", "--verify"]) == 0
    made = json.loads((tmp_path / "results/small/study.json").read_text())["made"]
    assert made["versions"]["jax"] and made["date"]
    scores = tmp_path / "results/small/scores.csv"
    scores.write_text(scores.read_text().replace("0.6,True", "0.9,True"))
    assert reproduce.main(["small", "--verify"]) == 1
    assert "changed since they were recorded: scores.csv, the table" in capsys.readouterr().out


def test_runs_that_met_nobody_on_the_way_are_recorded_without_curves(trained, tmp_path, monkeypatch):
    train = lambda flags, seed, run_dir: told_runs.tell(run_dir, [], seed=seed, final=0.5)  # noqa: E731
    monkeypatch.setattr(reproduce, "train", train)
    assert reproduce_small(tmp_path, "runs", "--record") == 0 == reproduce.main(["small", "--verify"])
    folder = tmp_path / "results/small"
    assert not (folder / "curves.png").exists()
    (folder / "curves.png").write_bytes(b"somebody's")
    assert reproduce.main(["small", "--verify"]) == 1


def test_scores_come_back_as_they_were_written(trained, tmp_path):
    reproduce_small(tmp_path, "runs", "--record")
    points = reproduce.read_scores(tmp_path / "results/small/scores.csv")
    found = {(p.group, p.seed, p.metric, p.score, p.is_final) for p in points if p.is_final and p.metric == "mcts:1000"}
    assert found == {(group, k, "mcts:1000", (0.4, 0.6)[k], True) for group in STUDY["groups"] for k in (0, 1)}


def test_new_runs_are_inside_or_outside_of_the_old_interval(trained, tmp_path, capsys):
    _, finals = trained
    reproduce_small(tmp_path, "runs", "--record")
    capsys.readouterr()
    finals.update({0: 0.5})
    assert reproduce_small(tmp_path, "again", "--groups", "rules", "--seeds", "1") == 0
    assert "rules, mcts:1000: 50.0% lies inside [" in capsys.readouterr().out
    finals.update({0: 0.5, 1: 0.5})
    reproduce_small(tmp_path, "narrow", "--record")
    finals.update({0: 0.9, 1: 0.9})
    assert reproduce_small(tmp_path, "third") == 1
    assert capsys.readouterr().out.count("OUTSIDE") == 2


def test_runs_that_have_ended_are_not_trained_again(trained, tmp_path):
    commands, _ = trained
    reproduce_small(tmp_path, "runs", "--record")
    commands.clear()
    assert reproduce_small(tmp_path, "runs") == 0 and not commands


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["large"], "there is no result large; choose of small"),
        (["small", "--record", "--groups", "none"], "small has no group none; choose of learned, rules"),
        (["small", "--record", "--seeds", "1"], "--record writes a whole result"),
        (["small", "--verify"], "was not recorded yet"),
    ],
)
def test_what_there_is_not_is_one_sentence(trained, arguments, sentence, capsys):
    assert report_errors(reproduce.main, arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1
