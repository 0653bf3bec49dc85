"""Where a config becomes functions: the one room that reads hyperparameters.

A variant is another function put in here. Your own game or network is an argument of `make_parts`.
"""

from muzero_jax.building.learning import build_loss, micro_batch, observation_length
from muzero_jax.building.parts import make_parts
from muzero_jax.building.searches import make_search
from muzero_jax.building.worlds import build_environment, build_model, check_network

__all__ = [
    "build_environment",
    "build_loss",
    "build_model",
    "check_network",
    "make_parts",
    "make_search",
    "micro_batch",
    "observation_length",
]
