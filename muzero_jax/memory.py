"""What a run will hold in memory, told before anything is allocated."""

import math
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh

from muzero_jax import devices, training
from muzero_jax.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Params

_STATISTICS_PER_EDGE = 6 * 4
"""mctx keeps index, prior, visits, reward, discount and value of every edge: six arrays of 4 bytes."""

_HINTS = {
    "replay": "--replay.replay-length or --self-play.num-envs",
    "search tree": "--search.num-simulations or --self-play.num-envs",
    "batch": "--optimiser.batch-size",
}


def check(config: Config, mesh: Mesh, say: Callable[[str], None]) -> None:
    """Tells the plan; raises ValueError, naming the flags to lower, if it will not fit."""
    rows = devices.plan_memory(memory_parts(config, training.make_parts(config), mesh))
    available = devices.available_memory_bytes(mesh.size)
    say(devices.format_plan(rows, available))
    largest = rows[0][0]
    devices.check_plan(sum(size for _, size in rows), available, _HINTS.get(largest, "--self-play.num-envs"))


def memory_parts(config: Config, parts: Parts, mesh: Mesh) -> dict[str, Any]:
    """What each device holds, by purpose: abstract pytrees with their shardings, or bytes."""
    state = training.abstract_state(config, parts, mesh)
    return {
        "replay": state.replay,
        "games": state.actor,
        "parameters": state.learner.params,
        "optimiser": state.learner.optimiser_state,
        "search tree": tree_bytes(config, parts, state.learner.params) // mesh.size,
        "batch": batch_bytes(config, state.replay.transitions) // mesh.size,
    }


def tree_bytes(config: Config, parts: Parts, params: Params) -> int:
    """The search trees of all games: (simulations + 1) nodes each, an embedding a node and statistics an edge."""
    observation = jax.ShapeDtypeStruct((1, *parts.environment.observation_shape), bool)
    embedding = jax.eval_shape(parts.model.initial_inference, params, observation).embedding
    node = embedding.size * embedding.dtype.itemsize + parts.environment.num_actions * _STATISTICS_PER_EDGE
    return config.self_play.num_envs * (config.search.num_simulations + 1) * node


def batch_bytes(config: Config, ring: Any) -> int:
    """The windows of one update; leaves of `ring` are [C, B, ...]."""
    frame = sum(math.prod(leaf.shape[2:]) * leaf.dtype.itemsize for leaf in jax.tree.leaves(ring))
    return config.optimiser.batch_size * config.window_length * frame
