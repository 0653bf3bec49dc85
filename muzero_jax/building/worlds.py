"""The game and the network that a config names."""

import inspect
from dataclasses import replace

import jax

from muzero_jax.games.own_game import load_environment, random_games
from muzero_jax.games.random_play import discount_sizes
from muzero_jax.learning.algorithm import World
from muzero_jax.networks import contract
from muzero_jax.networks.layers import Abilities
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.ops import precision
from muzero_jax.own import python_file
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, Model

DEFAULT_CODES = 32
"""Codes of an encoder, as in Stochastic MuZero (Antonoglou et al. 2022, appendix D)."""


def make_world(config: Config) -> World:
    """The game and the network that the config names."""
    environment = build_environment(config)
    return World(environment, build_model(config, environment))


def build_environment(config: Config) -> Environment:
    """The game that the config names."""
    return load_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)


def build_model(config: Config, environment: Environment) -> Model:
    """The network that the config names, or that the user's own file makes."""
    network = config.network
    support = Support(-network.support_range, network.support_range, network.num_bins, network.squash)
    abilities = wanted_abilities(config, environment)
    if network.file:
        make_own = python_file.load_function(network.file, "make_model")
        options = python_file.read_options(network.options)
        wanted = inspect.signature(make_own).parameters
        if "abilities" in wanted:
            options["abilities"] = abilities
        if "base" in wanted:
            options["base"] = build_model(replace(config, network=replace(network, file=None)), environment)
        model = contract.checked(make_own(environment, support, **options), environment, abilities, source=network.file)
        encode_chance = model.encode_chance if abilities.encodes_chance else None
        return model._replace(bound=support.high, num_codes=abilities.num_codes, encode_chance=encode_chance)
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
        num_codes=chance_codes(config, environment),
        encodes_chance=config.model == "learned" and chance_codes(config, environment) > 0,
        legality=config.model == "learned_legality",
        discount=predicts_discount(config, environment),
        projection=config.model != "rules" and config.optimiser.consistency_weight > 0,
        canonical=config.network.sees_one_side,
    )


def chance_codes(config: Config, environment: Environment) -> int:
    """C, how many codes of chance the learned model has; 0 for plain MuZero.

    Raises ValueError in one sentence if chance outcomes are to be known that the game does not list.
    """
    chance = environment.chance
    if config.model == "learned_outcomes":
        if chance is None:
            raise ValueError(
                f"--model learned_outcomes needs known chance outcomes, which {environment.name} does not list; choose "
                "--model learned (with --network.chance-codes 32, if there is chance)"
            )
        return chance.num_outcomes + 1  # the last one: chance had no part
    if config.model != "learned":
        return 0
    wanted = config.network.chance_codes
    return DEFAULT_CODES * (chance is not None) if wanted is None else wanted


def predicts_discount(config: Config, environment: Environment) -> bool:
    """Whether the dynamics say whose turn is next: if asked to, and where no constant discount is right."""
    return config.model != "rules" and (config.network.predict_discount or environment.discount is None)


def gamma(environment: Environment) -> float:
    """|discount| of the moves that end no game, of which a model predicts the sign alone.

    Where no constant discount is right, random games show it. Raises ValueError in one sentence if it varies.
    """
    if environment.discount is not None:
        return abs(environment.discount)
    with jax.ensure_compile_time_eval():  # members of a population are built inside their one program
        sizes = discount_sizes(random_games(environment))
    if len(sizes) > 1:
        raise ValueError(
            f"moves of {environment.name} have discounts of the sizes {sizes[0]:g} and {sizes[-1]:g}, but a model "
            "predicts only their sign; make all of one size, or plan with the ground-truth model (--model rules)"
        )
    return sizes[0] if sizes else 1.0
