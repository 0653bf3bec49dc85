"""MuZero as one record: the game, the network, and the stages of an iteration in their order.

A variant is usually one `_replace`, in a file for `train.py --algorithm FILE` (docs/your-own-algorithm.md) or in a
program of your own. `training` passes each stage the other fields that it needs, so a replaced field reaches every
stage that reads it.
"""

from collections.abc import Callable
from typing import NamedTuple

import optax
from jaxtyping import Array

from muzero_jax.learning.losses import Term
from muzero_jax.learning.self_play import Choose
from muzero_jax.search.simulator import Simulator
from muzero_jax.types import (
    ActorState,
    Batch,
    Environment,
    LearnerState,
    Metrics,
    Model,
    Params,
    ReplayState,
    Sample,
    SearchFn,
    Targets,
    Transition,
    WriteBack,
)


class Algorithm(NamedTuple):
    """The choices of an algorithm, as pure functions that JAX compiles into the run's one program.

    Shapes are those of one device's share, except that the `init` functions make the state of all devices. Letters are
    those of `types`. `progress` [] is the share of the run's budget that is spent, from 0 to 1.
    """

    environment: Environment
    """the game"""
    model: Model
    """the network"""
    init_actor: Callable[[Environment, Array], ActorState]
    """(game, key) -> fresh games"""
    init_learner: Callable[[Model, optax.GradientTransformation, Array], LearnerState]
    """(network, optimiser, key) -> fresh weights"""
    init_replay: Callable[[Transition], ReplayState]
    """one transition's shapes -> an empty buffer"""
    make_simulator: Callable[[Environment, Model], Simulator]
    """(game, network) -> the model that a search plans with: the learned one, or the ground-truth model"""
    make_search: Callable[[Simulator, int | None, bool], SearchFn]
    """(simulator, number of simulations or None for self-play's, whether with noise) -> a search. Self-play's has
    noise, those of Reanalyze, evaluation and play have none"""
    choose: Choose
    """the move that self-play makes after a search, and whether it was drawn at random"""
    rollout: Callable[..., tuple[ActorState, Transition]]
    """(params, actor, key, environment=, model=, search=, choose=) -> T moves of B games, leaves [T, B, ...]"""
    min_frames: int
    """frames of each game in the buffer before the first update"""
    sample: Callable[[Array, ReplayState], Sample]
    """(key, buffer) -> where the windows of U batches start, leaves [U, N]"""
    gather: Callable[..., Transition]
    """(buffer, N starts, num_frames=) -> the windows, leaves [N, L, ...], with observations of at least `num_frames`"""
    reanalyze: Callable[..., tuple[Transition, tuple[WriteBack, ...], Metrics]]
    """(learner, N starts, windows, key, search=) -> the windows with fresh policies and values, or unchanged; what is
    written back into the buffer; and metrics"""
    make_targets: Callable[[Transition, Array], Targets]
    """(windows [N, L, ...], progress) -> the targets of K + 1 predictions; the configured one also takes
    `td_lambda`, a number or an array, instead of the config's"""
    make_batch: Callable[..., Batch]
    """(windows, their targets, weights [N], key, num_frames=) -> the batch that a gradient step reads"""
    augment: Callable[[Batch, Array], Batch]
    """(batch, key) -> the batch with a symmetry of the game applied to each window, if there are any"""
    terms: tuple[Term, ...]
    """the losses, with their weights"""
    loss: Callable[..., tuple[Array, Metrics]]
    """(params, batch, model=, terms=) -> the weighted sum of the losses over the unrolled model"""
    optimiser: optax.GradientTransformation
    """its `update` also receives `learning_rate`, which an optimiser with its own rate may ignore"""
    update: Callable[..., tuple[LearnerState, Metrics]]
    """(learner, batch, progress, loss=, optimiser=) -> the learner after one update, and its metrics. By default a
    gradient step on `loss`, here (params, batch) -> the sum of the terms, and a metric for each. The batch is one
    device's share, so your own rule must average gradients and metrics by `jax.lax.pmean(..., ops.mesh.AXIS)`"""
    write_back: Callable[[Sample, Transition, Batch], tuple[tuple[WriteBack, ...], Metrics]]
    """(N starts, windows, batch) -> what an update writes back into the buffer, such as priorities; and metrics"""
    unroll_steps: int = 0
    """K, the moves along which `loss` unrolls the model"""

    @property
    def num_frames(self) -> int:
        """How many frames of a window the losses read: 1, or K + 1 if a loss or the encoder of chance reads all."""
        reads_all = self.model.encode_chance or any(term.frames == "all" for term in self.terms)
        return self.unroll_steps + 1 if reads_all else 1

    def search(self, num_simulations: int | None = None, *, noise: bool = False) -> SearchFn:
        """The search with the record's own game and network; by default with self-play's number of simulations."""
        return self.make_search(self.make_simulator(self.environment, self.model), num_simulations, noise)

    def play(self, params: Params, actor: ActorState, key: Array) -> tuple[ActorState, Transition]:
        """Self-play with the record's own game, search and choice: T moves of B games, leaves [T, B, ...]."""
        bound = {"environment": self.environment, "model": self.model, "choose": self.choose}
        return self.rollout(params, actor, key, search=self.search(noise=True), **bound)
