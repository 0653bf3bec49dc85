"""A run becomes a file that plays as the run does, with a card; a published result is redone."""

import json
import shutil
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from muzero_jax import agent as agents
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.storage import agent_file
from scripts import export_agent, reproduce
from tests.reference import tiny_run, told_runs

MATCH = {"wins": 6, "draws": 1, "losses": 1, "games": 8, "score": 0.8125, "ci95": [0.471, 0.951]}
SUMMARY = {
    "iteration": 6,
    "strength": {"mcts:100": MATCH},
    "totals": {"games": 1234.0, "updates": 56.0},
    "seconds": {"self-play": 60.0, "learning": 30.0, "evaluation": 6.0, "compilation": 9.0},
    "device": "2 CPU devices (X)",
    "precision": "float32",
}


@pytest.fixture
def exported(saved_run, tmp_path):
    """Exports the tiny run; returns the new file and its card's text."""

    def export(summary, *arguments):
        run = shutil.copytree(saved_run, tmp_path / "run")
        (run / "summary.json").write_text(json.dumps(summary))
        file = tmp_path / "new folder" / "tiny.safetensors"
        assert report_errors(export_agent.main, [str(run), "--out", str(file), *arguments]) == 0
        return file, file.with_suffix(".md").read_text()

    return export


def test_the_file_plays_as_the_run_and_the_card_repeats_its_summary(saved_run, exported):
    file, card = exported(SUMMARY)
    tiny_run.assert_same(agents.load_agent(file).params, agents.load_agent(saved_run).params)
    assert "# tiny\n\nAn agent for Tic-tac-toe. It searches with a learned model (MuZero)." in card
    assert f"    python experiments/play.py --agent '{file}' --web\n" in card, "quoted, for there is a space in it"
    assert "- seed 0, iteration 6\n- 2 CPU devices (X), float32\n- 1.5 minutes of self-play and learning" in card
    assert "- 1,234 games, 56 updates\n- exported at commit " in card
    assert "    python experiments/train.py --env tic_tac_toe " in card and "--network.width 16" in card
    assert "| mcts:100 | 81.2% | 47.1 to 95.1 | 6 / 1 / 1 |" in card and "2 simulations a move" in card


def test_the_mean_of_agents_has_the_mean_of_each_weight_and_none_of_the_runs_scores(saved_run, exported, tmp_path):
    run, other = agents.load_agent(saved_run), tmp_path / "other.safetensors"
    agent_file.save(other, run.config, jax.tree.map(lambda leaf: leaf + 3.0, run.params), iteration=1)
    file, card = exported(SUMMARY, "--average", str(other), "--average", str(saved_run))
    wanted = jax.tree.map(lambda leaf: leaf + 1.0, run.params)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), agents.load_agent(file).params, wanted)
    assert f"- mean of its weights and those of other.safetensors, {saved_run.name} (--average)" in card
    assert "81.2%" not in card and "No final matches of these weights are recorded." in card
    assert export_agent.read_summary(saved_run, 8) == {}, "of another iteration"


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"network": replace(tiny_run.CONFIG.network, support_range=9.0)}, "network.support-range was 9.0, not 1.0"),
        ({"env": "connect_four"}, "it plays connect_four, not tic_tac_toe"),
    ],
)
def test_agents_of_another_game_or_value_support_cannot_be_averaged(saved_run, changed, found):
    run = agents.load_agent(saved_run)
    other = run._replace(config=replace(run.config, **changed))
    with pytest.raises(ValueError, match=f"{found}; it needs one game and one network"):
        export_agent.mean_params([run, other])


# --- results ----------------------------------------------------------------------------------------------------------

STUDY = {"flags": "--env hex", "groups": {"learned": "", "rules": "--model rules"}, "seeds": [0, 1]}


@pytest.fixture
def redo(tmp_path, monkeypatch):
    """Calls the command on a study; a run scores `redo.finals[seed]`, and `redo.trained` lists the runs' flags."""
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    (tmp_path / "results" / "small").mkdir(parents=True)
    (tmp_path / "results" / "small" / "study.json").write_text(json.dumps(STUDY))

    def call(runs, *flags):
        return report_errors(reproduce.main, ["small", "--runs", str(tmp_path / runs), *flags])

    def train(flags, seed, run_dir):
        call.trained.append((*flags, seed))
        told_runs.tell(run_dir, [0.2, 0.3], seed=seed, final=call.finals[seed])

    monkeypatch.setattr(reproduce, "train", train)
    call.finals, call.trained = {0: 0.4, 1: 0.6}, []
    return call


def test_a_result_is_recorded_verified_and_compared_with_new_runs(redo, tmp_path, capsys):
    assert redo("runs", "--verify") == 2, "not recorded yet"
    assert redo("runs", "--record") == 0 == redo("runs", "--verify")
    own = [("--env", "hex"), ("--env", "hex", "--model", "rules")]
    assert redo.trained == [(*flags, seed) for flags in own for seed in (0, 1)]
    assert redo("runs") == 0 and len(redo.trained) == 4, "runs that have ended are not trained again"
    redo.finals.update({0: 0.5, 1: 0.5})
    assert redo("again", "--groups", "rules", "--seeds", "1") == 0 and len(redo.trained) == 5
    assert "rules, mcts:1000: 50.0% lies inside [" in capsys.readouterr().out
    redo("narrow", "--record")
    redo.finals.update({0: 0.9, 1: 0.9})
    assert redo("third") == 1
    assert redo("runs", "--groups", "none") == 2
    scores = tmp_path / "results" / "small" / "scores.csv"
    scores.write_text(scores.read_text().replace("0.5,True", "0.9,True"))
    assert redo("runs", "--verify") == 1
    assert "table.txt is not what scores.csv gives" in capsys.readouterr().out


def test_recording_part_of_a_result_replaces_only_those_runs(redo, tmp_path):
    redo("runs", "--record")
    redo.finals.update({0: 0.8})
    assert redo("again", "--record", "--groups", "rules", "--seeds", "1") == 0 == redo("again", "--verify")
    points = reproduce.read_scores(tmp_path / "results" / "small" / "scores.csv")
    finals = {point.run: point.score for point in points if point.is_final}
    assert finals == {"learned/seed0": 0.4, "learned/seed1": 0.6, "rules/seed0": 0.8, "rules/seed1": 0.6}
    assert len(points) == len(set(points))
