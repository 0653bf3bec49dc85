"""Configs are values: frozen, hashable, checked in sentences that name the flag, and read back from JSON unchanged."""

import dataclasses
import json
import re
import typing

import pytest
from beartype.door import is_bearable

from muzero_jax.apps.commands.parser import flags_of
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config, from_json, load, to_json
from muzero_jax.storage.fields import differing, fields_of
from muzero_jax.storage.validation import check_resumable, validate


def with_field(path, value, config=None):
    """The config with one field replaced, named as on the command line: `group.field`."""
    config = config or Config()
    name, _, rest = path.partition(".")
    return dataclasses.replace(config, **{name: with_field(rest, value, getattr(config, name)) if rest else value})


def another_value(field):
    """A value of a field's type that is not its default."""
    candidates = [*typing.get_args(field.kind), 8, 6, 0.625, True, False, "another", (7, 8), ("a=1",)]
    return next(x for x in candidates if is_bearable(x, field.hint) and x != field.default)


FIELDS = [pytest.param(field, id=field.name) for field in fields_of(Config)]


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().network.width = 1  # type: ignore


def test_equal_configs_are_one_key_and_unlike_ones_are_two():
    """They are static arguments of compiled functions."""
    assert len({Config(), Config(), with_field("network.width", 64)}) == 2


def test_window_length_is_unroll_steps_and_td_steps_and_the_root():
    config = with_field("targets.td_steps", 7, with_field("targets.unroll_steps", 3))
    assert config.window_length == 11


def test_learning_waits_for_whole_windows_and_for_what_the_config_asks():
    """K + n + 1 = 11 frames in rollouts of 4 take 3 iterations; 13 frames take 4."""
    config = with_field("targets.td_steps", 5, with_field("self_play.rollout_length", 4))
    assert config.targets.unroll_steps == 5
    impatient, patient = (with_field("replay.min_frames", frames, config) for frames in (1, 13))
    assert (impatient.frames_to_learn, impatient.iterations_to_learn) == (11, 3)
    assert (patient.frames_to_learn, patient.iterations_to_learn) == (13, 4)


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_survives_json(field):
    config = with_field(field.name, another_value(field))
    assert from_json(to_json(config)) == config != Config()
    assert hash(from_json(to_json(config))) == hash(config)
    assert [words.split()[0] for words in differing(config, Config())] in ([field.flag], [_off(field.flag)])


def _off(flag):
    return re.sub(r"([\w-]+)$", r"no-\1", flag) if "." in flag else f"--no-{flag[2:]}"


def test_json_is_an_object_by_group_that_people_can_read():
    values = json.loads(to_json(with_field("search.num_simulations", 48)))
    assert values["search"]["num_simulations"] == 48
    assert values["evaluation"]["mcts_simulations"] == [100, 1000]
    assert to_json(Config()).count("\n") > 50


def test_fields_that_an_older_version_did_not_write_take_their_defaults():
    assert from_json('{"seed": 3, "network": {"width": 32}}') == with_field("network.width", 32, Config(seed=3))


def test_a_number_that_only_older_versions_knew_is_read_and_dropped():
    """Agents and runs from before 26 November 2026 have it."""
    assert from_json('{"optimiser": {"decay_updates": 77, "batch_size": 8}}') == with_field("optimiser.batch_size", 8)


@pytest.mark.parametrize(
    "content, problem",
    [
        (b'{"sead": 3}', "a field 'sead' (did you mean seed?)"),
        (b'{"network": {"widht": 3}}', "a field 'widht' (did you mean width?)"),
        (b'{"network": {"width": 1.5}}', "--network.width is 1.5"),
        (b'{"network": {"width": true}}', "--network.width is True"),
        (b'{"network": {"kind": "cnn"}}', "--network.kind is cnn, but must be one of mlp, observation, tower"),
        (b'{"evaluation": {"mcts_simulations": 8}}', "--evaluation.mcts-simulations is 8"),
        (b'{"evaluation": {"mcts_simulations": [8, 0]}}', "--evaluation.mcts-simulations is [8, 0]"),
        (b'{"minutes": Infinity}', "--minutes is inf"),
        (b'{"minutes": NaN}', "--minutes is nan"),
        (b'{"search": 3}', "--search is 3"),
        (b"[1, 2]", "it is [1, 2]"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"env": "h\xffx"}', "not text in UTF-8"),
        (b'{"env": "hex"', "not JSON"),
        (b'{"env": %s}' % json.dumps(list(range(999))).encode(), "--env is [0, 1"),
    ],
)
def test_a_config_that_is_none_is_one_short_sentence_that_names_the_file(tmp_path, content, problem):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        load(tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'config.json'} is not a config of ours: ")
    assert "\n" not in message and len(message) < 500


# --- validation -------------------------------------------------------------------------------------------------------


def test_the_default_config_is_valid_and_returned_as_it_is():
    config = Config()
    assert validate(config) is config


@pytest.mark.parametrize(
    "path, value",
    [
        ("network.width", 0),
        ("network.num_blocks", 1001),
        ("network.chance_codes", 1),
        ("network.options", ("a-b=1",)),
        ("search.num_simulations", 100_001),
        ("self_play.num_envs", 2**31),
        ("self_play.exploration", 1.5),
        ("targets.discount", 0.0),
        ("optimiser.target_decay", 1.0),
        ("optimiser.learning_rate", float("nan")),
        ("optimiser.weight_decay", -1e-4),
        ("evaluation.mcts_simulations", (100, 0)),
        ("evaluation.games", 33),
        ("minutes", 0.0),
        ("seed", -1),
        ("seed", 2**32),
    ],
)
def test_a_field_out_of_range_is_refused_in_one_sentence_that_names_its_flag_and_value(path, value):
    with pytest.raises(ValueError) as error:
        validate(with_field(path, value))
    message = str(error.value)
    assert message.startswith(f"--{path.replace('_', '-')} is {value}, but ") and "\n" not in message


@pytest.mark.parametrize("path, value", [("targets.td_lambda", 0.0), ("targets.td_lambda", 1.0), ("seed", 2**32 - 1)])
def test_the_ends_of_an_interval_are_in_it(path, value):
    assert validate(with_field(path, value))


@pytest.mark.parametrize(
    "wrong, flag, right",
    [
        ({"self_play.rollout_length": 24}, "--replay.replay-length 512", {"replay.replay_length": 504}),
        ({"replay.min_frames": 1, "replay.replay_length": 32}, "--replay.replay-length 32", {"targets.td_steps": 20}),
        ({"replay.min_frames": 513}, "--replay.min-frames 513", {"replay.replay_length": 1024}),
        ({"network.kind": "observation"}, "--optimiser.reconstruction-weight", {"network.file": "/net.py"}),
        ({"network.options": ("width=8", "name=x=y")}, "--network FILE", {"network.file": "/net.py"}),
        ({"algorithm.options": ("width=8",)}, "--algorithm FILE", {"algorithm.file": "/mine.py"}),
        ({"network.chance_codes": 8, "model": "rules"}, "--network.chance-codes", {"model": "learned"}),
        (
            {"network.compute_dtype": "float16", "optimiser.micro_batch_size": 8},
            "--optimiser.micro-batch-size",
            {"optimiser.micro_batch_size": None},
        ),
        ({"optimiser.target_period": 8}, "--replay.reanalyze-fraction", {"replay.reanalyze_fraction": 0.5}),
        ({"minutes": None}, "--minutes", {"frames": 8}),
        ({"offline": "/runs/x", "frames": 8}, "--offline", {"frames": None}),
    ],
)
def test_fields_that_do_not_go_together_are_refused_and_the_flag_is_named(wrong, flag, right):
    config = Config()
    for path, value in wrong.items():
        config = with_field(path, value, config)
    with pytest.raises(ValueError, match=flag):
        validate(config)
    for path, value in right.items():
        config = with_field(path, value, config)
    assert validate(config)


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [Config, Session])
def test_every_flag_has_a_help_text(record):
    assert [flag.name for flag in flags_of(record) if not flag.sentence] == []


@pytest.mark.parametrize("field", [field for field in FIELDS if field.values[0].fact.fixed])
def test_what_a_checkpoint_is_made_with_cannot_change(field):
    with pytest.raises(ValueError, match=f"{field.flag} "):
        check_resumable(with_field(field.name, another_value(field)), Config())


def test_a_switch_stays_as_it_is_and_its_value_may_change():
    off, on, stronger = (with_field("replay.priority_exponent", alpha) for alpha in (0.0, 0.5, 0.9))
    check_resumable(stronger, on)
    for now, then in ((off, on), (on, off)):
        with pytest.raises(ValueError, match="--replay.priority-exponent"):
            check_resumable(now, then)


def test_reanalyze_is_on_offline_unless_it_is_turned_off():
    none, half, zero = (with_field("replay.reanalyze_fraction", x, Config(offline="/runs/x")) for x in (None, 0.5, 0.0))
    check_resumable(half, none)
    with pytest.raises(ValueError, match="--replay.reanalyze-fraction"):
        check_resumable(zero, none)
