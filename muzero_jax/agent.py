"""A trained network and its search, from a run or a file: all that evaluation and play need.

Nothing of a run but its config and its weights is read.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm, Build, playing
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust
from muzero_jax.search.simulator import Simulator, policy
from muzero_jax.storage import agent_file, run_directory, shapes
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import restore_params
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import NetworkConfig
from muzero_jax.storage.fields import Simulations, check_value
from muzero_jax.types import Environment, Model, Params, SearchFn, SearchOutput


class Agent(NamedTuple):
    """A trained network and its search. Without noise, what it plays depends on the position alone."""

    config: Config
    environment: Environment
    model: Model
    make_simulator: Callable[[Environment, Model], Simulator]  # as `Algorithm`'s
    make_search: Callable[[Simulator, int | None, bool], SearchFn]
    num_simulations: int  # of a search, by default
    params: Params = None
    iteration: int = 0
    name: str = "agent"  # the path that it was loaded from

    def search(self, num_simulations: int | None = None, *, true_rules: bool = False) -> SearchFn:
        """Its search without noise.

        Args:
          num_simulations: for each position; by default the agent's own budget.
          true_rules: plan with the ground-truth model, the game's own rules, and not with the learned dynamics.
        """
        make = self.make_simulator
        if true_rules:
            make = partial(playing.make_simulator, replace(self.config, model="rules"))
        return self.make_search(make(self.environment, self.model), num_simulations or self.num_simulations, False)

    def with_trees(self) -> "Agent":
        """The agent with searches whose trees can be looked at, which ours in passes have not."""
        is_ours = getattr(self.make_search, "func", None) is playing.make_search
        if not is_ours or self.config.search.engine != "passes":
            return self
        search = replace(self.config.search, engine="own")
        return self._replace(make_search=partial(playing.make_search, replace(self.config, search=search)))


def policy_head(model: Model) -> SearchFn:
    """The network by itself, in a search's place: its policy over legal actions, the best of them, and its value."""

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
    """An agent of weights at hand; its game, network and search are those of the config, unless a record is given.

    Args:
      num_simulations: of a search, by default; the config's evaluation.num_simulations if left out.
    """
    own = algorithm or algorithms.make(config)
    made = own.environment, own.model, own.make_simulator, own.make_search
    return Agent(config, *made, num_simulations or config.evaluation.num_simulations, params)


def load_agent(
    path: Path,
    num_simulations: int | None = None,
    build: Build | None = None,
    board_size: int | None = None,
    trust: Trust = OWN_FILES_ALONE,
) -> Agent:
    """The agent that `path` names: a run (its newest intact checkpoint), a version of one, or a file (agent:NAME).

    Its weights are on the first device. It searches with its evaluation budget unless one is given, and plays on the
    board that it was trained on unless its network fits the one that is given.

    Args:
      path: RUN, RUN/versions/N, or agent:NAME.
      num_simulations: of a search; by default the run's evaluation budget.
      board_size: another board, for a network that fits every board.
      build: makes the algorithm of a config, with its game and its network, where a program gave it.

    Raises ValueError in one sentence if `path` names no run, no intact checkpoint, no version that there is, or no
    agent, if its network or its game does not fit `board_size`, or if it would run a Python file without `trust`.
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
        own, agent = agent, _build_agent(replace(config, board_size=board_size), build)
        if found := shapes.difference(*(shapes.of_network(each.model.init) for each in (own, agent))):
            raise ValueError(
                f"{path} was trained on the board {config.board_size or 'that its game has'}, and its network does not "
                f"fit the board {board_size} ({found}); leave the board size out, or train with a network for every "
                "board (--network.kind fully_convolutional)"
            )
    iteration, params = restore(jax.eval_shape(agent.model.init, jax.random.key(0)))
    return agent._replace(num_simulations=budget, params=params, iteration=iteration, name=str(path))


def inspect(path: Path) -> Config:
    """The config of the agent that `path` names, as for `load_agent`, to look at and never to build."""
    return _open(path, Trust(all_code=True))[0]


def misreading(theirs: Agent, network: NetworkConfig | None, arrays: dict[str, str]) -> str | None:
    """How a network would misread the weights of an agent, in words; None if they mean the same in it.

    Args:
      network: the network's settings; None where a program gave it, so that no config describes it.
      arrays: its parameters, as `shapes.describe` has them.
    """
    found = shapes.difference(shapes.describe(theirs.params), arrays)
    if found or network is None:
        return found
    # The same arrays read with other settings are another function. Who writes a network answers for its own options.
    meaning = {} if network.file else {"activation": "activation", "canonical": "sees_one_side"}
    if network.num_bins > 1:
        meaning |= {"support-range": "support_range", "squash": "squash"}
    for flag, field in meaning.items():
        was, now = (getattr(each, field) for each in (theirs.config.network, network))
        if was != now:
            return f"its network.{flag} was {was}, not {now}"
    return None


def _build_agent(config: Config, build: Build | None) -> Agent:
    """The agent without its weights; a program's own `build` may begin with the usual algorithm."""
    return make_agent(config, build and build(configs.without_record(config)))


def _open(path: Path, trust: Trust) -> tuple[Config, Path, Callable[[Params], tuple[int, Params]]]:
    """A config, the file that holds it, and what reads (iteration, weights) once the weights' shapes are known."""
    if (file := agent_file.find(str(path))) is not None:
        stored = agent_file.read(file, trust)
        return stored.config, file, lambda abstract: (stored.iteration, stored.params(abstract))
    saved = run_directory.find_saved(path) or run_directory.Saved(path)
    config, step = configs.load(saved.run_dir, trust), run_directory.version_of(saved)
    file = saved.run_dir / configs.FILE
    if saved.folder is None and (shared := run_directory.shared(saved.run_dir)):
        return config, file, partial(_restore_shared, shared)
    return config, file, partial(restore_params, saved.folder or saved.run_dir / run_directory.CHECKPOINTS, step=step)


def _restore_shared(shared: run_directory.Shared, abstract: Params) -> tuple[int, Params]:
    """One agent's weights of several that were trained together, whose checkpoints hold a leading axis of agents."""
    stacked = jax.tree.map(lambda x: jax.ShapeDtypeStruct((shared.count, *x.shape), x.dtype), abstract)
    iteration, params = restore_params(shared.folder / run_directory.CHECKPOINTS, stacked)
    return iteration, jax.tree.map(lambda x: x[shared.index], params)


def check_budget(number: int, name: str) -> int:
    """A number of simulations, unchanged; ValueError, which calls it `name`, if no search can have so many."""
    check_value(number, Simulations, name)
    return number
