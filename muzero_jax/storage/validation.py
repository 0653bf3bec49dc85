"""Whether a run can be made of a config, or resumed with it: each field by itself, then those that go together."""

from muzero_jax.own import python_file
from muzero_jax.own.faults import shown
from muzero_jax.storage.config import IN_PYTHON, Config
from muzero_jax.storage.fields import Field, check_fields, fields_of, value_at


def validate(config: Config) -> Config:
    """The config itself, if a run can be made of it; else ValueError in one sentence that names the flag to change."""
    check_fields(config)
    if config.minutes is config.frames is config.updates is config.max_iterations is None:
        raise ValueError("the run has no budget and would never end; give --minutes, --frames or --updates")
    if config.offline and config.frames:
        raise ValueError("--frames counts moves of self-play, and --offline plays none; give --minutes or --updates")
    _check_replay(config)
    if config.network.compute_dtype == "float16" and config.optimiser.micro_batch_size:
        raise ValueError(
            "--optimiser.micro-batch-size does not go with --network.compute-dtype float16, whose loss is scaled for a "
            "whole batch; leave one of them out"
        )
    if config.network.file and not python_file.is_path(config.network.file):
        raise ValueError(f"--network {shown(config.network.file)} must be a Python file (.py) that defines make_model")
    if config.network.options and not config.network.file:
        raise ValueError("--network.options are those of a network of your own; name its file with --network FILE too")
    file = config.algorithm.file
    if file and file != IN_PYTHON and not python_file.is_path(file):
        raise ValueError(f"--algorithm {shown(file)} must be a Python file (.py) that defines change")
    if config.algorithm.options and not file:
        raise ValueError(
            "--algorithm.options are those of an algorithm of your own; name its file with --algorithm FILE"
        )
    if config.network.imagines_observations and not config.optimiser.reconstruction_weight:
        raise ValueError(
            f"--network.kind {config.network.kind} learns what to imagine from --optimiser.reconstruction-weight "
            "alone; set that above 0 (the presets use 10)"
        )
    if config.network.chance_codes == 1:
        raise ValueError("--network.chance-codes is 1, but must be 0 (none), or 2 to 4096")
    if config.network.chance_codes and config.model != "learned":
        raise ValueError(
            f"--network.chance-codes are codes that --model learned finds, and --model {config.model} finds none; "
            "leave one of them out"
        )
    if config.optimiser.target_period and config.optimiser.target_decay:
        raise ValueError(
            "--optimiser.target-period and --optimiser.target-decay are two ways for one target network to follow; "
            "leave one of them out"
        )
    if (config.optimiser.target_period or config.optimiser.target_decay) and not config.reanalyze_fraction:
        raise ValueError(
            "a target network is what Reanalyze searches with; add --replay.reanalyze-fraction, say 0.5, or leave "
            "--optimiser.target-period and --optimiser.target-decay out"
        )
    return config


def _check_replay(config: Config) -> None:
    """Refuses a buffer that does not go with rollouts, windows or its own counters."""
    length, rollout = config.replay.replay_length, config.self_play.rollout_length
    if length % rollout:
        nearest = max(rollout, length // rollout * rollout)
        raise ValueError(
            f"--replay.replay-length {length} must be a multiple of --self-play.rollout-length {rollout}; use {nearest}"
        )
    if length < config.window_length:
        raise ValueError(
            f"--replay.replay-length {length} is shorter than a window of unroll_steps + td_steps + 1 = "
            f"{config.window_length} frames; raise it or lower --targets.td-steps"
        )
    if length * config.self_play.num_envs * config.replay.end_weight >= 2**31:
        raise ValueError(
            "--replay.replay-length times --self-play.num-envs times --replay.end-weight must stay below 2^31, where "
            "the replay's counters end; lower one of them"
        )
    if length < config.replay.min_frames:
        raise ValueError(f"--replay.min-frames {config.replay.min_frames} exceeds --replay.replay-length {length}")


def check_resumable(config: Config, made_with: Config) -> None:
    """Raises ValueError, in one sentence that names the flag, if a run cannot go on with what the flags now say.

    Fixed fields decide games, buffer and weights of a checkpoint. A buffer is written a whole rollout at a time, and
    holds discounts, so another rollout length or discount would mix games without a word.
    """
    for field in fields_of(Config):
        now, then = value_at(config, field.name), value_at(made_with, field.name)
        if field.fact.fixed and now != then or field.fact.switch and _is_on(field, config) != _is_on(field, made_with):
            raise ValueError(
                f"the run to resume was made with {field.flag} {then}, so it cannot go on with {now}; leave "
                f"{field.flag} out, or start another run with another --run-dir"
            )
    scaled = [each.network.compute_dtype == "float16" for each in (config, made_with)]
    if scaled[0] != scaled[1]:
        raise ValueError(
            f"the run to resume was made with --network.compute-dtype {made_with.network.compute_dtype}; float16 "
            "keeps a scale of the loss that others do not have, so leave the flag out"
        )


def _is_on(field: Field, config: Config) -> bool:
    """Whether a switch is on: all are off by default, and Reanalyze goes by what None means for the run."""
    if field.name == "replay.reanalyze_fraction":
        return config.reanalyze_fraction > 0
    return value_at(config, field.name) not in (field.default, None, 0)
