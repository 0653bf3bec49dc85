"""A run becomes a file that plays as the run does, with a card that says what the run's summary says."""

import json
import shutil
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from muzero_jax import agent as agents
from muzero_jax import presets
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.storage import agent_file
from scripts import export_agent
from tests.reference import tiny_run

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
def exported(saved_run, tmp_path, capsys):
    """Exports the tiny run; returns the new file and its card's text."""

    def export(summary, *arguments):
        run = shutil.copytree(saved_run, tmp_path / "run")
        (run / "summary.json").write_text(json.dumps(summary))
        file = tmp_path / "new folder" / "tiny.safetensors"
        assert report_errors(export_agent.main, [str(run), "--out", str(file), *arguments]) == 0
        assert f"wrote {file} (0.0 MB) and" in capsys.readouterr().out
        return file, file.with_suffix(".md").read_text()

    return export


def test_the_file_plays_as_the_run_and_the_card_repeats_its_summary(saved_run, exported):
    file, card = exported(SUMMARY)
    tiny_run.assert_same(agents.load_agent(file).params, agents.load_agent(saved_run).params)
    assert "# tiny\n\nTic-tac-toe; search plans with a learned model (MuZero)." in card
    assert "- seed 0, iteration 6\n- 2 CPU devices (X), float32\n- 1.5 minutes of self-play and learning" in card
    assert "- 1,234 games, 56 updates\n- exported at commit " in card
    assert "| mcts:100 | 81.2% | 47.1 to 95.1 | 6 / 1 / 1 |" in card and "2 simulations a move" in card
    assert "## Licence\n\nApache-2.0" in card


def test_the_mean_of_agents_has_the_mean_of_each_weight_and_none_of_the_runs_scores(saved_run, exported, tmp_path):
    run, other = agents.load_agent(saved_run), tmp_path / "other.safetensors"
    far = jax.tree.map(lambda leaf: leaf + 3.0, run.params)
    agent_file.save(other, run.config, far, iteration=1)
    file, card = exported(SUMMARY, "--average", str(other), "--average", str(saved_run))
    wanted = jax.tree.map(lambda leaf: leaf + 1.0, run.params)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), agents.load_agent(file).params, wanted)
    assert f"- mean of its weights and those of other.safetensors, {saved_run.name} (--average)" in card
    assert "81.2%" not in card, "these were of the run's own weights"


def test_agents_of_different_networks_have_no_mean(saved_run, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    flags = [str(saved_run), "--out", str(out), "--average", "agent:tic_tac_toe"]
    assert report_errors(export_agent.main, flags) == EXIT_ERROR and not out.exists()
    assert "a mean needs one network" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed, found",
    [
        ({"network": replace(tiny_run.CONFIG.network, activation="gelu")}, "its network.activation was gelu, not relu"),
        (
            {"network": replace(tiny_run.CONFIG.network, support_range=9.0)},
            "its network.support-range was 9.0, not 1.0",
        ),
        ({"env": "connect_four"}, "it plays connect_four, not tic_tac_toe"),
    ],
)
def test_weights_of_another_meaning_have_no_mean_though_they_have_the_same_shapes(saved_run, changed, found):
    run = agents.load_agent(saved_run)
    with pytest.raises(ValueError, match=f"{found}; a mean needs one network"):
        export_agent.mean_params([run, run._replace(config=replace(run.config, **changed))])


def test_a_summary_of_another_version_says_nothing_of_this_one(exported):
    _, card = exported(SUMMARY | {"iteration": 8})
    assert "81.2%" not in card and "No final matches of these weights are recorded." in card
    assert "exported at commit" in card


def test_the_card_says_how_to_play_the_file_where_it_lies(exported):
    file, card = exported(SUMMARY)
    assert f"    python experiments/play.py --agent '{file}' --web\n" in card, "quoted, for there is a space in it"
    assert agent_file.find(str(file)) == file and file.stat().st_mode & 0o044, "others may read it"


def test_the_command_has_the_flags_that_differ_from_the_preset(capsys):
    preset = presets.preset("hex", 5)
    assert export_agent.command(preset) == "python experiments/train.py --env hex --board-size 5"
    other = replace(
        preset,
        minutes=None,
        updates=500,
        seed=3,
        model="rules",
        search=replace(preset.search, improved_value=False),
        optimiser=replace(preset.optimiser, learning_rate=0.01),
        evaluation=replace(preset.evaluation, mcts_simulations=(5, 6)),
    )
    assert export_agent.command(other).replace(" \\\n        ", " ") == (
        "python experiments/train.py --env hex --board-size 5 --minutes None --updates 500 --model rules --seed 3 "
        "--search.no-improved-value --optimiser.learning-rate 0.01 --evaluation.mcts-simulations 5 6"
    )


def test_a_file_of_another_kind_and_a_folder_without_a_run_are_refused(saved_run, tmp_path, capsys):
    assert report_errors(export_agent.main, [str(saved_run), "--out", "x.pkl"]) == EXIT_ERROR
    assert report_errors(export_agent.main, [str(tmp_path), "--out", str(tmp_path / "x.safetensors")]) == EXIT_ERROR
    first, second = capsys.readouterr().err.splitlines()
    assert "must end in .safetensors" in first and "holds no run" in second
