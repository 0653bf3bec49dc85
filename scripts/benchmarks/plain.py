"""Yardsticks written as one would first write them, from the library's own parameters; tests hold them to its numbers.

The MLP and the tower take what arrays of NumPy and JAX have in common; a tower's convolutions are XLA's own. The search
is PUCT with a tree of Python objects and a network call of one position a simulation: visit for visit ours.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.algorithm import Algorithm
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, NetworkOutput

# --- the network ------------------------------------------------------------------------------------------------------

Params = Mapping[str, Any]


def root(params: Params, observation: Any) -> tuple[Any, Any]:
    """f(h(o)): policy and value logits side by side [N, A + S], and the embedding; o is [N, O] or [N, H, W, C]."""
    embedding = _min_max_scale(_residual(params["representation"], observation))
    return _predict(params, embedding), embedding


def step(params: Params, embedding: Any, action: Any) -> tuple[Any, Any, Any]:
    """f(g(s, a)): reward logits [N, S], policy and value logits [N, A + S], and the embedding.

    `action` is integers [N]; of a tower, those and the planes [N, H, W, 1] with a one at the cell that each touches.
    """
    trunk = _residual(params["dynamics"], embedding, _encode(params["action_encoder"], action))
    embedding = _min_max_scale(trunk)
    return _heads(params["reward_head"], trunk), _predict(params, embedding), embedding


def _predict(params, embedding):
    return _heads(params["prediction_heads"], _residual(params["prediction"], embedding))


def _encode(params, action):
    if "embedding" in params:
        return params["embedding"][action]
    index, plane = action
    return _layer(params, plane) + params["Embed_0"]["embedding"][index][:, None, None, :]


def _residual(params, x, bias=0.0):
    x = _layer(params["first"], x) + bias
    for block in range(sum(name.startswith("norms_") for name in params) // 2):
        y = x
        for i in (2 * block, 2 * block + 1):
            y = _layer(params[f"layers_{i}"], _layer_norm(params[f"norms_{i}"], y).clip(0))
        x = x + y
    return x


def _heads(params, x):
    x = _layer_norm(params["LayerNorm_0"], x).clip(0)
    if "BoardConvolution_0" in params:
        x = _layer(params["BoardConvolution_0"], x).reshape(x.shape[0], -1).clip(0)
    return _layer(params["Dense_0"], x)


def _layer(params, x):
    """Dense, or where the kernel is one of a convolution, that."""
    kernel = params["kernel"]
    if kernel.ndim == 4:
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    else:
        x = x @ kernel
    return x + params.get("bias", 0.0)


def _layer_norm(params, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / (variance + 1e-6) ** 0.5 * params["scale"] + params["bias"]


def _min_max_scale(x):
    axes = tuple(range(1, x.ndim))
    low, high = x.min(axes, keepdims=True), x.max(axes, keepdims=True)
    return (x - low) / (high - low + 1e-5)


def model(config: Config, algorithm: Algorithm) -> Model:
    """Our model's network and parameters, computed by these functions, the whole batch at once."""
    num_actions, is_mlp = algorithm.environment.num_actions, config.network.kind == "mlp"
    board = algorithm.environment.board

    def output(embedding, reward_logits, logits):
        policy_logits, value_logits = jnp.split(logits, [num_actions], axis=-1)
        return NetworkOutput(embedding, reward_logits, value_logits, policy_logits)

    def initial_inference(params, observation):
        x = observation.astype(jnp.float32)
        logits, embedding = root(params, x.reshape(len(x), -1) if is_mlp else x)
        return output(embedding, jnp.zeros((len(x), config.network.num_bins)), logits)

    def recurrent_inference(params, embedding, action):
        if not is_mlp:
            assert board is not None
            planes = jax.nn.one_hot(board.action_location[action], math.prod(board.shape))
            action = action, planes.reshape(-1, *board.shape, 1)
        reward_logits, logits, embedding = step(params, embedding, action)
        return output(embedding, reward_logits, logits)

    return algorithm.model._replace(
        initial_inference=initial_inference, recurrent_inference=recurrent_inference, layer_bytes=None
    )


# --- the search -------------------------------------------------------------------------------------------------------


class Node:
    """A position in the tree: what the network said of it, and what search found below it."""

    def __init__(self, prior: list[float], value: float, reward: float, embedding: Any):
        self.prior, self.reward, self.embedding = prior, reward, embedding
        self.value, self.visits = value, 1
        self.children: dict[int, Node] = {}

    def visit_counts(self) -> np.ndarray:
        """How often each action was tried: [A]."""
        counts = np.zeros(len(self.prior))
        for action, child in self.children.items():
            counts[action] = child.visits
        return counts


class PlainSearch:
    """PUCT of one position at a time, without noise at the root; the network is two compiled functions of batch 1."""

    def __init__(self, config: Config, algorithm: Algorithm, params: Any):
        self.settings, self.discount = config.search, algorithm.environment.constant_discount
        self.root_inference = partial(jax.jit(partial(_judge_root, algorithm.model)), params)
        self.recurrent_inference = partial(jax.jit(partial(_judge_move, algorithm.model)), params)

    def __call__(self, observation: Any, legal_action_mask: np.ndarray) -> Node:
        """The root of a tree of `num_simulations` more nodes."""
        embedding, said = self.root_inference(observation, legal_action_mask)
        prior, value = jax.device_get(said)
        tree = Node(prior.tolist(), float(value), 0.0, embedding)
        legal = np.flatnonzero(legal_action_mask).tolist()
        for _ in range(self.settings.num_simulations):
            self.simulate(tree, legal)
        return tree

    def simulate(self, tree: Node, legal: list[int]) -> None:
        """Walks down to an edge without a node, adds the node, and takes its value back up the path."""
        path, actions = [tree], legal
        while (child := path[-1].children.get(action := self.select(path[-1], actions))) is not None:
            path.append(child)
            actions = range(len(child.prior))
        leaf = self.expand(path[-1], action)
        value, reward = leaf.value, leaf.reward
        for node in reversed(path):
            value = reward + self.discount * value
            node.value = (node.value * node.visits + value) / (node.visits + 1)
            node.visits += 1
            reward = node.reward

    def expand(self, node: Node, action: int) -> Node:
        """The node below `action`, as the network imagines it."""
        embedding, said = self.recurrent_inference(node.embedding, np.int32(action))
        prior, value, reward = jax.device_get(said)
        node.children[action] = Node(prior.tolist(), float(value), float(reward), embedding)
        return node.children[action]

    def select(self, node: Node, actions: Any) -> int:
        """The action of the highest PUCT score (MuZero, appendix B); Q is scaled to [0, 1] among the siblings."""
        q = {action: child.reward + self.discount * child.value for action, child in node.children.items()}
        low, high = min([node.value, *q.values()]), max([node.value, *q.values()])
        span, s = max(high - low, 1e-8), self.settings
        exploration = s.pb_c_init + math.log((node.visits + s.pb_c_base + 1) / s.pb_c_base)

        def score(action):
            visits = node.children[action].visits if action in q else 0
            bonus = math.sqrt(node.visits) * exploration * node.prior[action] / (visits + 1)
            return bonus + ((q[action] - low) / span if action in q else 0.0)

        return max(actions, key=score)


def _judge_root(model, params, observation, legal_action_mask):
    output = model.initial_inference(params, observation[None])
    logits = jnp.where(legal_action_mask, output.policy_logits[0], -jnp.inf)
    return output.embedding, (jax.nn.softmax(logits), model.to_scalar(output.value_logits)[0])


def _judge_move(model, params, embedding, action):
    output = model.recurrent_inference(params, embedding, action[None])
    reward, value = (model.to_scalar(x)[0] for x in (output.reward_logits, output.value_logits))
    return output.embedding, (jax.nn.softmax(output.policy_logits[0]), value, reward)
