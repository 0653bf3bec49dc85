"""What a run will hold in memory, told before anything is allocated."""

from collections.abc import Callable

import jax
from jax.sharding import Mesh

from muzero_jax import devices, training
from muzero_jax.config import Config
from muzero_jax.training import Parts

_STATISTICS_PER_EDGE = 6 * 4
"""mctx keeps index, prior, visits, reward, discount and value of every edge: six arrays of 4 bytes."""


def nbytes(tree) -> int:
    """Bytes of a pytree of (abstract) arrays; a typed key counts as its raw words."""
    leaves = jax.tree.leaves(tree)
    return sum(
        leaf.size * (8 if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.dtype.itemsize)
        for leaf in leaves
    )


def tree_bytes(config: Config, parts: Parts, params) -> int:
    """The search tree of all games: (simulations + 1) nodes each, an embedding a node and statistics an edge."""
    observation = jax.ShapeDtypeStruct((1, *parts.environment.observation_shape), bool)
    embedding = jax.eval_shape(parts.model.initial_inference, params, observation).embedding
    nodes = config.self_play.num_envs * (config.search.num_simulations + 1)
    return nodes * (nbytes(embedding) + parts.environment.num_actions * _STATISTICS_PER_EDGE)


def check(config: Config, mesh: Mesh, say: Callable[[str], None]) -> None:
    """Tells the plan; raises ValueError, naming the flags to lower, if it will not fit."""
    rows = devices.plan_memory(memory_parts(config, training.make_parts(config), mesh))
    available = devices.available_memory_bytes(mesh.size)
    say(devices.format_plan(rows, available))
    hint = {
        "replay": "--replay.replay-length or --self-play.num-envs",
        "search tree": "--search.num-simulations or --self-play.num-envs",
        "batch": "--optimiser.batch-size",
    }
    devices.check_plan(sum(size for _, size in rows), available, hint.get(rows[0][0], "--self-play.num-envs"))


def memory_parts(config: Config, parts: Parts, mesh: Mesh) -> dict[str, int]:
    """Bytes by purpose, on each device."""
    state = training.abstract_state(config, parts, mesh)
    window_bytes = nbytes(state.replay.transitions) // (config.replay.replay_length * config.self_play.num_envs)
    return {
        "replay": nbytes(state.replay) // mesh.size,
        "search tree": tree_bytes(config, parts, state.learner.params) // mesh.size,
        "games": nbytes(state.actor) // mesh.size,
        "parameters": nbytes(state.learner.params),
        "optimiser": nbytes(state.learner.optimiser_state),
        "batch": config.optimiser.batch_size * config.window_length * window_bytes // mesh.size,
    }
