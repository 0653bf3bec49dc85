"""One trial: its curve at equal frames, its budget, and what it does when its run ends early."""

from dataclasses import replace

import optuna
import pytest

from muzero_jax import presets
from muzero_jax.apps.study.tuning import space
from muzero_jax.apps.study.tuning.trial import FRAMES, MINUTES, PROBLEM, RUNGS, Curve, Trial, with_budget
from muzero_jax.run.loop import Diverged

BASE = replace(presets.hex_any(4), minutes=1.0)
ROWS = space.space(BASE, ["optimiser.learning_rate", "replay.end_weight"])
OWN = space.own_values(BASE, ROWS)


def test_a_curve_is_read_at_the_ninths_of_the_budget_between_evaluations():
    curve = Curve()
    curve.add(10.0, 0.0)
    assert curve.rungs(90) == [(1, 0.0)]
    curve.add(50.0, 0.8)
    assert curve.rungs(90) == [(2, pytest.approx(0.2)), (3, 0.4), (4, pytest.approx(0.6)), (5, 0.8)]
    curve.add(100.0, 0.8)  # a run ends with a whole chunk, which may be beyond the budget
    assert [rung for rung, _ in curve.rungs(90)] == [6, 7, 8, 9]
    assert curve.rungs(90) == []


def test_rungs_before_the_first_evaluation_have_no_score():
    curve = Curve()
    curve.add(35.0, 0.5)
    curve.add(45.0, 0.7)
    assert curve.rungs(90) == [(4, pytest.approx(0.6))]


def summary(score, frames=900):
    return {"strength": {"mcts:100": {"score": score, "ci95": [0.1, 0.9]}}, "totals": {"frames": frames}}


def a_run(*scores, final=0.5):
    """A trainer whose runs score so at equal distances, and which keeps the configs that it was asked to train."""

    def train(config, run_dir, on_evaluation):
        train.configs.append((config, run_dir.name))
        for number, score in enumerate(scores, 1):
            frames, minutes = 900 * number / len(scores), number / len(scores)
            on_evaluation({"eval/mcts:100": score, "total/frames": frames, "time/minutes": minutes})
        return summary(final)

    train.configs = []
    return train


def study_of(trainer, tmp_path, trials, pruner=None):
    study = optuna.create_study(direction="maximize", pruner=pruner or optuna.pruners.NopPruner())
    study.enqueue_trial(OWN)
    study.optimize(Trial(BASE, ROWS, tmp_path, "mcts:100", trainer), n_trials=trials)
    return study


def test_all_trials_get_the_frames_of_the_first_whose_budget_was_in_minutes(tmp_path):
    trainer = a_run(0.2, 0.4)
    study = study_of(trainer, tmp_path, 2)
    (first, one), (second, two) = trainer.configs
    assert (first.minutes, first.frames, one, two) == (1.0, None, "000", "001")
    assert (second.minutes, second.frames) == (None, 900)
    assert second.evaluation.interval_minutes == pytest.approx(1 / 6)
    assert study.user_attrs == {FRAMES: 900, MINUTES: 1.0}
    assert study.trials[0].intermediate_values == study.trials[1].intermediate_values
    assert study.trials[0].intermediate_values[RUNGS] == pytest.approx(0.4)


def test_the_first_trial_has_the_presets_own_settings(tmp_path):
    trainer = a_run(0.5)
    study_of(trainer, tmp_path, 1)
    assert replace(trainer.configs[0][0], evaluation=BASE.evaluation) == BASE


class PruneAll(optuna.pruners.BasePruner):
    def prune(self, study, trial):
        return True


def test_a_hopeless_trial_is_pruned_but_never_the_presets(tmp_path):
    study = study_of(a_run(0.1, 0.2, 0.3), tmp_path, 2, PruneAll())
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
    assert max(study.trials[1].intermediate_values) == 3  # the first evaluation, a third of the frames


def test_a_trial_is_not_pruned_at_its_end(tmp_path):
    study = study_of(a_run(0.4), tmp_path, 2, PruneAll())
    assert study.trials[1].state.name == "COMPLETE"


def test_a_run_that_diverges_is_a_bad_trial_and_other_mistakes_end_the_study(tmp_path):
    def diverges(config, run_dir, on_evaluation):
        if config.optimiser.learning_rate != BASE.optimiser.learning_rate:
            raise Diverged("train/loss is not finite")
        return a_run(0.5)(config, run_dir, on_evaluation)

    study = study_of(diverges, tmp_path, 2)
    assert study.trials[1].state.name == "PRUNED" and "not finite" in study.trials[1].user_attrs[PROBLEM]

    def fails(config, run_dir, on_evaluation):
        raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="disk is full"):
        study_of(fails, tmp_path, 2)


def test_a_trial_that_ctrl_c_ends_is_the_next_one_again(tmp_path):
    def interrupted(config, run_dir, on_evaluation):
        raise KeyboardInterrupt

    study = optuna.create_study(direction="maximize")
    objective = Trial(BASE, ROWS, tmp_path, "mcts:100", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, n_trials=1)
    study.optimize(objective._replace(train=a_run(0.5)), n_trials=1)
    assert study.trials[1].params == study.trials[0].params and study.trials[1].value == 0.5


def test_evaluations_at_the_end_only_stay_so():
    alone = replace(BASE, evaluation=replace(BASE.evaluation, interval_minutes=0.0))
    assert with_budget(alone, {FRAMES: 10, MINUTES: 3.0}).evaluation.interval_minutes == 0.0
