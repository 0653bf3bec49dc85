"""Checks whether a config can be run or resumed: each field by itself, then combinations of fields."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from muzero_jax.config.config import Config
from muzero_jax.config.fields import Field, check_fields, fields_of, names, value_at
from muzero_jax.own import python_file
from muzero_jax.own.faults import shown


def validate(config: Config) -> Config:
    """Returns the config if it can be run; else ValueError, which names the flag to change."""
    check_fields(config)
    if problem := next(chain(_problems_of_sizes(config), _problems_of_parts(config)), None):
        raise ValueError(problem)
    return config


def _problems_of_sizes(config: Config) -> Iterator[str]:
    """A sentence for each impossible combination of budgets and sizes."""
    length = config.replay.replay_length
    rollout = config.self_play.rollout_length
    if all(getattr(config, name) is None for name in names(Config, "budget")):
        yield "the run has no budget and would never end; give --minutes, --frames, --updates or --flops"
    if config.offline and config.frames:
        yield "--frames counts moves of self-play, and --offline plays no games; give --minutes or --updates"
    if length % rollout:
        nearest = max(rollout, length // rollout * rollout)
        multiple = f"a multiple of --self-play.rollout-length {rollout}"
        yield f"--replay.replay-length {length} must be {multiple}; use {nearest}"
    if length < config.window_length:
        window = f"unroll_steps + td_steps + 1 = {config.window_length} frames"
        yield f"--replay.replay-length {length} is less than a window of {window}; raise it or lower --targets.td-steps"
    if length * config.self_play.num_envs * config.replay.end_weight >= 2**31:
        product = "--replay.replay-length times --self-play.num-envs times --replay.end-weight"
        yield f"{product} must stay below 2^31, where the replay's counters end; lower one of them"
    if length < config.replay.min_frames:
        yield f"--replay.min-frames {config.replay.min_frames} exceeds --replay.replay-length {length}"


def _problems_of_parts(config: Config) -> Iterator[str]:
    """A sentence for each impossible combination of networks, algorithms, boards and losses."""
    network = config.network
    algorithm = config.algorithm
    optimiser = config.optimiser
    if network.compute_dtype == "float16" and optimiser.micro_batch_size:
        yield "--optimiser.micro-batch-size does not go with float16, which scales a whole batch's loss; leave it out"
    if config.compares_embeddings and optimiser.micro_batch_size:
        yield "--optimiser.micro-batch-size does not go with --optimiser.consistency-weight, which needs whole batches"
    if config.board_sizes and (network.kind != "fully_convolutional" or network.file):
        yield "--board-sizes needs weights that fit every board; add --network.kind fully_convolutional"
    if config.board_sizes and config.board_size not in config.board_sizes:
        largest = f"give {max(config.board_sizes)}, the largest of them"
        yield f"--board-size {config.board_size} is not one of --board-sizes; {largest}"
    if config.board_sizes and config.compares_embeddings:
        yield "--optimiser.consistency-weight projects boards of one size; leave it out with --board-sizes"
    if config.board_sizes and config.offline:
        yield "--board-sizes learns from the games that it plays; leave it out with --offline"
    if network.file and not python_file.is_path(network.file):
        yield f"--network {shown(network.file)} must be a Python file (.py) that defines make_model"
    if network.options and not network.file:
        yield "--network.options are those of a network of your own; name its file with --network FILE too"
    for file in algorithm.own_files:
        if not python_file.is_path(file):
            yield f"--algorithm {shown(file)} must be a Python file (.py) that defines change"
    file_names = [Path(file).name for file in algorithm.own_files]
    if twice := [name for name in file_names if file_names.count(name) > 1]:
        yield f"--algorithm names two files {twice[0]}, which an exported agent could not tell apart; rename one"
    if algorithm.options and not algorithm.files:
        yield "--algorithm.options are those of an algorithm of your own; name its file with --algorithm FILE"
    if network.imagines_observations and config.learns_dynamics and not optimiser.reconstruction_weight:
        weight = "--optimiser.reconstruction-weight"
        yield f"--network.kind {network.kind} learns to imagine only from {weight}; set that above 0 (presets use 10)"
    if config.self_play.starts in ("archive", "regret") and config.self_play.start_share == 1:
        yield "--self-play.start-share 1 leaves no game from the beginning, and an archive drifts to the ends; lower it"
    if config.model == "none" and config.search.policy != "none":
        yield "--model none searches nowhere, so self-play cannot either; add --search.policy none"
    if config.search.policy == "none" and (config.offline or config.reanalyze_fraction):
        lacks = "--search.policy none learns no policies of a search, as Reanalyze and --offline do"
        yield f"{lacks}; leave one out"
    if config.search.policy == "none" and config.self_play.full_search_share < 1:
        yield "--self-play.full-search-share mixes full and cheap searches, and --search.policy none has none"
    if optimiser.advantage_weight and config.search.policy != "none":
        yield "--optimiser.advantage-weight needs predicted values of the actions; add --search.policy none"
    if network.chance_codes == 1:
        yield "--network.chance-codes is 1, but must be 0 (none), or 2 to 4096"
    if network.chance_codes and config.model != "learned":
        yield f"--network.chance-codes are for --model learned, and --model {config.model} learns none; leave one out"
    if optimiser.target_period and optimiser.target_decay:
        yield "--optimiser.target-period and --optimiser.target-decay are two ways to one target network; leave one out"
    if (optimiser.target_period or optimiser.target_decay) and not config.reanalyze_fraction:
        yield "only Reanalyze uses a target network; add --replay.reanalyze-fraction, say 0.5"


def check_resumable(config: Config, made_with: Config) -> None:
    """Raises ValueError, which names the flag, if a run made with one config cannot continue with another.

    Games, buffer and weights of a checkpoint depend on fixed fields. The buffer is written one rollout at a time and
    holds discounts, so another rollout length or discount would silently mix games.
    """
    for field in fields_of(Config):
        now, then = value_at(config, field.name), value_at(made_with, field.name)
        if field.fact.fixed and now != then or field.fact.switch and _is_on(field, config) != _is_on(field, made_with):
            raise ValueError(
                f"the run to resume was made with {field.flag} {then}, so it cannot continue with {now}; leave "
                f"{field.flag} out, or start another run with another --run-dir"
            )
    scaled = [each.network.compute_dtype == "float16" for each in (config, made_with)]
    if scaled[0] != scaled[1]:
        raise ValueError(
            f"the run to resume was made with --network.compute-dtype {made_with.network.compute_dtype}; float16 "
            "keeps a scale of the loss that others do not have, so leave the flag out"
        )


def _is_on(field: Field, config: Config) -> bool:
    """Whether a switch is on, by default off; Reanalyze's None means another value in offline runs."""
    if field.name == "replay.reanalyze_fraction":
        return config.reanalyze_fraction > 0
    return value_at(config, field.name) not in (field.default, None, 0)
