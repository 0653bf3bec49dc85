"""Loads the agent of a run or of a file. Only the config and the weights of a run are read."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax

from muzero_jax.agent.agent import Agent, check_budget, make_agent
from muzero_jax.algorithm import Algorithm, Build
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, without_record
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust
from muzero_jax.storage import agent_file, run_directory, shapes
from muzero_jax.storage.checkpoint import restore_params
from muzero_jax.types import Params


def load(
    run: str | Path,
    num_simulations: int | None = None,
    board_size: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    trust_code: bool = False,
) -> Agent:
    """Loads the agent of a run (its newest checkpoint), of a version in it (RUN/versions/N), or of a file.

    `agent:hex_5x5` is an included agent, `agent:PATH.safetensors` an agent in a file of yours.

    Args:
      run: the run's folder, a version in it, or agent:NAME.
      num_simulations: the agent's usual search budget; by default the run's evaluation.num_simulations.
      board_size: the board to play on, if the network fits every board; by default the size of the training.
      algorithm: the algorithm that you passed to `muzero_jax.train`; by default the one that the config names.
      trust_code: run the Python files of a game, a network or an algorithm that the run or the agent names; read them
        first. Files that you trained with yourself, and that have not changed since, run without it.

    Raises ValueError if there is no such run or agent, or if it names a Python file that is not trusted.
    """
    if num_simulations is not None:
        check_budget(num_simulations, "num_simulations")
    if board_size is not None and algorithm is not None:
        raise ValueError("board_size cannot change an algorithm of your own; make the algorithm for that board")
    build = algorithm and (lambda config: algorithm)
    return load_agent(Path(run), num_simulations, build, board_size, Trust(all_code=trust_code))


def load_agent(
    path: Path,
    num_simulations: int | None = None,
    build: Build | None = None,
    board_size: int | None = None,
    trust: Trust = OWN_FILES_ALONE,
) -> Agent:
    """The agent that `path` names: a run (its newest checkpoint), a version of one, or a file (agent:NAME).

    Its weights are on the first device.

    Args:
      path: RUN, RUN/versions/N, or agent:NAME.
      num_simulations: of a search; by default the run's evaluation budget.
      board_size: for a network that fits every board; by default the board that it was trained on.
      build: makes the algorithm of the config, with its game and its network, if a program gave the run its own.

    Raises ValueError if `path` names no run, no intact checkpoint, no existing version or no agent; if the network or
    the game does not fit `board_size`; or if loading would run a Python file without `trust`.
    """
    config, file, restore = _open(path, trust)
    budget = config.evaluation.num_simulations
    if num_simulations is not None:
        budget = check_budget(num_simulations, "--num-simulations")
    try:
        agent = _build_agent(config, build)
    except ValueError as error:
        raise ValueError(f"cannot load the run that {file} describes: {error}") from error
    if board_size not in (None, config.board_size):
        own = agent
        agent = _build_agent(replace(config, board_size=board_size), build)
        if found := shapes.difference(*(shapes.of_network(each.model.init) for each in (own, agent))):
            raise ValueError(
                f"{path} was trained on the board {config.board_size or 'that its game has'}, and its network does not "
                f"fit the board {board_size} ({found}); leave the board size out, or train with a network for every "
                "board (--network.kind fully_convolutional)"
            )
    iteration, params = restore(jax.eval_shape(agent.model.init, jax.random.key(0)))
    return agent._replace(num_simulations=budget, params=params, iteration=iteration, name=str(path))


def inspect_agent(path: Path) -> Config:
    """The config of the agent that `path` names, as for `load_agent`; only to look at, because trust is not checked."""
    return _open(path, Trust(all_code=True))[0]


def misreading(theirs: Agent, network: NetworkConfig | None, arrays: dict[str, str]) -> str | None:
    """How another network would misread the weights of agent `theirs`, in words; None if they mean the same in both.

    Args:
      network: the other network's settings; None if a program gave it, so that no config describes it.
      arrays: its parameters, as `shapes.describe` returns them.
    """
    found = shapes.difference(shapes.describe(theirs.params), arrays)
    if found or network is None:
        return found
    # With other settings the same arrays are another function. Options of a network's own file are not compared.
    meaning = {"squash": "squash"}
    if not network.file:
        meaning |= {"activation": "activation", "canonical": "is_canonical"}
    if network.num_bins > 1 or theirs.config.search.policy == "none":  # action values are shares of the range
        meaning |= {"support-range": "support_range"}
    for flag, field in meaning.items():
        was, now = (getattr(each, field) for each in (theirs.config.network, network))
        if was != now:
            return f"its network.{flag} was {was}, not {now}"
    return None


def _build_agent(config: Config, build: Build | None) -> Agent:
    """The agent without its weights. `build` gets a config from which it can make the usual algorithm, to change it."""
    return make_agent(config, build and build(without_record(config)))


def _open(path: Path, trust: Trust) -> tuple[Config, Path, Callable[[Params], tuple[int, Params]]]:
    """The config, its file, and a function that reads (iteration, weights), given the weights' shapes."""
    if (file := agent_file.find(str(path))) is not None:
        stored = agent_file.read(file, trust)
        return stored.config, file, lambda abstract: (stored.iteration, stored.params(abstract))
    saved = run_directory.find_saved(path) or run_directory.Saved(path)
    config = config_file.load(saved.run_dir, trust)
    step = run_directory.version_of(saved)
    file = saved.run_dir / config_file.FILE
    return config, file, partial(restore_params, saved.folder or saved.run_dir / run_directory.CHECKPOINTS, step=step)
