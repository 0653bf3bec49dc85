"""`muzero_jax.check`: finds faults in your own game, network or algorithm.

Wrong rules, networks and losses do not stop a run; it only learns the wrong thing. `train.py` makes the same checks.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from muzero_jax import presets
from muzero_jax.algorithm import Algorithm, make_algorithm, playing
from muzero_jax.apps.check import algorithm_checks, environment_checks, model_checks
from muzero_jax.config.config import Config
from muzero_jax.config.groups import AlgorithmConfig
from muzero_jax.games.own_game import environment_from, load_environment
from muzero_jax.own import python_file
from muzero_jax.types import Environment, Model


def check(
    what: Any, env: str | Environment = "tic_tac_toe", board_size: int | None = None, **options: Any
) -> list[str]:
    """The faults of your own game, network or algorithm, a sentence each; empty if none was found.

    A sentence that begins with `doubt:` names something unusual that may be intended. A check takes seconds, mostly for
    compiling.

    Args:
      what: a Python file as `train.py` takes it, which defines `make` (a game), `make_model` (a network) or `change`
        (an algorithm); or an `Environment`, a `Model`, an `Algorithm`, or anything that `make` may return.
      env: the game on which a network, or a file with an algorithm, is tried: a name, a file or an `Environment`.
      board_size: of that game, for Hex.
      options: options of the file, as in `--network.options` and `--algorithm.options`.
    """
    try:
        if isinstance(what, Model):
            return model_checks.examine(what, _settings(env, board_size)[1])
        if isinstance(what, Algorithm):
            return algorithm_checks.examine(what)
        if isinstance(what, str | Path) and python_file.is_path(str(what)):
            return _of_file(str(what), _settings(env, board_size), options)
        return _of_game(load_environment(what) if isinstance(what, str) else what)
    except ValueError as error:  # raised by loading or building it
        return [str(error)]


def _of_file(path: str, settings: tuple[Config, Environment], options: dict[str, Any]) -> list[str]:
    defined = [name for name in ("make", "make_model", "change") if hasattr(python_file.load(path), name)]
    if not defined:
        return [f"{path} defines no make (a game), make_model (a network) or change (an algorithm); define one"]
    if "make" in defined:
        return _of_game(load_environment(path))
    config, environment = settings
    texts = tuple(f"{name}={value!r}" for name, value in options.items())
    if "make_model" in defined:
        config = replace(config, network=replace(config.network, file=path, options=texts))
        return model_checks.examine(playing.build_model(config, environment), environment)
    return algorithm_checks.examine(
        make_algorithm(replace(config, algorithm=AlgorithmConfig((path,), texts)), environment)
    )


def _settings(env: str | Environment, board_size: int | None) -> tuple[Config, Environment]:
    if isinstance(env, Environment):
        return Config(env=env.name), env
    config = presets.preset(env, board_size)
    return config, playing.build_environment(config)


def _of_game(made: Any) -> list[str]:
    environment = made if isinstance(made, Environment) else environment_from(made, type(made).__name__)
    problems, doubts = environment_checks.examine(environment)
    return problems + [f"doubt: {doubt}" for doubt in doubts]
