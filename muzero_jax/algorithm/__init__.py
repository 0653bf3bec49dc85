"""The algorithm as one record, and the one place that reads hyperparameters to make it.

`record` is what `training` reads; `making.make` puts together what `playing` (game, network, search, self-play) and
`learning` (samples, targets, losses, updates) make of a config.
"""

from muzero_jax.algorithm.making import Build, make
from muzero_jax.algorithm.record import Algorithm

__all__ = ["Algorithm", "Build", "make"]
