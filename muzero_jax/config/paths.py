"""The paths in a config, made absolute, so that a run finds its files from any folder."""

import dataclasses
from collections.abc import Callable

from muzero_jax.config.config import AGENT_PREFIX, Config
from muzero_jax.own import python_file
from muzero_jax.own.files import from_home


def absolute_env(env: str) -> str:
    """`Config.env` as a run saves it: a file's path is absolute, so that the run works from any folder."""
    return absolute(env) if python_file.is_path(env) else env


def absolute(path: str) -> str:
    """The absolute path; ~ is the user's home."""
    return str(from_home(path).resolve())


def absolute_source(source: str) -> str:
    """`Config.init_from` as a run saves it: the absolute path of a run, or the name of an agent."""
    return source if source.startswith(AGENT_PREFIX) else absolute(source)


def with_files(config: Config, place: Callable[[str], str]) -> Config:
    """The config with `place` applied to the path of each of the user's own files."""
    algorithm = config.algorithm
    return dataclasses.replace(
        config,
        env=place(config.env) if python_file.is_path(config.env) else config.env,
        network=dataclasses.replace(config.network, file=config.network.file and place(config.network.file)),
        algorithm=algorithm
        if algorithm.is_record
        else dataclasses.replace(algorithm, files=tuple(map(place, algorithm.files))),
    )


def with_absolute_paths(config: Config) -> Config:
    """The config with absolute paths, so that the run finds its files from any folder; agents keep their names."""
    return dataclasses.replace(
        with_files(config, absolute),
        offline=config.offline and absolute(config.offline),
        init_from=config.init_from and absolute_source(config.init_from),
    )
