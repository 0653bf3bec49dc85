"""The space of a search: what may vary, around the preset's own values."""

from dataclasses import replace

import pytest

from muzero_jax import presets
from muzero_jax.apps.study.tuning import space
from muzero_jax.storage.config import flat

PRESETS = {
    "tic-tac-toe": presets.tic_tac_toe,
    "Hex 4x4": lambda: presets.hex_any(4),
    "Hex 6x6, Muon": lambda: presets.hex_any(6),
    "Hex 9x9": lambda: presets.hex_any(9),
    "Connect Four": presets.connect_four,
    "Othello": presets.othello,
    "chess": lambda: presets.tower("chess", num_bins=3),
}
each_preset = pytest.mark.parametrize("make", PRESETS.values(), ids=list(PRESETS))


@each_preset
def test_every_range_holds_the_presets_own_value(make):
    config = make()
    for row in space.space(config):
        own = flat(config)[row.field]
        assert row.low <= own <= row.high and row.so_far and type(own) is type(row.low), row.field


@each_preset
def test_the_ends_of_all_ranges_make_a_run(make):
    config = make()
    rows = space.space(config)
    for end in (0, -1):
        values = {row.field: (row.low, row.high)[end] for row in rows}
        space.with_values(config, values)


@each_preset
def test_nothing_varies_that_buys_strength_with_time(make):
    """Trials are equal in frames, so such fields would win at any price."""
    costly = {"search.num_simulations", "network.width", "optimiser.updates_per_iteration", "optimiser.batch_size"}
    assert costly.isdisjoint(row.field for row in space.space(make()))


def test_found_numbers_are_short_and_own_values_stay_as_they_are():
    config = presets.hex_any(4)  # whose exploration is 0.15625
    own = space.own_values(config, space.space(config))
    assert space.with_values(config, own) == config
    found = space.with_values(config, own | {"optimiser.learning_rate": 0.0012345678, "replay.end_weight": 7})
    assert (found.optimiser.learning_rate, found.replay.end_weight) == (0.00123, 7)


def test_a_range_is_widened_to_the_users_own_value():
    config = presets.hex_any(4)
    far = replace(config, optimiser=replace(config.optimiser, weight_decay=0.5, reward_weight=0.0))
    rows = {row.field: row for row in space.space(far)}
    assert rows["optimiser.weight_decay"].high == 0.5
    assert (rows["optimiser.reward_weight"].low, rows["optimiser.reward_weight"].log) == (0.0, False)


def test_fields_without_effect_are_left_out():
    fields = {row.field for row in space.space(replace(presets.hex_any(4), model="rules"))}
    assert "targets.unroll_steps" not in fields and "search.value_scale" in fields


def test_fields_are_chosen_by_flag_or_name_and_a_wrong_one_is_named():
    config = presets.hex_any(4)
    chosen = space.space(config, ["optimiser.learning-rate", "search.value_scale"])
    assert [row.field for row in chosen] == ["search.value_scale", "optimiser.learning_rate"]
    with pytest.raises(ValueError, match=r"no range for network\.width; choose of .*optimiser\.learning_rate"):
        space.space(config, ["network.width"])


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({"network.file": "strangers.py"}, "changes network.file, which has no range"),
        ({"env": "strangers.py"}, "changes env, which has no range"),
        ({"optimiser.batch_size": 8}, "changes optimiser.batch_size, which has no range"),
        ({"none.such": 1.0}, "changes none.such, which has no range"),
        (
            {"optimiser.learning_rate": "strangers.py"},
            "has strangers.py for optimiser.learning_rate, which is no number",
        ),
        ({"optimiser.learning_rate": None}, "has None for optimiser.learning_rate, which is no number"),
    ],
)
def test_a_trial_changes_numbers_with_a_range_alone(values, sentence):
    """A study is a file that may come from a stranger; a config that names a Python file runs it."""
    with pytest.raises(ValueError, match=sentence):
        space.with_values(presets.hex_any(4), values)
