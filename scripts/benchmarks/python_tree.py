"""A yardstick: PUCT as one would first write it, with a tree of Python objects and a network call a simulation.

It searches one position at a time, without noise at the root; a test holds its trees to ours, visit for visit.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.algorithm import Algorithm
from muzero_jax.storage.config import Config


class Node:
    """A position in the tree: what the network said of it, and what search found below it."""

    def __init__(self, embedding: Any, prior: Any, value: float, reward: float = 0.0):
        self.embedding, self.prior, self.value, self.reward = embedding, prior.tolist(), float(value), float(reward)
        self.visits, self.children = 1, {}

    def visit_counts(self) -> np.ndarray:
        """How often each action was tried: [A]."""
        counts = np.zeros(len(self.prior))
        for action, child in self.children.items():
            counts[action] = child.visits
        return counts


class PythonTree:
    """The search of a config; its network is two compiled functions of batch 1."""

    def __init__(self, config: Config, algorithm: Algorithm, params: Any):
        self.settings = config.search
        self.discount: Any = algorithm.environment.discount  # which alternating turns have
        self.judge_root = partial(jax.jit(partial(_judge_root, algorithm.model)), params)
        self.judge_move = partial(jax.jit(partial(_judge_move, algorithm.model)), params)

    def __call__(self, observation: Any, legal_action_mask: np.ndarray) -> Node:
        """The root of a tree of `num_simulations` more nodes."""
        embedding, said = self.judge_root(observation, legal_action_mask)
        tree = Node(embedding, *jax.device_get(said))
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
        embedding, said = self.judge_move(path[-1].embedding, np.int32(action))
        leaf = path[-1].children[action] = Node(embedding, *jax.device_get(said))
        value, reward = leaf.value, leaf.reward
        for node in reversed(path):
            value = reward + self.discount * value
            node.value = (node.value * node.visits + value) / (node.visits + 1)
            node.visits += 1
            reward = node.reward

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
    value, reward = (model.to_scalar(x)[0] for x in (output.value_logits, output.reward_logits))
    return output.embedding, (jax.nn.softmax(output.policy_logits[0]), value, reward)
