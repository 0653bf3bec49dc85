"""A run that begins with the weights of another one: `--init-from`.

Only the weights and their network's settings are read. The optimiser, the buffer, the games and the random numbers are
those of any new run, and a target network begins as a copy. From then on the run's own checkpoints hold its weights, so
a resumed run does not need the source.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from muzero_jax import agent as agents
from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.own.trust import Trust
from muzero_jax.storage import config as configs
from muzero_jax.storage import shapes
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import AlgorithmConfig, NetworkConfig
from muzero_jax.types import LearnerState, Model, Params


def network_of(source: str, preset: NetworkConfig) -> NetworkConfig:
    """The network of a run or an agent, which its weights fit, in the preset's precision.

    It is the preset's own if the source has a file for its network, which the user must name. It is the preset's own
    too if the source cannot be read: `open_source` says why.
    """
    try:
        network = agents.inspect(Path(configs.absolute_source(source))).network
    except ValueError:
        return preset
    return preset if network.file else replace(network, compute_dtype=preset.compute_dtype)


def open_source(
    config: Config,
    model: Model,
    say: Callable[[str], None],
    *,
    given: Algorithm | None = None,
    trust_code: bool = False,
) -> Params:
    """The weights that a run begins with, on the first device.

    Args:
      model: the run's network, which the weights must fit.
      given: the run's algorithm if a program gave it, as no config describes its game and network, nor the source's.
      trust_code: whether Python files that only the source names may run.

    Raises ValueError, in one sentence, if the source is no run or agent that can be loaded, or if its weights do not
    fit.
    """
    assert config.init_from is not None

    def build(theirs: Config) -> Algorithm:
        """Weights alone are wanted, so the source's own algorithm is not asked for."""
        return given or algorithms.make(replace(theirs, algorithm=AlgorithmConfig()))

    trust = Trust(trust_code, named=frozenset(config.own_files.values()))
    agent = agents.load_agent(Path(config.init_from), build=build, trust=trust)
    described = None if given else config.network
    if found := agents.misreading(agent, described, shapes.of_network(model.init)):
        theirs = agent.config
        board = f" --board-size {theirs.board_size}" if theirs.board_size else ""
        network = f"name its network, --network {theirs.network.file}" if theirs.network.file else "no network flags"
        raise ValueError(
            f"the weights of {config.init_from} do not fit this run's network: {found}; they fit --env {theirs.env}"
            f"{board} --model {theirs.model} with the same network ({network}), and a fully_convolutional one fits "
            "every board of its game"
        )
    say(f"beginning with the weights that {config.init_from} had after iteration {agent.iteration}")
    return agent.params


def place(learner: LearnerState, params: Params, abstract: LearnerState) -> LearnerState:
    """The first state of the learner with these weights, where its own lie; the target network begins as a copy.

    The optimiser's state stays: before the first update it is the same for any weights.
    """
    placed = jax.device_put(params, jax.tree.map(lambda leaf: leaf.sharding, abstract.params))
    # Buffers of their own, because the program takes them back, and what is put on a device may share the source's.
    copy = jax.jit(partial(jax.tree.map, jnp.copy), out_shardings=jax.tree.map(lambda leaf: leaf.sharding, placed))
    target = None if abstract.target_params is None else copy(placed)
    return learner._replace(params=copy(placed), target_params=target)
