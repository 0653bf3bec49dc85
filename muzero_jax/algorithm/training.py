"""MuZero on one page: `train_iteration` is the algorithm; each name in it leads to one file of `learning`.

Training runs as a single compiled program, `jit(scan(train_iteration))` (`run.program`). Between chunks of it Python
writes logs, evaluates and saves. Every choice is a field of `Algorithm`, so this module sees no config and no
hyperparameter. Devices share the games and the batch over one mesh axis, "data". Each plays its own games into its
slice of the replay buffer and learns from its slice of the batch; they exchange only gradients and small statistics.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from muzero_jax.algorithm.record import Algorithm
from muzero_jax.learning import replay, self_play
from muzero_jax.ops.conditional import step_or_zeros
from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import LearnerState, Metrics, ReplayState, Sample, TrainState, WriteBack


def train_iteration(state: TrainState, progress: Array, *, algorithm: Algorithm) -> tuple[TrainState, Metrics]:
    """One iteration of MuZero: play T moves of B games, store them, learn from U batches of windows.

    Runs inside `shard_map`: leaves of `state` are one device's share, and `AXIS` names the devices.

    Args:
      state: the whole run. Its keys follow from `seed_key` and `iteration`, so a resumed run samples the same numbers.
      progress: [] the share of the run's budget that is spent, from 0 to 1; schedules are functions of it.
      algorithm: the game, the network and the stages, with their hyperparameters bound.

    Returns:
      the state after the iteration, and scalar metrics, equal on all devices.
    """
    rollout_key, learn_key = jax.random.split(iteration_key(state))
    actor, trajectory = algorithm.play(state.learner.params, state.actor, rollout_key)
    buffer = replay.add(state.replay, trajectory)
    learner, buffer, metrics = learn(state.learner, buffer, progress, learn_key, algorithm=algorithm)
    metrics |= jax.lax.psum(self_play.statistics(trajectory, state.actor, actor), AXIS)
    return TrainState(actor, learner, buffer, state.iteration + 1, state.seed_key), metrics


def learn_iteration(state: TrainState, progress: Array, *, algorithm: Algorithm) -> tuple[TrainState, Metrics]:
    """One iteration of MuZero Unplugged: learn from U batches of stored windows; no game is played.

    (Schrittwieser et al. 2021, arXiv 2104.06294.) Arguments and results are those of `train_iteration`.
    """
    key = iteration_key(state)
    learner, buffer, metrics = learn(state.learner, state.replay, progress, key, algorithm=algorithm)
    return state._replace(learner=learner, replay=buffer, iteration=state.iteration + 1), metrics


def iteration_key(state: TrainState) -> Array:
    """The key of this iteration, different on each device."""
    return jax.random.fold_in(jax.random.fold_in(state.seed_key, state.iteration), jax.lax.axis_index(AXIS))


def learn(
    learner: LearnerState, buffer: ReplayState, progress: Array, key: Array, *, algorithm: Algorithm
) -> tuple[LearnerState, ReplayState, Metrics]:
    """Makes U gradient steps on windows of the buffer, and writes back to it what they found out about stored frames.

    While the buffer holds fewer than `min_frames` frames of each game, no step is made and the metrics are 0. A
    separate program for these first frames would compile the search a second time: 6 s for Hex 5x5 on two cores.
    """
    is_ready = buffer.num_stored >= algorithm.min_frames
    steps = partial(learn_steps, algorithm=algorithm)
    learner, found, metrics = step_or_zeros(is_ready, steps, learner, buffer, progress, key)
    return learner, replay.write_back(buffer, found), metrics


def learn_steps(
    learner: LearnerState, buffer: ReplayState, progress: Array, key: Array, *, algorithm: Algorithm
) -> tuple[LearnerState, tuple[WriteBack, ...], Metrics]:
    """U gradient steps.

    Args:
      learner: weights and optimiser. buffer: with at least one window. key: for windows, symmetries and searches.

    Returns:
      the learner, what the steps found out about stored frames (leaves [U, ...]), and means of the metrics.
    """
    sample_key, update_key = jax.random.split(key)
    sample = algorithm.sample(sample_key, buffer)
    num_updates = sample.slot.shape[0]
    step = partial(learn_step, buffer=buffer, progress=progress, algorithm=algorithm)
    learner, (found, metrics) = jax.lax.scan(step, learner, (sample, jax.random.split(update_key, num_updates)))
    return learner, found, jax.tree.map(jnp.mean, metrics) | {"train/updates": jnp.float32(num_updates)}


def learn_step(
    learner: LearnerState,
    step: tuple[Sample, Array],
    *,
    buffer: ReplayState,
    progress: Array,
    algorithm: Algorithm,
) -> tuple[LearnerState, tuple[tuple[WriteBack, ...], Metrics]]:
    """One gradient step on N windows: read, search again, make targets, apply a symmetry, descend.

    Args:
      step: where the N windows lie, and a key.

    Returns:
      the learner, and (what was found out about stored frames, scalar metrics).
    """
    sample, key = step
    reanalyze_key, batch_key, augment_key = jax.random.split(key, 3)
    num_frames = algorithm.num_frames
    window = algorithm.gather(buffer, sample, num_frames=num_frames)
    window, searched, staleness = algorithm.reanalyze(learner, sample, window, reanalyze_key, search=algorithm.search())
    targets = algorithm.make_targets(window, progress)
    batch = algorithm.make_batch(window, targets, sample.weight, batch_key, num_frames=num_frames)
    turned = algorithm.augment(batch, augment_key)
    loss = partial(algorithm.loss, model=algorithm.model, terms=algorithm.terms)
    learner, metrics = algorithm.update(learner, turned, progress, loss=loss, optimiser=algorithm.optimiser)
    found, surprise = algorithm.write_back(sample, window, batch)
    return learner, (searched + found, metrics | jax.lax.pmean(staleness | surprise, AXIS))
