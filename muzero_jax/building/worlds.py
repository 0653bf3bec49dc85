"""The game and the network that a config names."""

import inspect

from muzero_jax.algorithm import World
from muzero_jax.arithmetic import precision
from muzero_jax.games.own_game import load_environment, random_games
from muzero_jax.games.random_play import discount_sizes
from muzero_jax.networks import contract
from muzero_jax.networks.layers import Abilities
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.storage import python_file
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, Model


def make_world(config: Config) -> World:
    """The game and the network that the config names."""
    environment = build_environment(config)
    return World(environment, build_model(config, environment))


def build_environment(config: Config) -> Environment:
    """The game that the config names."""
    return load_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)


def build_model(config: Config, environment: Environment) -> Model:
    """The network that the config names, or that the user's own file makes, for a game with outcomes in [-1, 1]."""
    network, support = config.network, Support(-1.0, 1.0, config.network.num_bins)
    abilities = wanted_abilities(config, environment)
    if network.file:
        make_own = python_file.load_function(network.file, "make_model")
        options = python_file.read_options(network.options)
        if "abilities" in inspect.signature(make_own).parameters:
            options["abilities"] = abilities
        model = make_own(environment, support, **options)
        return contract.checked(model, environment, abilities, source=network.file)._replace(bound=support.high)
    return make_model(
        environment,
        support,
        kind=network.kind,
        width=network.width,
        num_blocks=network.num_blocks,
        activation=network.activation,
        compute_dtype=precision.resolve(network.compute_dtype).compute_dtype,
        abilities=abilities,
    )


def wanted_abilities(config: Config, environment: Environment) -> Abilities:
    """The abilities that the network of a run must have."""
    return Abilities(
        dynamics=config.model != "rules",
        legality=config.model == "learned_legality",
        discount=predicts_discount(config, environment),
        projection=config.model != "rules" and config.optimiser.consistency_weight > 0,
        canonical=config.network.sees_one_side,
    )


def predicts_discount(config: Config, environment: Environment) -> bool:
    """Whether the dynamics say whose turn is next: if asked to, and where no constant discount is right."""
    return config.model != "rules" and (config.network.predict_discount or environment.discount is None)


def gamma(environment: Environment) -> float:
    """|discount| of the moves that end no game, of which a model predicts the sign alone.

    Where no constant discount is right, random games show it. Raises ValueError in one sentence if it varies.
    """
    if environment.discount is not None:
        return abs(environment.discount)
    sizes = discount_sizes(random_games(environment))
    if len(sizes) > 1:
        raise ValueError(
            f"moves of {environment.name} have discounts of the sizes {sizes[0]:g} and {sizes[-1]:g}, but a model "
            "predicts only their sign; make all of one size, or plan with the ground-truth model (--model rules)"
        )
    return sizes[0] if sizes else 1.0
