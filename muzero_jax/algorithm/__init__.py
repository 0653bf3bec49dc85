"""The algorithm as one record, and the one place that reads hyperparameters to make it.

`training` reads the `record`. `making` assembles it from the parts that `playing` (game, network, search,
self-play) and `learning` (samples, targets, losses, updates) build from a config.
"""

from muzero_jax.algorithm.making import Build, make_algorithm
from muzero_jax.algorithm.record import Algorithm

__all__ = ["Algorithm", "Build", "make_algorithm"]
