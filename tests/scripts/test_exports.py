"""A run becomes a file that plays as the run does, with a card; a published result is redone."""

import json
import shutil
from functools import partial

import jax
import numpy as np
import pytest

from muzero_jax.agent import load_agent
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
    tiny_run.assert_same(load_agent(file).params, load_agent(saved_run).params)
    assert "# tiny\n\nAn agent for Tic-tac-toe. It searches with a learned model (MuZero)." in card
    assert f"    python experiments/play.py --agent '{file}' --web\n" in card, "quoted, for there is a space in it"
    assert "- seed 0, iteration 6\n- 2 CPU devices (X), float32\n- 1.5 minutes of self-play and learning" in card
    assert "- 1,234 games, 56 updates\n- exported at commit " in card
    assert "    python experiments/train.py --env tic_tac_toe " in card and "--network.width 16" in card
    assert "| mcts:100 | 81.2% | 47.1% to 95.1% | 6 / 1 / 1 |" in card and "2 simulations a move" in card


def test_the_mean_of_agents_has_the_mean_of_each_weight_and_none_of_the_runs_scores(saved_run, exported, tmp_path):
    run, other = load_agent(saved_run), tmp_path / "other.safetensors"
    agent_file.save(other, run.config, jax.tree.map(lambda leaf: leaf + 3.0, run.params), iteration=1)
    file, card = exported(SUMMARY, "--average", str(other), "--average", str(saved_run))
    wanted = jax.tree.map(lambda leaf: leaf + 1.0, run.params)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), load_agent(file).params, wanted)
    assert f"- mean of its weights and those of other.safetensors, {saved_run.name} (--average)" in card
    assert "81.2%" not in card and "No final matches of these weights are recorded." in card
    assert export_agent.read_summary(saved_run, 8) == {}, "of another iteration"


# --- results ----------------------------------------------------------------------------------------------------------

STUDY = {"flags": "--env hex", "groups": {"learned": "", "rules": "--model rules"}, "seeds": [0, 1]}


def test_a_result_is_recorded_verified_and_compared_with_new_runs(tmp_path, monkeypatch, capsys):
    result, finals, trained = tmp_path / "results" / "small", {0: 0.4, 1: 0.6}, []
    monkeypatch.setattr(reproduce, "RESULTS", result.parent)
    result.mkdir(parents=True)
    (result / "study.json").write_text(json.dumps(STUDY))

    def train(flags, seed, run_dir):
        trained.append((*flags, seed))
        told_runs.tell(run_dir, [0.2, 0.3], seed=seed, final=finals[seed])

    def redo(runs, *flags):
        return report_errors(reproduce.main, ["small", "--runs", str(tmp_path / runs), *flags])

    monkeypatch.setattr(reproduce, "train", train)
    assert redo("runs", "--verify") == 2, "not recorded yet"
    assert redo("runs", "--record") == 0 == redo("runs", "--verify")
    own = [("--env", "hex"), ("--env", "hex", "--model", "rules")]
    assert trained == [(*flags, seed) for flags in own for seed in (0, 1)]
    assert redo("runs") == 0 and len(trained) == 4, "runs that have ended are not trained again"
    finals.update({0: 0.5, 1: 0.5})
    assert redo("again", "--groups", "rules", "--seeds", "1") == 0 and len(trained) == 5
    assert "rules, mcts:1000: 50.0% lies inside [" in capsys.readouterr().out
    assert redo("again", "--record", "--groups", "rules", "--seeds", "1") == 0
    recorded = {point.run: point.score for point in reproduce.read_scores(result / "scores.csv") if point.is_final}
    scores_now = {"learned/seed0": 0.4, "learned/seed1": 0.6, "rules/seed0": 0.5, "rules/seed1": 0.6}
    assert recorded == scores_now, "only the run that was asked for is replaced"
    redo("narrow", "--record")
    finals.update({0: 0.9, 1: 0.9})
    assert redo("third") == 1
    assert redo("runs", "--groups", "none") == 2
    scores = result / "scores.csv"
    scores.write_text(scores.read_text().replace("0.5,True", "0.9,True"))
    assert redo("runs", "--verify") == 1
    assert "table.txt is not what scores.csv gives" in capsys.readouterr().out
