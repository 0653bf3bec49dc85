"""Configs are values: frozen, hashable, checked in sentences that name the flag, and read back from JSON unchanged."""

import ast
import dataclasses
import inspect
import itertools
import json
import re
import typing
from pathlib import Path

import pytest
from beartype.door import is_bearable

from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config, from_json, load, to_json
from muzero_jax.storage.validation import validate


def with_field(path, value, config=None):
    """The config with one field replaced, named as on the command line: `group.field`."""
    config = config or Config()
    name, _, rest = path.partition(".")
    return dataclasses.replace(config, **{name: with_field(rest, value, getattr(config, name)) if rest else value})


def another_value_of_every_field(cls=Config, prefix=""):
    """(path, value) for every field, with a value of its type that is not its default."""
    for name, kind in typing.get_type_hints(cls).items():
        if dataclasses.is_dataclass(kind):
            yield from another_value_of_every_field(kind, f"{prefix}{name}.")
        else:
            default = getattr(cls(), name)
            candidates = [*typing.get_args(kind), 8, 6, 0.625, True, False, "another", (7, 8), ("a=1",)]
            yield prefix + name, next(x for x in candidates if is_bearable(x, kind) and x != default)


# --- values -----------------------------------------------------------------------------------------------------------


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().seed = 1  # type: ignore
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().network.width = 1  # type: ignore


def test_equal_configs_are_one_key_and_unlike_ones_are_two():
    """They are static arguments of compiled functions."""
    assert len({Config(), Config(), with_field("network.width", 64)}) == 2


def test_window_length_is_unroll_steps_and_td_steps_and_the_root():
    config = with_field("targets.td_steps", 7, with_field("targets.unroll_steps", 3))
    assert config.window_length == 11


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path, value", list(another_value_of_every_field()))
def test_every_field_survives_json(path, value):
    config = with_field(path, value)
    assert from_json(to_json(config)) == config != Config()
    assert hash(from_json(to_json(config))) == hash(config)


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


@pytest.mark.parametrize("text", ['{"sead": 3}', '{"network": {"sead": 3}}'], ids=["top", "nested"])
def test_unknown_fields_are_named(text):
    with pytest.raises(ValueError, match="'sead'"):
        from_json(text)


# --- validation -------------------------------------------------------------------------------------------------------


def test_the_default_config_is_valid_and_returned_as_it_is():
    config = Config()
    assert validate(config) is config


@pytest.mark.parametrize(
    "path, value",
    [
        ("network.width", 0),
        ("network.num_bins", -1),
        ("search.num_simulations", 0),
        ("search.max_num_considered_actions", 0),
        ("self_play.num_envs", 0),
        ("self_play.rollout_length", 0),
        ("self_play.exploration", 1.5),
        ("search.dirichlet_fraction", -0.1),
        ("replay.replay_length", 0),
        ("replay.end_weight", 0),
        ("replay.reanalyze_fraction", 2.0),
        ("targets.unroll_steps", 0),
        ("targets.td_steps", 0),
        ("targets.td_lambda", 1.01),
        ("targets.discount", -0.5),
        ("optimiser.batch_size", 0),
        ("optimiser.updates_per_iteration", -3),
        ("evaluation.num_simulations", 0),
        ("iterations_per_chunk", 0),
        ("minutes", 0.0),
        ("max_iterations", 0),
        ("self_play.num_envs", 2**31),
        ("optimiser.warmup_updates", 2**31),
        ("seed", -1),
        ("seed", 2**32),
        ("optimiser.learning_rate", float("nan")),
        ("optimiser.weight_decay", -1e-4),
        ("optimiser.micro_batch_size", 0),
        ("evaluation.interval_minutes", -1.0),
        ("evaluation.mcts_simulations", (100, 0)),
        ("evaluation.games", 33),
        ("evaluation.final_games", 33),
        ("network.options", ("width",)),
        ("network.options", ("a-b=1",)),
    ],
)
def test_a_field_out_of_range_is_refused_in_one_sentence_that_names_its_flag_and_value(path, value):
    with pytest.raises(ValueError) as error:
        validate(with_field(path, value))
    message = str(error.value)
    assert message.startswith(f"--{path.replace('_', '-')} is {value}, but ") and "\n" not in message


@pytest.mark.parametrize(
    "text, sentence",
    [
        ('{"network": {"width": 1.5}}', "--network.width is 1.5, but must be of type int"),
        ('{"network": {"width": true}}', "--network.width is True, but must be of type int"),
        (
            '{"network": {"kind": "cnn"}}',
            "kind is cnn, but must be one of mlp, observation, tower, attention",
        ),
        ('{"evaluation": {"mcts_simulations": 8}}', "--evaluation.mcts-simulations is 8, but must be a list"),
        ('{"evaluation": {"mcts_simulations": [8, 0]}}', "is [8, 0], but each must be positive"),
        ('{"minutes": 0}', "--minutes is 0, but must be positive"),
        ('{"minutes": Infinity}', "--minutes is inf, but must be finite"),
        ('{"init_from": " "}', "--init-from is ' ', but must not be empty"),
        ('{"network": {"width": 2000000000}}', "--network.width is 2000000000, but must be at most 65536"),
        ('{"network": {"num_blocks": 1001}}', "--network.num-blocks is 1001, but must be at most 1000"),
        ('{"network": {"num_bins": 100001}}', "--network.num-bins is 100001, but must be at most 100000"),
        ('{"max_iterations": "many"}', "--max-iterations is many, but must be of type int"),
        ('{"search": 3}', "it holds 3 where it should hold the fields of SearchConfig"),
    ],
)
def test_json_that_holds_what_a_field_does_not_allow_is_refused(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        from_json(text)


def test_the_config_of_an_older_version_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text('{"env": "hex", "resume": false}')
    with pytest.raises(ValueError, match="config.json is not a config of ours: it has a field 'resume' that this") as e:
        load(tmp_path)
    assert "another version made it; choose another folder (--run-dir" in str(e.value)
    assert "or restore or delete this one yourself" in str(e.value)


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"network": ' * 100_000, "it is nested too deeply"),
        (b'{"env": "h\xffx"}', "it is not text in UTF-8"),
        ("{}".encode("utf-16"), "it is not text in UTF-8"),
        (b"", "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
        (b'{"env": "hex"', "it is not JSON (Expecting ',' delimiter: line 1 column 14 (char 13))"),
        (b"[1, 2]", "it holds [1, 2] where it should hold the fields of Config"),
        (b"null", "it holds None where it should hold the fields of Config"),
        (b'{"minutes": NaN}', "--minutes is nan, but must be positive"),
        (b'{"env": %s}' % json.dumps(list(range(999))).encode(), "must be of type str"),
        (b'{"%s": 1}' % (b"x" * 9999), "it has a field 'xx"),
    ],
)
def test_a_damaged_config_is_one_short_sentence_that_names_the_file_and_a_remedy(tmp_path, content, problem):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError) as error:
        load(tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'config.json'} is not a config of ours: ") and problem in message
    assert message.endswith("or restore or delete this one yourself")
    assert "\n" not in message and len(message) < 500


@pytest.mark.parametrize(
    "path, value", [("targets.td_lambda", 0.0), ("targets.td_lambda", 1.0), ("network.num_bins", 1)]
)
def test_the_ends_of_an_interval_are_in_it(path, value):
    assert validate(with_field(path, value))


def test_a_ring_that_is_no_multiple_of_the_rollout_is_refused_with_one_that_is():
    config = with_field("self_play.rollout_length", 24)
    with pytest.raises(ValueError, match=r"--replay\.replay-length 512 .* --self-play\.rollout-length 24; use 504"):
        validate(config)
    assert validate(with_field("replay.replay_length", 504, config))


def test_a_ring_shorter_than_a_window_is_refused():
    config = with_field("replay.min_frames", 1, with_field("replay.replay_length", 32))
    with pytest.raises(ValueError, match=r"--replay\.replay-length 32 .* = 38 frames"):
        validate(config)
    assert validate(with_field("replay.replay_length", 40, config))


def test_a_network_that_could_not_learn_to_imagine_is_refused():
    config = with_field("network.kind", "observation")
    with pytest.raises(ValueError, match="--optimiser.reconstruction-weight"):
        validate(config)
    assert validate(with_field("optimiser.reconstruction_weight", 10.0, config))


def test_a_network_of_ones_own_learns_as_its_file_says():
    """It need not imagine, whatever kind the preset names; and its options are no one else's."""
    observation = with_field("network.kind", "observation")
    assert validate(with_field("network.file", "/net.py", observation))
    own = with_field("network.options", ("width=8", "name=x=y"))
    with pytest.raises(ValueError, match="name its file with --network FILE too"):
        validate(own)
    assert validate(with_field("network.file", "/net.py", own))


@pytest.mark.parametrize("model", ["rules", "learned_outcomes", "learned_legality"])
def test_codes_of_chance_are_for_the_model_that_finds_them(model):
    config = with_field("network.chance_codes", 8, Config(model=model))
    with pytest.raises(ValueError, match=f"--model {model} finds none"):
        validate(config)
    assert validate(dataclasses.replace(config, model="learned"))
    with pytest.raises(ValueError, match="must be 0, or 2 to 4096"):
        validate(with_field("network.chance_codes", 1))


def test_parts_of_a_batch_whose_loss_is_scaled_as_a_whole_are_refused():
    config = with_field("network.compute_dtype", "float16", with_field("optimiser.micro_batch_size", 8))
    with pytest.raises(ValueError, match="--optimiser.micro-batch-size does not go with .* float16"):
        validate(config)


def test_waiting_for_more_frames_than_the_ring_holds_is_refused():
    with pytest.raises(ValueError, match=r"--replay\.min-frames 513 exceeds --replay\.replay-length 512"):
        validate(with_field("replay.min_frames", 513))


def test_odd_numbers_of_games_are_refused_because_openings_are_played_twice():
    with pytest.raises(ValueError, match="must be even: openings are played with both colours"):
        validate(with_field("evaluation.games", 33))


@pytest.mark.parametrize("record", [Config, Session])
def test_every_flag_has_a_help_text(record):
    """It is the string after a field's line; a group's is the docstring of its class."""
    module = ast.parse(Path(inspect.getfile(record)).read_text())
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    pairs = [pair for node in classes for pair in itertools.pairwise([*node.body, ast.Pass()])]
    fields = [(field.target.id, text) for field, text in pairs if isinstance(field, ast.AnnAssign)]
    groups = [name for name, kind in typing.get_type_hints(record).items() if dataclasses.is_dataclass(kind)]
    assert all(ast.get_docstring(node) for node in classes)
    assert {name for name, _ in fields} >= set(typing.get_type_hints(record))
    assert [name for name, text in fields if not isinstance(text, ast.Expr)] == groups


def test_learning_waits_for_whole_windows_and_for_what_the_config_asks():
    """K + n + 1 = 11 frames in rollouts of 4 take 3 iterations; 13 frames take 4."""
    config = with_field("targets.td_steps", 5, with_field("self_play.rollout_length", 4))
    assert config.targets.unroll_steps == 5
    impatient, patient = (with_field("replay.min_frames", frames, config) for frames in (1, 13))
    assert (impatient.frames_to_learn, impatient.iterations_to_learn) == (11, 3)
    assert (patient.frames_to_learn, patient.iterations_to_learn) == (13, 4)
