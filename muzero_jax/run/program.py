"""The one program of a run: `jit(scan(train_iteration))` over a mesh, and the state that it takes and gives back.

A run that learns from stored games alone scans `learn_iteration` instead.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from muzero_jax.ops.devices import AXIS, shard_map
from muzero_jax.training import Parts, learn_iteration, train_iteration
from muzero_jax.types import Metrics, ReplayState, TrainState

_INIT = 2**32 - 1  # folded into the seed for the initial state; iterations fold in 0, 1, 2, ...


@runtime_checkable
class Init(Protocol):
    """A compiled initialiser: makes the state of a run, or says what its shapes will be."""

    def __call__(self) -> TrainState:
        """The state, each leaf where it will live."""
        ...

    def eval_shape(self) -> TrainState:
        """Shapes, dtypes and shardings; a call of the same object does not trace again."""
        ...


def init(parts: Parts, seed: Any) -> TrainState:
    """The state of a run before its first iteration."""
    seed_key = jax.random.key(seed)
    actor_key, learner_key = jax.random.split(jax.random.fold_in(seed_key, _INIT))
    actor, learner = parts.init_actor(actor_key), parts.init_learner(learner_key)
    _, trajectory = jax.eval_shape(parts.rollout, learner.params, actor, actor_key)
    transition = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), trajectory)
    return TrainState(actor, learner, parts.init_replay(transition), jnp.int32(0), seed_key)


def state_specs() -> TrainState:
    """How a TrainState lies over the mesh: games and their buffer are split, all else is everywhere (a prefix tree)."""
    everywhere, games = PartitionSpec(), PartitionSpec(AXIS)
    frames = PartitionSpec(None, AXIS)
    buffer = ReplayState(frames, everywhere, everywhere, priority=frames)  # type: ignore  # counts for a None, too
    return TrainState(games, everywhere, buffer, everywhere, everywhere)  # type: ignore


def make_init(parts: Parts, seed: int, mesh: Mesh) -> Init:
    """`init` compiled so that every leaf is made where it will live.

    Its `eval_shape()` has the shapes, dtypes and shardings: what a checkpoint is restored onto and memory is planned
    from.
    """
    return jax.jit(partial(init, parts, seed), out_shardings=placed(state_specs(), mesh))


def placed(specs: TrainState, mesh: Mesh) -> TrainState:
    """The partitions of a state as shardings over a mesh."""
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=is_spec)


def is_spec(node: Any) -> bool:
    """Whether a node of a tree of partitions is one, and no branch."""
    return isinstance(node, PartitionSpec)


def make_chunk(
    parts: Parts, mesh: Mesh, *, num_iterations: int, plays: bool = True
) -> Callable[[TrainState], tuple[TrainState, Metrics]]:
    """The one program: `num_iterations` iterations. The state is donated; metrics are stacked by iteration.

    `plays` says whether an iteration plays before it learns.
    """
    chunk = partial(iterate, parts, num_iterations, plays=plays)
    specs = state_specs()
    return jax.jit(shard_map(chunk, mesh, (specs,), (specs, PartitionSpec())), donate_argnums=0)


def iterate(parts: Parts, num_iterations: int, state: TrainState, *, plays: bool = True) -> tuple[TrainState, Metrics]:
    """`num_iterations` iterations of one device's share of the state; metrics are stacked by iteration."""
    iteration = partial(train_iteration if plays else learn_iteration, parts=parts)
    return jax.lax.scan(lambda s, _: iteration(s), state, None, length=num_iterations)
