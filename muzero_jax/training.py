"""MuZero on one page: `train_iteration` is the algorithm; each name in it leads to one file of `learning`.

Training runs as a single compiled program, `jit(scan(train_iteration))` (`run.program`). Python only starts it, and
between pieces of it writes logs, evaluates and saves. Every choice is bound in `Parts` (`building`), so this module
sees no config and no hyperparameter. Devices share the games and the batch over one mesh axis, "data". Each plays its
own games into its own slice of the replay buffer and learns from its own slice of the batch; only the gradients meet.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.learning import replay, self_play
from muzero_jax.ops.devices import AXIS
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
    TrainState,
    Transition,
    WriteBack,
)


class Parts(NamedTuple):
    """The functions that a run is made of, with their hyperparameters bound.

    The `init` functions make the whole of what devices share; the others see one device's share.
    """

    environment: Environment
    model: Model
    init_actor: Callable[[Array], ActorState]  # key -> fresh games
    init_learner: Callable[[Array], LearnerState]  # key -> fresh parameters
    init_replay: Callable[[Transition], ReplayState]  # one transition's shapes -> an empty buffer
    rollout: Callable[[Params, ActorState, Array], tuple[ActorState, Transition]]  # leaves [T, B, ...]
    sample: Callable[[Array, ReplayState], Sample]  # the windows of U batches [U, N]
    gather: Callable[[ReplayState, Sample], Transition]  # windows, leaves [N, L, ...]
    reanalyze: Callable[[LearnerState, Transition, Array], tuple[Transition, Metrics]]  # searches windows again, or not
    make_batch: Callable[[Transition, Array, Array, Array], Batch]  # (windows, weights [N], updates made, key)
    augment: Callable[[Batch, Array], Batch]  # symmetries of the game, if any
    update: Callable[[LearnerState, Batch], tuple[LearnerState, Metrics]]  # one gradient step
    write_back: Callable[[Sample, Transition, Batch], tuple[tuple[WriteBack, ...], Metrics]]  # for the buffer
    frames_to_learn: int  # of each game in the buffer before the first update


def train_iteration(state: TrainState, *, parts: Parts) -> tuple[TrainState, Metrics]:
    """One iteration of MuZero: play T moves of B games, store them, learn from U batches of windows.

    Runs inside `shard_map`: leaves of `state` are one device's share, and `AXIS` names the devices.

    Args:
      state: the whole run. Its key is `fold_in(seed_key, iteration)`, so a resumed run draws the same numbers.
      parts: the functions of the run, with their hyperparameters bound.

    Returns:
      the state after the iteration, and scalar metrics, equal on all devices.
    """
    key = jax.random.fold_in(jax.random.fold_in(state.seed_key, state.iteration), jax.lax.axis_index(AXIS))
    rollout_key, learn_key = jax.random.split(key)

    actor, trajectory = parts.rollout(state.learner.params, state.actor, rollout_key)
    buffer = replay.add(state.replay, trajectory)

    # Until the buffer is ready, only play.
    ready = buffer.num_stored >= parts.frames_to_learn
    learn = jax.jit(partial(learn_from, parts=parts), inline=True)  # traced once, for its outputs' shapes too
    learned = jax.lax.cond(ready, learn, partial(skip_learning, learn), state.learner, buffer, learn_key)
    learner, found, learn_metrics = learned
    buffer = replay.write_back(buffer, found)

    metrics = jax.lax.psum(self_play.statistics(trajectory, state.actor, actor), AXIS) | learn_metrics
    return TrainState(actor, learner, buffer, state.iteration + 1, state.seed_key), metrics


def learn_iteration(state: TrainState, *, parts: Parts) -> tuple[TrainState, Metrics]:
    """One iteration of MuZero Unplugged: learn from U batches of stored windows; no game is played.

    (Schrittwieser et al. 2021, arXiv 2104.06294.) Runs inside `shard_map`, as `train_iteration` does.
    """
    key = jax.random.fold_in(jax.random.fold_in(state.seed_key, state.iteration), jax.lax.axis_index(AXIS))
    learner, found, metrics = learn_from(state.learner, state.replay, key, parts=parts)
    buffer = replay.write_back(state.replay, found)
    return state._replace(learner=learner, replay=buffer, iteration=state.iteration + 1), metrics


def learn_from(
    learner: LearnerState, buffer: ReplayState, key: Array, *, parts: Parts
) -> tuple[LearnerState, tuple[WriteBack, ...], Metrics]:
    """U gradient steps on windows of the buffer.

    Args:
      learner: weights and optimiser. buffer: with at least one window. key: for windows, symmetries and searches.

    Returns:
      the learner, what the steps found out about stored frames (leaves [U, ...]), and means of the metrics.
    """
    sample_key, update_key = jax.random.split(key)
    sample = parts.sample(sample_key, buffer)
    num_updates = sample.slot.shape[0]
    steps = sample, jax.random.split(update_key, num_updates)
    learner, (found, metrics) = jax.lax.scan(partial(learn_step, buffer=buffer, parts=parts), learner, steps)
    return learner, found, jax.tree.map(jnp.mean, metrics) | {"train/updates": jnp.float32(num_updates)}


def learn_step(
    learner: LearnerState, step: tuple[Sample, Array], *, buffer: ReplayState, parts: Parts
) -> tuple[LearnerState, tuple[tuple[WriteBack, ...], Metrics]]:
    """One gradient step on N windows: read, search again, make targets, apply a symmetry, descend.

    Args:
      step: where the N windows lie, and a key.

    Returns:
      the learner, and (what was found out about stored frames, scalar metrics).
    """
    sample, key = step
    reanalyze_key, batch_key, augment_key = jax.random.split(key, 3)
    window, staleness = parts.reanalyze(learner, parts.gather(buffer, sample), reanalyze_key)
    batch = parts.make_batch(window, sample.weight, learner.num_updates, batch_key)
    learner, metrics = parts.update(learner, parts.augment(batch, augment_key))
    found, surprise = parts.write_back(sample, window, batch)
    return learner, (found, metrics | jax.lax.pmean(staleness | surprise, AXIS))


def skip_learning(
    learn: Callable, learner: LearnerState, *inputs
) -> tuple[LearnerState, tuple[WriteBack, ...], Metrics]:
    """The learner as it is, in the structure of `learn`'s outputs: no frame is known, and metrics are 0."""
    _, *others = jax.eval_shape(learn, learner, *inputs)
    return learner, *jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), others)
