"""Begins a run with the weights of another run or of an agent: `--init-from`.

Only the weights and the network's settings are taken. The optimiser, the buffer, the games and the random numbers begin
as in any new run, and a target network begins as a copy of the weights. The run's own checkpoints then hold its
weights, so a resumed run does not need the source.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from muzero_jax.agent import inspect_agent, load_agent, misreading
from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.groups import AlgorithmConfig, NetworkConfig
from muzero_jax.config.paths import absolute_source
from muzero_jax.own.trust import Trust
from muzero_jax.storage import shapes
from muzero_jax.types import LearnerState, Model, Params


def network_of(source: str, preset: NetworkConfig) -> NetworkConfig:
    """The network settings of a run or an agent, with the preset's precision.

    The preset's network is returned if the source has a network file, which the user must name, or if the source
    cannot be read, because `open_source` will say why.
    """
    try:
        network = inspect_agent(Path(absolute_source(source))).network
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
      given: the algorithm that a program passed to `muzero_jax.train`. Its game and network are in no config, so the
        source is loaded with it, too.
      trust_code: whether Python files that only the source names may run.

    Raises ValueError if the source cannot be loaded, or if its weights do not fit.
    """
    assert config.init_from is not None

    def build(theirs: Config) -> Algorithm:
        """Without the source's own algorithm file, because only its weights are needed."""
        return given or make_algorithm(replace(theirs, algorithm=AlgorithmConfig()))

    trust = Trust(trust_code, named=frozenset(config.own_files))
    agent = load_agent(Path(config.init_from), build=build, trust=trust)
    described = None if given else config.network
    if found := misreading(agent, described, shapes.of_network(model.init)):
        theirs = agent.config
        board = f" --board-size {theirs.board_size}" if theirs.board_size else ""
        network = f"name its network, --network {theirs.network.file}" if theirs.network.file else "no network flags"
        raise ValueError(
            f"the weights of {config.init_from} do not fit this run's network: {found}; they fit --env {theirs.env}"
            f"{board} --model {theirs.model} with the same network ({network}) and heads (--search.policy none adds "
            "one, and --self-play.starts regret), and a fully_convolutional one fits every board of its game"
        )
    say(f"beginning with the weights that {config.init_from} had after iteration {agent.iteration}")
    return agent.params


def place(learner: LearnerState, params: Params, abstract: LearnerState) -> LearnerState:
    """The first learner state with these weights on the learner's devices; the target network begins as a copy.

    The optimiser's state is kept, because before the first update it is the same for all weights.
    """
    placed = jax.device_put(params, jax.tree.map(lambda leaf: leaf.sharding, abstract.params))
    # Copied, because the program donates these arrays, and `device_put` may share memory with the source.
    copy = jax.jit(partial(jax.tree.map, jnp.copy), out_shardings=jax.tree.map(lambda leaf: leaf.sharding, placed))
    has = abstract.target_params, abstract.average_params
    target, average = (None if each is None else copy(placed) for each in has)
    return learner._replace(params=copy(placed), target_params=target, average_params=average)
