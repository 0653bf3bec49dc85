"""A study: what varies, what a trial reports and when it ends, and what several workers make of one journal."""

from dataclasses import replace

import pytest

from muzero_jax import presets
from muzero_jax.apps.study import tuning
from muzero_jax.apps.study.tuning import Objective, Span
from muzero_jax.run.run import Diverged
from muzero_jax.run.session import Session
from muzero_jax.storage.config import flat
from tests.reference import told_runs

BASE = replace(presets.hex_any(4), minutes=None, frames=9000)
TWO = {"optimiser.learning_rate": Span(2e-4, 2e-2, True), "replay.end_weight": Span(1, 8, True)}
PRESETS = {
    "tic-tac-toe": presets.tic_tac_toe,
    "Hex 6x6, Muon": lambda: presets.hex_any(6),
    "chess": lambda: presets.tower("chess", num_bins=3),
}


@pytest.mark.parametrize("make", PRESETS.values(), ids=list(PRESETS))
def test_every_range_holds_the_presets_own_value_and_its_ends_make_a_run(make):
    config = make()
    varied = tuning.space(config, {})
    for name, (low, high, _) in varied.items():
        assert low <= flat(config)[name] <= high, name
    for end in (0, 1):
        tuning.settings(config, {name: ends[end] for name, ends in varied.items()})
    # Trials are equal in frames, so fields that buy strength with time would win at any price.
    assert varied.keys().isdisjoint({"search.num_simulations", "network.width", "optimiser.updates_per_iteration"})


def test_what_the_preset_has_turned_off_does_not_vary_and_ones_own_ranges_are_widened_to_the_bases():
    off = replace(BASE, optimiser=replace(BASE.optimiser, reconstruction_weight=0.0))
    found = ["optimiser.reconstruction_weight" in tuning.space(base, {}) for base in (BASE, off)]
    assert found == [True, False]
    chosen = {"optimiser.learning_rate": Span(1e-5, 1e-4, True), "search.max_num_considered_actions": [2, 4]}
    assert tuning.space(BASE, chosen) == {
        "optimiser.learning_rate": Span(1e-5, BASE.optimiser.learning_rate, True),
        "search.max_num_considered_actions": [2, 4, BASE.search.max_num_considered_actions],
    }


def test_found_numbers_are_short_and_own_values_stay_as_they_are():
    own = {name: flat(BASE)[name] for name in tuning.space(BASE, {})}
    assert tuning.settings(BASE, own) == BASE
    found = tuning.settings(BASE, own | {"optimiser.learning_rate": 0.0012345678, "replay.end_weight": 7})
    assert (found.optimiser.learning_rate, found.replay.end_weight) == (0.00123, 7)


class Told(Objective):
    """An objective whose runs are told of: the score grows with the frames, up to `final(config)`."""

    final = staticmethod(lambda config: 0.5)
    trained: list = []

    def train(self, config, run_dir, on_metrics=None):
        self.trained.append((config, run_dir.name))
        score = self.final(config)
        told_runs.tell(run_dir, [score * part / 9 for part in range(1, 10)], final=score, config=config)
        for part in range(1, 10) if on_metrics else ():
            on_metrics({"total/frames": 1000 * part, "eval/mcts:100": score * part / 9})


@pytest.fixture
def told(tmp_path):
    """Makes an objective whose final scores are as a function of the config says."""

    def make(final, base=BASE):
        kind = type("One", (Told,), {"final": staticmethod(final), "trained": []})
        return kind(base, TWO, tmp_path, "mcts:100", Session(), 1)

    return make


def studied(objective, trials):
    study = tuning.open_study(objective.folder, objective.base)
    tuning.search(study, objective, trials, lambda study, trial: None)
    return study


def test_a_study_begins_with_the_base_and_continues_as_the_same_one(told):
    objective = told(lambda config: min(1.0, 100 * config.optimiser.learning_rate))
    studied(objective, 2)
    study = studied(objective, 5)
    assert studied(objective, 5).trials == study.trials and len(objective.trained) == 5
    assert objective.trained[0] == (BASE, "000") and study.trials[0].value == pytest.approx(0.2)
    assert len({trial.params["optimiser.learning_rate"] for trial in study.trials}) == 5
    assert tuning.best(study, objective).optimiser.learning_rate >= BASE.optimiser.learning_rate


def test_minutes_are_those_of_the_first_trial_and_its_frames_are_everybodys(told):
    timed = replace(BASE, minutes=1.0, frames=None)
    objective = told(lambda config: 0.5, timed)
    study = studied(objective, 3)
    assert [name for _, name in objective.trained] == ["base", "001", "002"]
    assert objective.trained[0][0].minutes == 1.0
    assert {(config.minutes, config.frames) for config, _ in objective.trained[1:]} == {(None, 9000)}
    assert study.user_attrs["frames"] == 9000


def test_a_hopeless_trial_is_pruned_by_its_curve_and_the_base_never(told):
    objective = told(lambda config: 0.1 if config == BASE else 0.9 / len(objective.trained))
    study = studied(objective, 8)
    states = [trial.state.name for trial in study.trials]
    assert states[0] == "COMPLETE" and "PRUNED" in states
    pruned = study.trials[states.index("PRUNED")]
    assert list(pruned.intermediate_values) == list(range(1, len(pruned.intermediate_values) + 1))


def test_a_trial_that_diverges_is_pruned_and_any_other_failure_ends_the_study(told):
    def diverges(config):
        if config != BASE:
            raise Diverged("train/loss is not finite")
        return 0.5

    assert [trial.state.name for trial in studied(told(diverges), 2).trials] == ["COMPLETE", "PRUNED"]

    def fails(config):
        raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="disk is full"):
        studied(told(fails), 3)


def test_a_journal_changes_fields_that_vary_and_nothing_else(told):
    """A study may come from a stranger; a config that names a Python file runs it."""
    objective = told(lambda config: 0.5)
    study = studied(objective, 1)
    study.enqueue_trial({"env": "strangers.py", "replay.end_weight": 7})
    study.optimize(lambda trial: trial.suggest_categorical("env", ["strangers.py"]) and 1.0, n_trials=1)
    assert study.best_params == {"env": "strangers.py"}
    assert tuning.best(study, objective) == BASE


def test_a_study_of_other_settings_and_a_folder_of_something_else_are_refused(told, tmp_path):
    studied(told(lambda config: 0.5), 1)
    wider = replace(BASE, network=replace(BASE.network, width=64))
    with pytest.raises(ValueError, match=r"was begun without --network\.width 64"):
        tuning.open_study(tmp_path, wider)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="holds no study"):
        tuning.open_study(tmp_path / "other", BASE)
