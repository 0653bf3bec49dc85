"""The game and the network that a config names."""

from muzero_jax.arithmetic import precision
from muzero_jax.games.own_game import load_environment
from muzero_jax.networks.layers import Abilities
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, Model


def build_environment(config: Config) -> Environment:
    """The game that the config names."""
    return load_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)


def build_model(config: Config, environment: Environment) -> Model:
    """The network that the config names, for a game with outcomes in [-1, 1]."""
    network = config.network
    return make_model(
        environment,
        Support(-1.0, 1.0, network.num_bins),
        kind=network.kind,
        width=network.width,
        num_blocks=network.num_blocks,
        activation=network.activation,
        compute_dtype=precision.resolve(network.compute_dtype).compute_dtype,
        abilities=Abilities(
            dynamics=config.model != "rules",
            legality=config.model == "learned_legality",
            discount=foretells_discount(config, environment),
            projection=config.optimiser.consistency_weight > 0,
        ),
    )


def foretells_discount(config: Config, environment: Environment) -> bool:
    """Whether the dynamics say whose turn is next: if asked to, and where no constant discount is right."""
    return config.model != "rules" and (config.network.predict_discount or environment.discount is None)
