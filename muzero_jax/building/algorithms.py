"""The algorithm that a config names: MuZero, changed by the user's own file if there is one."""

from functools import partial
from typing import Any

from muzero_jax.building import searches, updates
from muzero_jax.building.worlds import make_world
from muzero_jax.learning import self_play
from muzero_jax.learning.algorithm import Algorithm, World
from muzero_jax.own import python_file
from muzero_jax.storage.config import IN_PYTHON, Config


def build(config: Config, world: World | None = None, algorithm: Algorithm | None = None) -> tuple[World, Algorithm]:
    """The game, the network and the algorithm that the config names, or your own in their place."""
    world = world or make_world(config)
    return world, algorithm or make_algorithm(config, world)


def make_algorithm(config: Config, world: World) -> Algorithm:
    """The algorithm that the config names, for this game and this network.

    Raises ValueError in one sentence if the user's own file makes none.
    """
    algorithm, file = _configured(config, world), config.algorithm.file
    if not file:
        return algorithm
    if file == IN_PYTHON:
        raise ValueError(
            "its algorithm was given by a program and is in no file, so only that program can build it again "
            "(muzero_jax.load(RUN, algorithm=...)); train.py --algorithm FILE makes runs that load by themselves"
        )
    change = python_file.load_function(file, "change")
    return _checked(change(algorithm, world, config, **python_file.read_options(config.algorithm.options)), file)


def _configured(config: Config, world: World) -> Algorithm:
    play = config.self_play
    return Algorithm(
        self_play_search=searches.build_self_play_search(config, world),
        make_search=lambda num_simulations: searches.make_search(
            config, world, noise=False, num_simulations=num_simulations
        ),
        choose=partial(self_play.choose, exploration=play.exploration, sampled_moves=play.sampled_moves),
        make_targets=updates.build_targets(config),
        terms=updates.build_terms(config, world),
        update=updates.build_update(config, world.model),
        optimiser=updates.build_optimiser(config),
        write_back=updates.build_write_back(config),
    )


def _checked(changed: Any, file: str) -> Algorithm:
    if not isinstance(changed, Algorithm):
        what = f"change returns a {type(changed).__name__}, but must return a muzero_jax.learning.algorithm.Algorithm"
        raise ValueError(f"{file}: {what}; mostly algorithm._replace(...)")
    return changed
