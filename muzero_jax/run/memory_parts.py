"""What self-play, Reanalyze, learning and matches need while they run, by arithmetic on shapes: nothing is compiled.

Trees are counted node by node. What learning needs is the residuals that JAX keeps for the backward pass, found by
tracing the model for batches of two sizes: their difference leaves out what does not grow with the batch, such as the
parameters. All sizes are of all devices together.
"""

import math
from collections.abc import Callable
from typing import Any

import jax

from muzero_jax import building
from muzero_jax.search import loop_free, narrow
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Model, Params, Transition

_STATISTICS_PER_EDGE = {"own": 4 * 4, "loop_free": 8 * 4, "mctx": 6 * 4}
"""Child, prior, visits and Q of every edge, 4 bytes each; mctx has reward, discount and value for Q. Without loops the
rows of a whole path are looked at at once: as much again, if no more simulations than levels are done."""
_STATISTICS_PER_NODE = 7 * 4
_BATCHES = 64, 128


def self_play_bytes(config: Config, node: int, frame: Transition) -> int:
    """The search trees of all games, and the moves of one rollout. `frame`: one transition's abstract shapes."""
    s = config.self_play
    return s.num_envs * ((config.search.num_simulations + 1) * node + s.rollout_length * tree_bytes(frame))


def reanalyze_bytes(config: Config, node: int, frame: Transition) -> int:
    """The search trees of every frame of the windows that are searched again, and the batch."""
    fraction = config.replay.reanalyze_fraction
    searched = max(1 if fraction else 0, round(config.optimiser.batch_size * fraction)) * config.window_length
    return searched * (config.search.num_simulations + 1) * node + batch_bytes(config, frame) if searched else 0


def learning_bytes(config: Config, model: Model, params: Params, frame: Transition, *, windows: int) -> int:
    """The batch, and what the backward pass keeps of the forward pass: root, K unrolled steps, reconstructions.

    windows: how many a gradient is computed of at once.
    """
    o, steps = config.optimiser, config.targets.unroll_steps
    embedding = _row(jax.eval_shape(model.initial_inference, params, _batch(frame.observation, 1)).embedding)
    root = residual_bytes(model.initial_inference, params, frame.observation)
    step = residual_bytes(model.recurrent_inference, params, embedding, frame.action)
    if o.reconstruction_weight:
        reconstruction = residual_bytes(model.reconstruct, params, embedding)
        root, step = root + reconstruction, step + reconstruction
    unrolled = step + steps * tree_bytes(embedding) if o.checkpoint_unroll else steps * step
    return windows * (root + unrolled) + batch_bytes(config, frame)


def residual_bytes(function: Callable, params: Params, *inputs: Any) -> int:
    """What the gradient of `function(params, *inputs)` keeps for each element of a batch of `inputs`."""

    def residuals(*arguments):
        return jax.vjp(function, *arguments)[1]

    few, many = (tree_bytes(jax.eval_shape(residuals, params, *_batch(inputs, size))) for size in _BATCHES)
    return (many - few) // (_BATCHES[1] - _BATCHES[0])


def match_bytes(config: Config, parts: Parts, node: int) -> int:
    """The trees of the final matches: the agent's or, where they are larger, those of the strongest rollout MCTS.

    The players move in turn. Half of the games are played at once, then the other half with colours exchanged.
    """
    e = config.evaluation
    state = jax.eval_shape(parts.environment.init, jax.random.key(0))
    rules_node = 12 * parts.environment.num_actions + tree_bytes(state.replace(observation=None))
    mcts = (max(e.mcts_simulations, default=0) + 1) * rules_node
    return max(e.final_games, e.games) // 2 * max((e.num_simulations + 1) * node, mcts)


def node_bytes(config: Config, parts: Parts, params: Params) -> int:
    """A node of the learned model's tree: an embedding, and statistics of every edge that it has room for."""
    observation = jax.ShapeDtypeStruct((1, *parts.environment.observation_shape), bool)
    embedding = jax.eval_shape(parts.model.initial_inference, params, observation).embedding
    s, num_actions = config.search, parts.environment.num_actions
    slots = narrow.num_slots(s.max_children, num_actions)
    per_edge = _STATISTICS_PER_EDGE[s.engine] + (4 if slots < num_actions else 0)  # the action that it stands for
    path = 4 * (3 + loop_free.MAX_DEPTH + 1) if s.engine == "loop_free" else 0
    return tree_bytes(embedding) + _STATISTICS_PER_NODE + path + slots * per_edge


def batch_bytes(config: Config, frame: Transition) -> int:
    """The windows of one update; of their observations only those that are read."""
    observations = building.observation_length(config) * tree_bytes(frame.observation)
    rest = config.window_length * tree_bytes(frame._replace(observation=None))
    return config.optimiser.batch_size * (observations + rest)


def tree_bytes(tree: Any) -> int:
    """Bytes of all leaves of a pytree, abstract or not."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _batch(tree: Any, size: int) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((size, *x.shape), x.dtype), tree)


def _row(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), tree)
