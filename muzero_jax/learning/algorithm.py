"""The algorithm of a run as one record, by default MuZero's; change a field to change the algorithm.

`building.make_algorithm(config, world)` makes the configured one, with its hyperparameters bound, and
`building.make_parts(config, world, algorithm)` puts it into a run. A variant is mostly one `_replace`, in a file for
`train.py --algorithm FILE` (docs/your-own-algorithm.md) or in a program of one's own.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import optax
from jaxtyping import Array

from muzero_jax.learning.learner import LossOf
from muzero_jax.learning.losses import Term
from muzero_jax.learning.self_play import Choose
from muzero_jax.types import (
    Batch,
    Environment,
    LearnerState,
    Metrics,
    Model,
    Sample,
    SearchFn,
    Targets,
    Transition,
    WriteBack,
)


class World(NamedTuple):
    """A game, and the network that learns it."""

    environment: Environment
    model: Model


@runtime_checkable
class Update(Protocol):
    """A learning rule."""

    def __call__(
        self, learner: LearnerState, batch: Batch, /, *, loss: LossOf, optimiser: optax.GradientTransformation
    ) -> tuple[LearnerState, Metrics]:
        """One update of the learner.

        Args:
          learner: the weights and the optimiser's state.
          batch: N windows, a device's share of the batch.
          loss: (params, batch) -> the weighted sum of the algorithm's terms, and a metric for each of them.
          optimiser: the algorithm's.

        Returns:
          the learner after the update, and its metrics. Both must be equal on all devices, so average gradients and
          metrics of your own over them, by `jax.lax.pmean(..., devices.AXIS)`.
        """
        ...


class Algorithm(NamedTuple):
    """The choices of an algorithm, as pure functions that JAX compiles into the run's one program.

    Shapes are those of one device's share; the letters are `types`'.
    """

    self_play_search: SearchFn
    """searches the positions of self-play, with noise; what it finds is also what the replay stores as targets"""
    make_search: Callable[[int], SearchFn]
    """number of simulations -> the search without noise, for Reanalyze, evaluation and play"""
    choose: Choose
    """which move self-play makes after a search, and whether that was drawn at random"""
    make_targets: Callable[[Transition, Array], Targets]
    """(windows [N, L, ...], updates made []) -> the targets of K + 1 predictions; past a game's end they are masked"""
    terms: tuple[Term, ...]
    """the losses, with their weights"""
    update: Update
    """the learning rule: by default a gradient step on the sum of the terms"""
    optimiser: optax.GradientTransformation
    """its `update` is given `learning_rate` too, which one that knows its own rate may ignore"""
    write_back: Callable[[Sample, Transition, Batch], tuple[tuple[WriteBack, ...], Metrics]]
    """what to write back into the replay buffer of an update's windows: priorities, fresh targets of Reanalyze"""


Own = tuple[World | None, Algorithm | None]
"""Records that a program gives in place of what the config names; None: what it names."""

Build = Callable[..., tuple[World, Algorithm]]
"""config -> (world, algorithm): the game, the network and the algorithm that it names, as `building.build` does."""
