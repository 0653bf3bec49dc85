"""What a config must fulfil before anything is made of it; every refusal is one sentence that names the flag."""

from typing import Any

Config = Any
"""A `config.Config`, which cannot be named here: `config` knows this module."""

_POSITIVE = (
    "network.width network.num_bins search.num_simulations search.max_num_considered_actions self_play.num_envs "
    "self_play.rollout_length replay.replay_length replay.end_weight targets.unroll_steps targets.td_steps "
    "optimiser.batch_size optimiser.updates_per_iteration optimiser.learning_rate optimiser.max_gradient_norm "
    "evaluation.num_simulations evaluation.games evaluation.final_games iterations_per_chunk minutes "
    "autotune_minutes optimiser.decay_updates search.dirichlet_alpha search.pb_c_base search.value_scale"
).split()
_NOT_NEGATIVE = (
    "network.num_blocks replay.min_frames optimiser.warmup_updates optimiser.weight_decay optimiser.reward_weight "
    "optimiser.value_weight optimiser.policy_weight optimiser.reconstruction_weight evaluation.interval_minutes "
    "evaluation.opening_plies checkpoint_minutes search.gumbel_scale search.temperature search.maxvisit_init "
    "search.pb_c_init"
).split()
_UNIT_INTERVAL = (
    "self_play.exploration search.dirichlet_fraction replay.reanalyze_fraction targets.td_lambda targets.discount"
).split()


def _flag(path: str) -> str:
    return "--" + path.replace("_", "-")


def _get(config: Config, path: str) -> Any:
    value: Any = config
    for part in path.split("."):
        value = getattr(value, part)
    return value


def validate(config: Config) -> Config:
    """The config itself, if a run can be made of it; else ValueError in one sentence that names the flag to change."""
    for path in _POSITIVE:
        if not _get(config, path) > 0:  # this form catches nan
            raise ValueError(f"{_flag(path)} is {_get(config, path)}, but must be positive")
    for path in _NOT_NEGATIVE:
        if not _get(config, path) >= 0:
            raise ValueError(f"{_flag(path)} is {_get(config, path)}, but must not be negative")
    for path in _UNIT_INTERVAL:
        if not 0 <= _get(config, path) <= 1:
            raise ValueError(f"{_flag(path)} is {_get(config, path)}, but must lie between 0 and 1")
    if not 0 <= config.seed < 2**32:
        raise ValueError(f"--seed is {config.seed}, but must lie between 0 and 2^32 - 1")
    optional = {
        "--max-iterations": config.max_iterations,
        "--devices": config.devices,
        "--optimiser.micro-batch-size": config.optimiser.micro_batch_size,
    }
    for flag, value in optional.items():
        if value is not None and value < 1:
            raise ValueError(f"{flag} is {value}, but must be positive")
    if config.search.max_children is not None and config.search.max_children < 2:
        raise ValueError(f"--search.max-children is {config.search.max_children}, but a search needs at least 2")
    if any(budget < 1 for budget in config.evaluation.mcts_simulations):
        raise ValueError(
            f"--evaluation.mcts-simulations is {config.evaluation.mcts_simulations}; each must be positive"
        )
    replay, rollout = config.replay.replay_length, config.self_play.rollout_length
    if replay % rollout:
        nearest = max(rollout, replay // rollout * rollout)
        raise ValueError(
            f"--replay.replay-length {replay} must be a multiple of --self-play.rollout-length {rollout}; use {nearest}"
        )
    if replay < config.window_length:
        raise ValueError(
            f"--replay.replay-length {replay} is shorter than a window of unroll_steps + td_steps + 1 = "
            f"{config.window_length} frames; raise it or lower --targets.td-steps"
        )
    if replay * config.self_play.num_envs * config.replay.end_weight >= 2**31:
        raise ValueError(
            "--replay.replay-length times --self-play.num-envs times --replay.end-weight must stay below 2^31, where "
            "the replay's counters end; lower one of them"
        )
    if replay < config.replay.min_frames:
        raise ValueError(f"--replay.min-frames {config.replay.min_frames} exceeds --replay.replay-length {replay}")
    if config.network.compute_dtype == "float16" and config.optimiser.micro_batch_size:
        raise ValueError(
            "--optimiser.micro-batch-size does not go with --network.compute-dtype float16, whose loss is scaled for a "
            "whole batch; leave one of them out"
        )
    if config.network.kind == "observation" and not config.optimiser.reconstruction_weight:
        raise ValueError(
            "--network.kind observation learns what to imagine from --optimiser.reconstruction-weight alone; "
            "set that above 0 (the presets use 10)"
        )
    if config.autotune and config.resume:
        raise ValueError(
            "--autotune chooses the sizes of a run that a checkpoint has fixed; leave it out with --resume"
        )
    if config.evaluation.games % 2 or config.evaluation.final_games % 2:
        raise ValueError(
            "--evaluation.games and --evaluation.final-games must be even: openings are played with both colours"
        )
    return config
