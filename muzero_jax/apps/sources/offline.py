"""Learning only from stored games: MuZero Unplugged (Schrittwieser et al. 2021, arXiv 2104.06294).

The replay buffer is filled once, from another run's checkpoint or from games in files, and no games are played after
that (`training.learn_iteration`). The buffer's sizes come from the source and replace those of the config. The run's
own checkpoints hold the buffer, so a resumed run does not need the source.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from muzero_jax.apps.sources import stored_games
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.fields import check_fields
from muzero_jax.games.game_files import read_games
from muzero_jax.own.files import from_home
from muzero_jax.storage.checkpoint import describe_replay, restore_replay
from muzero_jax.storage.run_directory import CHECKPOINTS, find_saved, holds_run
from muzero_jax.types import Environment, ReplayState

Fill = Callable[[ReplayState], ReplayState]
"""(shapes and shardings of the run's buffer) -> the source's buffer, placed on those devices."""


def begin(config: Config) -> Config:
    """The config that the flags of an offline run override; if the source is a run, with that run's discount."""
    source = _path(config)
    made_with = config_file.inspect(source) if holds_run(source) else config
    return replace(config, targets=replace(config.targets, discount=made_with.targets.discount))


def fit_to_source(config: Config, num_devices: int) -> Config:
    """The config with the buffer sizes of its source; unchanged if it has no source.

    Raises ValueError if the source holds no games, or games that do not fit the config.
    """
    if not config.offline:
        return config
    check_fields(config)
    source = _path(config)
    return _as_run(config, source) if holds_run(source) else _as_games(config, source, num_devices)


def open_source(config: Config, environment: Environment, say: Callable[[str], None]) -> Fill:
    """The function that fills the buffer. Games from files are already played through when it returns.

    Raises ValueError for an illegal move, a run without a checkpoint, or a run whose buffer lacks the game states that
    Reanalyze with the ground-truth model needs.
    """
    source = _path(config)
    return _open_run(config, source, say) if holds_run(source) else _open_games(config, source, environment, say)


def place(source: str) -> Path:
    """The path of a source; ValueError for a part of a run, such as a version, because only the run has the games."""
    path = from_home(source).absolute()
    if (saved := find_saved(path)) and saved.folder is not None:
        raise ValueError(f"--offline {source} is a part of a run, which has its games; name {saved.run_dir}")
    return path


def _path(config: Config) -> Path:
    assert config.offline is not None
    return place(config.offline)


def _with_sizes(config: Config, *, num_envs: int, replay_length: int, **self_play: Any) -> Config:
    return replace(
        config,
        self_play=replace(config.self_play, num_envs=num_envs, **self_play),
        replay=replace(config.replay, replay_length=replay_length, min_frames=0),
    )


# --- another run ------------------------------------------------------------------------------------------------------


def _as_run(config: Config, source: Path) -> Config:
    made_with = config_file.inspect(source)
    if made_with.board_sizes:
        raise ValueError(f"{source} has a buffer for each of several boards; learn offline from a run of one board")
    for flag, now, then in (
        ("--env", config.env, made_with.env),
        ("--board-size", config.board_size, made_with.board_size),
        ("--targets.discount", config.targets.discount, made_with.targets.discount),
    ):
        if now != then:
            raise ValueError(f"the games of {source} were played with {flag} {then}, not {now}; leave {flag} out")
    return _with_sizes(
        config,
        num_envs=made_with.self_play.num_envs,
        replay_length=made_with.replay.replay_length,
        rollout_length=made_with.self_play.rollout_length,
        full_search_share=made_with.self_play.full_search_share,  # decides whether frames have `in_full`
    )


def _open_run(config: Config, source: Path, say: Callable[[str], None]) -> Fill:
    directory = source / CHECKPOINTS
    has_states = any(path.startswith("transitions.state") for path in describe_replay(directory))
    if config.keeps_states and not has_states:
        raise ValueError(
            f"the replay buffer of {source} has no game states, which --model rules searches again; add "
            "--replay.reanalyze-fraction 0, or learn from a run of --model rules that used Reanalyze itself"
        )

    def fill(abstract: ReplayState) -> ReplayState:
        iteration, buffer = restore_replay(directory, _stored_part(abstract))
        num_frames = int(buffer.num_stored)
        num_games = buffer.transitions.action.shape[1]
        if num_frames < config.window_length:
            raise ValueError(
                f"{source} has stored {num_frames} frames of each game, fewer than a window of unroll_steps + td_steps "
                f"+ 1 = {config.window_length} frames; lower --targets.td-steps, or train that run for longer"
            )
        say(f"learning from {num_frames * num_games:,} frames, which {source} held after iteration {iteration}")
        return _begun(buffer, abstract)

    return fill


def _stored_part(abstract: ReplayState) -> ReplayState:
    """The part of a buffer that a source has: all but priorities, which learning writes."""
    return abstract._replace(priority=None)


def _begun(buffer: ReplayState, abstract: ReplayState) -> ReplayState:
    """The buffer as learning begins: with equal priorities, if `abstract` has them."""

    def ones(like: Any) -> Any:
        return jax.device_put(np.ones(like.shape, like.dtype), like.sharding)

    return buffer._replace(priority=jax.tree.map(ones, abstract.priority))  # None stays None


# --- games from files -------------------------------------------------------------------------------------------------


def _as_games(config: Config, source: Path, num_devices: int) -> Config:
    """The config with a buffer that holds all games, in at most as many columns as games or `num_envs`.

    All columns are as long as the longest, so games in shorter columns are repeated. If one game is far longer than the
    others, these are therefore sampled more often.
    """
    lengths = [len(game.moves) for game in read_games(source)]
    columns = min(config.self_play.num_envs, len(lengths), sum(lengths) // config.window_length)
    columns = max(1, columns // num_devices) * num_devices
    longest = max(sum(lengths[game] for game in column) for column in stored_games.assign_columns(lengths, columns))
    replay_length = longest + config.window_length - 1
    return _with_sizes(config, num_envs=columns, replay_length=replay_length, rollout_length=1, full_search_share=1.0)


def _open_games(config: Config, source: Path, environment: Environment, say: Callable[[str], None]) -> Fill:
    games = read_games(source)
    say(f"reading {source}")
    frames = stored_games.play(environment, games, keeps_state=config.keeps_states)
    num_cut = int((frames.is_last & (frames.discount != 0)).sum())
    cut = f"; {num_cut:,} of them are unfinished, so they have no outcome" if num_cut else ""
    say(f"learning from {len(games):,} game{'s' * (len(games) > 1)} with {len(frames.action):,} moves{cut}")
    buffer = stored_games.lay_out(
        frames,
        [len(game.moves) for game in games],
        num_columns=config.self_play.num_envs,
        replay_length=config.replay.replay_length,
    )

    def fill(abstract: ReplayState) -> ReplayState:
        placed = jax.tree.map(
            lambda x, like: jax.device_put(np.asarray(x, like.dtype), like.sharding),
            buffer,
            _stored_part(abstract),
        )
        return _begun(placed, abstract)

    return fill
