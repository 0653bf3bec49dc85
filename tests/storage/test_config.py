"""Configs are values: hashable, checked with errors that name the flag, and read back from JSON unchanged."""

import copy
import json
import re
import shlex
import typing

import pytest
from beartype.door import is_bearable

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.parser import flags_of
from muzero_jax.config import session
from muzero_jax.config.config import Config, with_values
from muzero_jax.config.config_file import from_json, load, to_json
from muzero_jax.config.fields import differing, fields_of
from muzero_jax.config.session import Session, flags_to_resume
from muzero_jax.config.validation import check_resumable, validate


def with_field(path, value, config=None):
    """The config with one field replaced, named as on the command line: `group.field`."""
    return with_values(config or Config(), {path: value})


def another_value(field):
    """A value of a field's type that is not its default."""
    candidates = [*typing.get_args(field.kind), 8, 6, 0.625, True, False, "another", (7, 8), ("a=1",)]
    return next(x for x in candidates if is_bearable(x, field.hint) and x != field.default)


SIZES = {
    "board_sizes": (5, 7),
    "board_size": 7,
    "network.kind": "fully_convolutional",
    "optimiser.reconstruction_weight": 1.0,
}
"""A run of several boards."""
FIELDS = {field.name: field for field in fields_of(Config)}


def test_learning_waits_for_a_whole_window_and_for_min_frames():
    """K + n + 1 = 11 frames in rollouts of 4 take 3 iterations; 13 frames take 4."""
    config = with_field("targets.td_steps", 5, with_field("self_play.rollout_length", 4))
    assert (config.targets.unroll_steps, config.window_length) == (5, 11)
    impatient, patient = (with_field("replay.min_frames", frames, config) for frames in (1, 13))
    assert (impatient.frames_to_learn, impatient.iterations_to_learn) == (11, 3)
    assert (patient.frames_to_learn, patient.iterations_to_learn) == (13, 4)


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_every_field_survives_json_and_is_a_flag():
    for name, field in FIELDS.items():
        config = with_field(name, another_value(field))
        assert from_json(to_json(config)) == config != Config(), name
        assert hash(from_json(to_json(config))) == hash(config)
        (words,) = differing(config, Config())
        off = re.sub(r"([\w-]+)$", r"no-\1", field.flag) if "." in name else f"--no-{field.flag[2:]}"
        assert words.split()[0] in (field.flag, off)
    values = json.loads(to_json(with_field("search.num_simulations", 48)))
    assert values["search"]["num_simulations"] == 48 and values["evaluation"]["mcts_simulations"] == [100, 1000]


def test_a_config_of_an_older_version_takes_defaults_and_drops_removed_fields():
    assert from_json('{"seed": 3, "network": {"width": 32}}') == with_field("network.width", 32, Config(seed=3))


@pytest.mark.parametrize(
    "content, problem",
    [
        (b'{"network": {"widht": 3}}', "a field 'widht' (did you mean width?)"),
        (b'{"network": {"width": true}}', "--network.width is True"),
        (b'{"evaluation": {"mcts_simulations": [8, 0]}}', "--evaluation.mcts-simulations is [8, 0]"),
        (b'{"minutes": NaN}', "--minutes is nan"),
        (b'{"search": 3}', "--search is 3"),
        (b"[1, 2]", "it is [1, 2]"),
        (b'{"env": "h\xffx"}', "not text in UTF-8"),
        (b'{"env": "hex"', "not JSON"),
    ],
)
def test_an_invalid_config_file_is_refused_and_file_and_field_are_named(tmp_path, content, problem):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{tmp_path / 'config.json'} .*{re.escape(problem)}"):
        load(tmp_path)


# --- validation -------------------------------------------------------------------------------------------------------


def unchecked(path, value):
    """A config with a value that its type does not allow, which tests otherwise refuse."""
    config = Config()
    group, _, name = path.rpartition(".")
    record = copy.copy(getattr(config, group)) if group else config
    object.__setattr__(record, name, value)
    if group:
        object.__setattr__(config, group, record)
    return config


@pytest.mark.parametrize(
    "path, value",
    [
        ("network.options", ("a-b=1",)),
        ("network.kind", "cnn"),
        ("targets.discount", 0.0),
        ("optimiser.target_decay", 1.0),
        ("optimiser.learning_rate", float("nan")),
        ("evaluation.mcts_simulations", (100, 0)),
        ("seed", 2**32),
    ],
)
def test_a_field_out_of_range_is_refused_with_its_flag_and_its_value(path, value):
    with pytest.raises(ValueError, match=re.escape(f"{FIELDS[path].flag} is {value}, but must be ")):
        validate(unchecked(path, value))


def test_the_ends_of_an_interval_are_allowed():
    config = Config()
    assert validate(config) is config
    for path, value in [("targets.td_lambda", 0.0), ("targets.td_lambda", 1.0), ("seed", 2**32 - 1)]:
        assert validate(with_field(path, value))


@pytest.mark.parametrize(
    "wrong, flag, right",
    [
        ({"self_play.rollout_length": 24}, "--replay.replay-length 512", {"replay.replay_length": 504}),
        ({"replay.min_frames": 1, "replay.replay_length": 32}, "--replay.replay-length 32", {"targets.td_steps": 20}),
        ({"replay.min_frames": 513}, "--replay.min-frames 513", {"replay.replay_length": 1024}),
        ({"network.kind": "observation"}, "--optimiser.reconstruction-weight", {"network.file": "/net.py"}),
        ({"network.options": ("width=8", "name=x=y")}, "--network FILE", {"network.file": "/net.py"}),
        ({"algorithm.options": ("width=8",)}, "--algorithm FILE", {"algorithm.files": ("/mine.py",)}),
        ({"network.chance_codes": 8, "model": "rules"}, "--network.chance-codes", {"model": "learned"}),
        (
            {"network.compute_dtype": "float16", "optimiser.micro_batch_size": 8},
            "--optimiser.micro-batch-size",
            {"optimiser.micro_batch_size": None},
        ),
        (
            {"optimiser.consistency_weight": 2.0, "optimiser.micro_batch_size": 8},
            "--optimiser.micro-batch-size",
            {"optimiser.micro_batch_size": None},
        ),
        ({"optimiser.target_period": 8}, "--replay.reanalyze-fraction", {"replay.reanalyze_fraction": 0.5}),
        ({"minutes": None}, "--minutes", {"frames": 8}),
        ({"offline": "/runs/x", "frames": 8}, "--offline", {"frames": None}),
        (SIZES | {"board_size": 9}, "--board-size 9", {"board_size": 7}),
        (SIZES | {"network.kind": "tower"}, "--network.kind", {"network.kind": "fully_convolutional"}),
        (SIZES | {"offline": "/runs/x"}, "--offline", {"offline": None}),
        (SIZES | {"optimiser.consistency_weight": 1.0}, "--optimiser.consis", {"optimiser.consistency_weight": 0.0}),
    ],
)
def test_fields_that_do_not_go_together_are_refused_and_the_flag_is_named(wrong, flag, right):
    with pytest.raises(ValueError, match=flag):
        validate(with_values(Config(), wrong))
    assert validate(with_values(Config(), wrong | right))


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, flag",
    [
        ({"checkpoint_minutes": -1.0}, "--checkpoint-minutes is -1.0"),
        ({"distributed": True}, "--run-dir"),
        ({"distributed": True, "run_dir": "x", "profile": True}, "--profile"),
        ({"config": "x.json", "resume": True}, "--config"),
        ({"resume": True, "overwrite": True}, "--overwrite"),
        ({"autotune": True, "resume": True}, "--autotune"),
    ],
)
def test_an_invalid_session_is_refused_and_the_flag_is_named(given, flag):
    assert session.validate_session(Session()) == Session()
    with pytest.raises(ValueError, match=flag):
        session.validate_session(Session(**given))


def test_the_flags_to_resume_give_the_same_session_without_flags_for_one_call():
    lasting = {"device": "cpu", "devices": 2, "checkpoint_minutes": 0.5, "tensorboard": False}
    flags = flags_to_resume(Session(run_dir="x", overwrite=True, autotune=True, profile=True, **lasting))
    assert parser.convert(Session, parser.split(shlex.split(flags), Session)) == Session(resume=True, **lasting)


# --- facts ------------------------------------------------------------------------------------------------------------


def test_every_flag_has_a_help_text():
    assert [flag.name for record in (Config, Session) for flag in flags_of(record) if not flag.sentence] == []


def test_fixed_fields_cannot_change_on_resume():
    for field in FIELDS.values():
        if field.fact.fixed:
            with pytest.raises(ValueError, match=f"{field.flag} "):
                check_resumable(with_field(field.name, another_value(field)), Config())


@pytest.mark.parametrize(
    "name, values",
    [
        ("replay.priority_exponent", (0.5, 1.0)),
        ("replay.reanalyze_fraction", (0.25, 1.0)),
        ("optimiser.target_period", (3, 9)),
        ("optimiser.target_decay", (0.9, 0.5)),
    ],
)
def test_on_resume_an_option_stays_on_or_off_and_its_value_may_change(name, values):
    off, on, other = (with_field(name, value) for value in (FIELDS[name].default, *values))
    check_resumable(on, other)
    check_resumable(off, off)
    for now, then in ((off, on), (on, off)):
        with pytest.raises(ValueError, match=FIELDS[name].flag):
            check_resumable(now, then)


def test_reanalyze_is_on_offline_unless_it_is_turned_off():
    none, half, zero = (with_field("replay.reanalyze_fraction", x, Config(offline="/runs/x")) for x in (None, 0.5, 0.0))
    check_resumable(half, none)
    with pytest.raises(ValueError, match="--replay.reanalyze-fraction"):
        check_resumable(zero, none)
