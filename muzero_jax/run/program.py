"""The compiled program of a run, `jit(scan(train_iteration))` over a mesh, and its state.

A run that only learns from stored games scans `learn_iteration` instead.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from muzero_jax.algorithm import Algorithm
from muzero_jax.algorithm.training import learn_iteration, train_iteration
from muzero_jax.ops.mesh import AXIS, shard_map
from muzero_jax.types import Metrics, ReplayState, TrainState

_INIT = 2**32 - 1  # folded into the seed for the initial state; iterations fold in 0, 1, 2, ...


def init(algorithm: Algorithm, seed: Any) -> TrainState:
    """The state of a run before its first iteration."""
    seed_key = jax.random.key(seed)
    actor_key, learner_key = jax.random.split(jax.random.fold_in(seed_key, _INIT))
    environment = algorithm.environment
    model = algorithm.model
    actor = algorithm.init_actor(environment, actor_key)
    learner = algorithm.init_learner(model, algorithm.optimiser, learner_key)
    _, trajectory = jax.eval_shape(algorithm.play, learner.params, actor, actor_key)
    transition = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), trajectory)
    return TrainState(actor, learner, algorithm.init_replay(transition), jnp.int32(0), seed_key)


def state_specs() -> TrainState:
    """A TrainState's partition over the mesh, as a prefix tree: games and buffer are split, the rest is replicated."""
    everywhere = PartitionSpec()
    games = PartitionSpec(AXIS)
    frames = PartitionSpec(None, AXIS)
    buffer = ReplayState(frames, everywhere, everywhere, priority=frames)  # type: ignore  # also if it is None
    return TrainState(games, everywhere, buffer, everywhere, everywhere)  # type: ignore


def make_init(algorithm: Algorithm, seed: int, mesh: Mesh) -> Any:
    """`init` under jit, which makes every leaf on its devices.

    Its `eval_shape()` has the shapes, dtypes and shardings to restore a checkpoint and to plan memory; a later call of
    the same object does not trace again.
    """
    return jax.jit(partial(init, algorithm, seed), out_shardings=placed(state_specs(), mesh))


def placed(specs: TrainState, mesh: Mesh) -> TrainState:
    """The partitions of a state as shardings over a mesh."""
    return jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda node: isinstance(node, PartitionSpec)
    )


def make_chunk(
    algorithm: Algorithm, mesh: Mesh, *, plays: bool = True
) -> Callable[[TrainState, Any], tuple[TrainState, Metrics]]:
    """The program of a chunk: (state, progress [I]) -> the state after I iterations, and their metrics [I].

    `progress` is the spent share of the run's budget before each iteration. The state is donated. `plays` says whether
    an iteration plays before it learns.
    """
    specs = state_specs()
    everywhere = PartitionSpec()
    chunk = shard_map(partial(iterate, algorithm, plays=plays), mesh, (specs, everywhere), (specs, everywhere))
    return jax.jit(chunk, donate_argnums=0)


def iterate(
    algorithm: Algorithm, state: TrainState, progress: Array, *, plays: bool = True
) -> tuple[TrainState, Metrics]:
    """One iteration for each entry of `progress`, on one device's share of the state; metrics are stacked."""
    return jax.lax.scan(partial(train_iteration if plays else learn_iteration, algorithm=algorithm), state, progress)


def abstract_progress(num_iterations: int) -> jax.ShapeDtypeStruct:
    """The shape of a chunk's progress, to compile it for."""
    return jax.ShapeDtypeStruct((num_iterations,), jnp.float32)
