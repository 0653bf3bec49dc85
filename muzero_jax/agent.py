"""A trained network and its search, from a run or a file: all that evaluation and play need.

Only the config and the weights of a run are read.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from muzero_jax.algorithm import Algorithm, Build, make_algorithm, playing
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, without_record
from muzero_jax.config.fields import Simulations, check_value
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust
from muzero_jax.search.simulator import Simulator, policy
from muzero_jax.storage import agent_file, run_directory, shapes
from muzero_jax.storage.checkpoint import restore_params
from muzero_jax.types import Environment, Model, Params, SearchFn, SearchOutput


class Agent(NamedTuple):
    """A trained network and its search. Without noise, its moves depend only on the position."""

    config: Config
    environment: Environment
    model: Model
    make_simulator: Callable[[Environment, Model], Simulator]  # as in `Algorithm`
    make_search: Callable[[Simulator, int | None, bool], SearchFn]
    num_simulations: int  # of a search, by default
    params: Params = None
    iteration: int = 0
    name: str = "agent"  # the path that it was loaded from

    def search(self, num_simulations: int | None = None, *, true_rules: bool = False) -> SearchFn:
        """The agent's search, without noise.

        Args:
          num_simulations: for each position; by default the agent's own budget.
          true_rules: plan with the ground-truth model, the game's own rules, instead of the learned dynamics.
        """
        make = self.make_simulator
        if true_rules:
            make = partial(playing.make_simulator, replace(self.config, model="rules"))
        return self.make_search(make(self.environment, self.model), num_simulations or self.num_simulations, False)

    def with_trees(self) -> "Agent":
        """The agent with a search that returns its trees, which our search in passes does not."""
        is_ours = getattr(self.make_search, "func", None) is playing.make_search
        if not is_ours or self.config.search.engine != "passes":
            return self
        search = replace(self.config.search, engine="own")
        return self._replace(make_search=partial(playing.make_search, replace(self.config, search=search)))


def policy_head_search(model: Model) -> SearchFn:
    """A search without simulations: the network's policy over legal actions, its likeliest action, and its value."""

    def look(params, key, position):
        output = model.initial_inference(params, position.observation)
        prior = policy(output, position.legal_action_mask)
        best = jnp.argmax(jnp.where(position.legal_action_mask, output.policy_logits, -jnp.inf), axis=-1)
        return SearchOutput(best.astype(jnp.int32), prior, model.to_scalar(output.value_logits))

    return look


def make_agent(
    config: Config,
    algorithm: Algorithm | None = None,
    *,
    num_simulations: int | None = None,
    params: Params = None,
) -> Agent:
    """An agent with the given weights; its game, network and search come from `algorithm`, by default the config's.

    Args:
      num_simulations: of a search, by default; if left out, the config's evaluation.num_simulations.
    """
    own = algorithm or make_algorithm(config)
    made = own.environment, own.model, own.make_simulator, own.make_search
    return Agent(config, *made, num_simulations or config.evaluation.num_simulations, params)


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
    meaning = {} if network.file else {"activation": "activation", "canonical": "sees_one_side"}
    if network.num_bins > 1:
        meaning |= {"support-range": "support_range", "squash": "squash"}
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


def check_budget(number: int, name: str) -> int:
    """The `number` of simulations, if a search can have so many; else ValueError, which calls it `name`."""
    check_value(number, Simulations, name)
    return number
