"""A study: what varies, what a trial reports and when it ends, what `tune.py` leaves behind, and how it continues."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.apps.commands import train, tune
from muzero_jax.apps.commands.command_line import EXIT_INTERRUPTED, report_errors
from muzero_jax.apps.study import tuning
from muzero_jax.apps.study.tuning import Objective, Span
from muzero_jax.config.config import Config, flat
from muzero_jax.config.session import Session
from muzero_jax.games.environment import make_environment
from muzero_jax.run.run import Diverged
from tests.reference import told_runs
from tests.reference.pages import ROOT
from tests.reference.training import settled

BASE = replace(presets.hex_any(4), minutes=None, frames=9000)
TWO = {"optimiser.learning_rate": Span(2e-4, 2e-2, True), "replay.end_weight": Span(1, 8, True)}
HEX = ["--env", "hex", "--board-size", "4", "--frames", "65536"]


class Trained:
    """Replaces `Objective.train`: the score grows with the frames, up to `final(config)`."""

    def __init__(self):
        self.runs: list[tuple[Config, Path]] = []
        self.interrupt_at = None
        self.final = lambda config: max(0.0, 0.9 - 100 * abs(config.optimiser.learning_rate - 0.004))

    def __call__(self, config, run_dir, on_metrics=None):
        if len(self.runs) == self.interrupt_at:
            raise KeyboardInterrupt
        self.runs.append((config, run_dir))
        score = self.final(config)
        scores = [score * part / 9 for part in range(1, 10)]
        told_runs.tell(run_dir, scores, seed=config.seed, final=score, config=config)
        for part, found in enumerate(scores, 1) if on_metrics else ():
            on_metrics({"total/frames": (config.frames or 9000) * part / 9, "eval/mcts:100": found})


@pytest.fixture
def trained(monkeypatch):
    made = Trained()
    monkeypatch.setattr(Objective, "train", lambda self, *arguments: made(*arguments))
    return made


# --- what varies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [presets.tic_tac_toe, lambda: presets.tower("chess", num_bins=3)])
def test_every_range_holds_the_presets_own_value_and_its_ends_make_a_run(make):
    config = make()
    varied = tuning.space(config, {})
    for name, (low, high, _) in varied.items():
        assert low <= flat(config)[name] <= high, name
    for end in (0, 1):
        tuning.settings(config, {name: ends[end] for name, ends in varied.items()})
    # Trials are equal in frames, so fields that buy strength with time would win at any price.
    assert varied.keys().isdisjoint({"search.num_simulations", "network.width", "optimiser.updates_per_iteration"})


def test_what_no_search_or_model_of_the_run_uses_does_not_vary():
    gumbel = tuning.space(BASE, {})
    free = replace(BASE, search=replace(BASE.search, policy="none"), model="rules")
    by_rules = tuning.space(free, {})
    only = {"search.value_scale", "search.max_num_considered_actions"}
    dynamics = {"targets.unroll_steps", "optimiser.reward_weight", "optimiser.reconstruction_weight"}
    assert gumbel.keys() - by_rules.keys() == only | dynamics
    assert by_rules.keys() - gumbel.keys() == {"search.kl_weight", "search.entropy_weight"}


def test_disabled_parts_do_not_vary_and_a_users_ranges_include_the_base_value():
    off = replace(BASE, optimiser=replace(BASE.optimiser, reconstruction_weight=0.0))
    found = ["optimiser.reconstruction_weight" in tuning.space(base, {}) for base in (BASE, off)]
    assert found == [True, False]
    chosen = {"optimiser.learning_rate": Span(1e-5, 1e-4, True), "search.max_num_considered_actions": [2, 4]}
    assert tuning.space(BASE, chosen) == {
        "optimiser.learning_rate": Span(1e-5, BASE.optimiser.learning_rate, True),
        "search.max_num_considered_actions": [2, 4, BASE.search.max_num_considered_actions],
    }
    off = {"targets.search_value_weight": Span(0.1, 0.5, True)}  # no log scale reaches the base's 0
    assert tuning.space(BASE, off) == {"targets.search_value_weight": Span(0.0, 0.5, False)}


def test_a_study_of_exploitability_looks_for_less_and_a_hidden_game_is_not_scored_by_rollouts(tmp_path):
    kuhn, dark_hex = make_environment("kuhn_poker"), make_environment("dark_hex")
    assert [tune.metric_of("", game) for game in (kuhn, dark_hex)] == ["points/random", "random"]
    assert tune.metric_of("exploitability", kuhn) == "exploitability"
    for metric, direction in {"exploitability": "MINIMIZE", "points/random": "MAXIMIZE"}.items():
        assert tuning.open_study(tmp_path / direction, BASE, metric).direction.name == direction


# --- trials -----------------------------------------------------------------------------------------------------------


def studied(folder, trials, base=BASE):
    """The objective and its study after so many trials."""
    objective, study = (
        Objective(base, TWO, folder, "mcts:100", Session(), 1),
        tuning.open_study(folder, base, "mcts:100"),
    )
    tuning.search(study, objective, trials, lambda study, trial: None)
    return objective, study


def states_of(study):
    return [trial.state.name for trial in study.trials]


def test_the_first_trial_runs_for_minutes_and_the_others_for_as_many_frames(trained, tmp_path):
    _, study = studied(tmp_path, 3, replace(BASE, minutes=1.0, frames=None))
    assert [run_dir.name for _, run_dir in trained.runs] == ["base", "001", "002"]
    assert trained.runs[0][0].minutes == 1.0
    assert {(config.minutes, config.frames) for config, _ in trained.runs[1:]} == {(None, 9000)}
    assert study.user_attrs["frames"] == 9000


def test_a_hopeless_trial_is_pruned_by_its_curve_and_the_base_never(trained, tmp_path):
    trained.final = lambda config: 0.1 if config == BASE else 0.9 / len(trained.runs)
    _, study = studied(tmp_path, 8)
    assert states_of(study)[0] == "COMPLETE" and "PRUNED" in states_of(study)


def test_a_trial_that_diverges_is_pruned_and_any_other_failure_ends_the_study(trained, tmp_path):
    def fails(error):
        def final(config):
            if config != BASE:
                raise error
            return 0.5

        return final

    trained.final = fails(Diverged("train/loss is not finite"))
    assert states_of(studied(tmp_path, 2)[1]) == ["COMPLETE", "PRUNED"]
    trained.final = fails(ValueError("the disk is full"))
    with pytest.raises(ValueError, match="disk is full"):
        studied(tmp_path, 3)


def test_a_study_file_can_change_only_the_fields_that_vary(trained, tmp_path):
    """A study may come from a stranger, and a config that names a Python file would run it."""
    objective, study = studied(tmp_path, 1)
    study.enqueue_trial({"env": "strangers.py", "replay.end_weight": 7})
    study.optimize(lambda trial: trial.suggest_categorical("env", ["strangers.py"]) and 1.0, n_trials=1)
    assert study.best_params == {"env": "strangers.py"}
    assert tuning.best(study, objective) == BASE


# --- the command ------------------------------------------------------------------------------------------------------


def table_of(study):
    return list(csv.DictReader((study / "trials.csv").read_text().splitlines()))


def tuned(folder, *flags):
    return tune.main([*HEX, "--study", str(folder), *flags])


def test_a_study_finds_better_settings_and_compares_them_with_seeds_it_never_saw(trained, tmp_path, capsys):
    study = tmp_path / "study"
    assert tuned(study, "--trials", "8", "--seeds", "2", "--vary", "optimiser.learning-rate") == 0
    trials, finals = trained.runs[:8], trained.runs[8:]
    assert {(config.seed, config.frames) for config, _ in trials} == {(0, 65536)}
    assert [(run_dir.name.split("-")[0], config.seed) for config, run_dir in finals][::2] == [("base", 1), ("base", 2)]
    rows = table_of(study)
    best = max((row for row in rows if row["state"] == "COMPLETE"), key=lambda row: float(row["value"]))
    assert len(rows) == 8 and float(rows[0]["params_optimiser.learning_rate"]) == 0.002
    for picture in ("history.png", "curves.png", "importance.png", "slices.png"):
        assert (study / picture).read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    rate = float(f"{float(best['params_optimiser.learning_rate']):.3g}")
    assert f"trial {best['number']}, --optimiser.learning-rate {rate}" in printed
    config = settled("--config", study / "best.json").config
    assert (config.optimiser.learning_rate, config.frames) == (rate, 65536)


def test_ctrl_c_says_how_to_continue_and_the_same_command_continues_the_study(trained, tmp_path, capsys):
    trained.interrupt_at = 2
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0") == EXIT_INTERRUPTED
    assert "stopped and saved; continue with: " in capsys.readouterr().out
    trained.interrupt_at = None
    assert tuned(tmp_path, "--trials", "3", "--seeds", "0") == 0 and len(trained.runs) == 3
    assert tuned(tmp_path, "--trials", "4", "--seeds", "0") == 0 and len(trained.runs) == 4
    assert len({config.optimiser.learning_rate for config, _ in trained.runs}) == 4
    with pytest.raises(ValueError, match=r"was begun without --network\.width 64"):
        tuned(tmp_path, "--network.width", "64")


def test_ranges_and_lists_of_ones_own_reach_the_trials(trained, tmp_path):
    own = ["--vary", "replay.end-weight", "2:6", "--vary", "network.kind", "mlp", "observation"]
    assert tuned(tmp_path, "--trials", "6", "--seeds", "0", *own) == 0
    assert {config.network.kind for config, _ in trained.runs} <= {"mlp", "observation"}
    assert all(2 <= config.replay.end_weight <= 6 for config, _ in trained.runs)
    assert len({config.optimiser.learning_rate for config, _ in trained.runs}) == 1


TINY = (
    "--env tic_tac_toe --minutes 0.02 --trials 2 --seeds 0 --metric mcts:2 --network.width 16 --devices 1 "
    "--self-play.num-envs 16 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--optimiser.batch-size 16 --optimiser.updates-per-iteration 2 --evaluation.games 4 --evaluation.final-games 4 "
    "--evaluation.num-simulations 2 --search.num-simulations 4 --vary optimiser.learning-rate"
).split()


@pytest.mark.slow
def test_two_real_workers_make_one_study(tmp_path):
    """They continue a study whose first trial has found how many frames its minutes hold."""
    line = [sys.executable, "experiments/tune.py", *TINY, "--study", str(tmp_path / "study")]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    more = [subprocess.Popen([*line, "--trials", "3"], cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [worker.wait(timeout=300) for worker in more] == [0, 0]
    rows = table_of(tmp_path / "study")
    assert {row["state"] for row in rows} <= {"COMPLETE", "PRUNED"} and 3 <= len(rows) <= 4
    assert not (tmp_path / "study" / "trials" / "001" / "checkpoints").exists()
    best = ["--config", str(tmp_path / "study" / "best.json"), "--run-dir", str(tmp_path / "best"), "--devices", "1"]
    assert report_errors(train.main, best) == 0
