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

_STATISTICS_PER_EDGE = {"own": 4 * 4, "mctx": 6 * 4}
"""Child, prior, visits and Q of every edge, 4 bytes each; mctx has reward, discount and value for Q."""
_STATISTICS_PER_NODE = 7 * 4

_HINTS = {
    "replay": "--replay.replay-length or --self-play.num-envs",
    "search tree": "--search.num-simulations or --self-play.num-envs",
    "reanalyze": "--replay.reanalyze-fraction or --optimiser.batch-size",
    "batch": "--optimiser.batch-size",
    "evaluation": "--evaluation.final-games or --evaluation.mcts-simulations",
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
        "search tree": self_play_tree_bytes(config, parts, state.learner.params) // mesh.size,
        "reanalyze": reanalyze_tree_bytes(config, parts, state.learner.params) // mesh.size,
        "evaluation": evaluation_bytes(config, parts, state.learner.params) // mesh.size,
        "batch": batch_bytes(config, state.replay.transitions) // mesh.size,
    }


def self_play_tree_bytes(config: Config, parts: Parts, params: Params) -> int:
    """The search trees of all games in self-play."""
    return config.self_play.num_envs * (config.search.num_simulations + 1) * node_bytes(config, parts, params)


def reanalyze_tree_bytes(config: Config, parts: Parts, params: Params) -> int:
    """The search trees of every frame of the windows that are searched again."""
    searched = round(config.optimiser.batch_size * config.replay.reanalyze_fraction) * config.window_length
    return searched * (config.search.num_simulations + 1) * node_bytes(config, parts, params)


def node_bytes(config: Config, parts: Parts, params: Params) -> int:
    """A node of the learned model's tree: an embedding, and statistics of every edge."""
    observation = jax.ShapeDtypeStruct((1, *parts.environment.observation_shape), bool)
    embedding = jax.eval_shape(parts.model.initial_inference, params, observation).embedding
    statistics = _STATISTICS_PER_NODE + parts.environment.num_actions * _STATISTICS_PER_EDGE[config.search.engine]
    return embedding.size * embedding.dtype.itemsize + statistics


def evaluation_bytes(config: Config, parts: Parts, params: Params) -> int:
    """The trees of the final matches: the agent's and, beside it, those of the strongest rollout MCTS."""
    e = config.evaluation
    state = jax.eval_shape(parts.environment.init, jax.random.key(0))
    rules_node = 12 * parts.environment.num_actions + _frame_bytes(state.replace(observation=None))
    mcts = (max(e.mcts_simulations, default=0) + 1) * rules_node
    return e.final_games // 2 * ((e.num_simulations + 1) * node_bytes(config, parts, params) + mcts)


def batch_bytes(config: Config, ring: Any) -> int:
    """The windows of one update; leaves of `ring` are [C, B, ...]."""
    frame = _frame_bytes(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), ring))
    return config.optimiser.batch_size * config.window_length * frame


def _frame_bytes(tree: Any) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
