"""Where a config becomes functions: the one package that reads hyperparameters.

`make_world` makes the game and the network, `make_algorithm` the algorithm for them, and `make_parts` puts them
together into the functions of a run. A variant is another function put in here, or a record in place of theirs.
"""

from muzero_jax.building.algorithms import build, make_algorithm
from muzero_jax.building.parts import make_parts
from muzero_jax.building.searches import make_search, make_simulator
from muzero_jax.building.worlds import build_environment, build_model, make_world

__all__ = [
    "build",
    "build_environment",
    "build_model",
    "make_algorithm",
    "make_parts",
    "make_search",
    "make_simulator",
    "make_world",
]
