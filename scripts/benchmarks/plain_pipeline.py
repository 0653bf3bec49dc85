"""MuZero's self-play as one would first write it: one game, a tree of Python objects, a network call per simulation.

What the ablation starts from. It is kept small and honest: the network is compiled, the search is PUCT by the same
rules as ours, visit for visit without noise at the root, and moves go to a list in host memory.
"""

import math
from typing import Any

import jax
import numpy as np

from muzero_jax.learning.self_play import with_reset
from muzero_jax.storage.config import Config
from scripts.benchmarks import workloads
from scripts.measuring.timing import Variant


class Node:
    """A position in the tree: what the network said of it, and what search found below it."""

    def __init__(self, prior: list[float], value: float, reward: float, embedding: Any):
        self.prior, self.reward, self.embedding = prior, reward, embedding
        self.value, self.visits = value, 1
        self.children: dict[int, Node] = {}


class PlainGame:
    """One game, its network as two compiled functions of batch 1, and everything else in Python."""

    def __init__(self, config: Config):
        self.search_config, self.algorithm = config.search, workloads.algorithm_of(config)
        self.discount = self.algorithm.environment.constant_discount
        self.params = workloads.noisy_params(self.algorithm.model)
        self.random, self.key = np.random.default_rng(0), jax.random.key(0)
        self.root_inference = jax.jit(self._root_inference)
        self.recurrent_inference = jax.jit(self._recurrent_inference)
        self.step = jax.jit(with_reset(self.algorithm.environment))
        self.state = jax.jit(self.algorithm.environment.init)(self.key)
        self.replay: list[tuple] = []

    def _root_inference(self, params, observation, legal_action_mask):
        output = self.algorithm.model.initial_inference(params, observation[None])
        logits = jax.numpy.where(legal_action_mask, output.policy_logits[0], -jax.numpy.inf)
        return output.embedding, (jax.nn.softmax(logits), self.algorithm.model.to_scalar(output.value_logits)[0])

    def _recurrent_inference(self, params, embedding, action):
        output = self.algorithm.model.recurrent_inference(params, embedding, action[None])
        reward, value = (self.algorithm.model.to_scalar(x)[0] for x in (output.reward_logits, output.value_logits))
        return output.embedding, (jax.nn.softmax(output.policy_logits[0]), value, reward)

    def move(self) -> int:
        """Searches, plays a move drawn from the visit counts, and remembers it; returns the action."""
        observation = np.asarray(self.state.observation, np.float32)
        legal_action_mask = np.asarray(self.state.legal_action_mask)
        root = self.search(observation, legal_action_mask)
        policy = visit_counts(root) / (root.visits - 1)
        action = int(self.random.choice(len(policy), p=policy))
        self.key, reset_key = jax.random.split(self.key)
        self.state, reward, discount, *_ = self.step(self.state, np.int32(action), reset_key)
        self.replay.append((observation, legal_action_mask, action, float(reward), float(discount), policy, root.value))
        return action

    def search(self, observation: np.ndarray, legal_action_mask: np.ndarray) -> Node:
        """The root of a tree of `num_simulations` more nodes."""
        embedding, said = self.root_inference(self.params, observation, legal_action_mask)
        prior, value = jax.device_get(said)
        root = Node(prior.tolist(), float(value), 0.0, embedding)
        legal = np.flatnonzero(legal_action_mask).tolist()
        for _ in range(self.search_config.num_simulations):
            self.simulate(root, legal)
        return root

    def simulate(self, root: Node, legal: list[int]) -> None:
        """Walks down to an edge without a node, adds the node, and takes its value back up the path."""
        path, actions = [root], legal
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
        embedding, said = self.recurrent_inference(self.params, node.embedding, np.int32(action))
        prior, value, reward = jax.device_get(said)
        node.children[action] = Node(prior.tolist(), float(value), float(reward), embedding)
        return node.children[action]

    def select(self, node: Node, actions: Any) -> int:
        """The action of the highest PUCT score (MuZero, appendix B); Q is scaled to [0, 1] among the siblings."""
        q = {action: child.reward + self.discount * child.value for action, child in node.children.items()}
        low, high = min([node.value, *q.values()]), max([node.value, *q.values()])
        span, s = max(high - low, 1e-8), self.search_config
        growth = math.log((node.visits + s.pb_c_base + 1) / s.pb_c_base)
        exploration = math.sqrt(node.visits) * (s.pb_c_init + growth)

        def score(action):
            child = node.children.get(action)
            visits = child.visits if child else 0
            return exploration * node.prior[action] / (visits + 1) + ((q[action] - low) / span if child else 0.0)

        return max(actions, key=score)


def visit_counts(root: Node) -> np.ndarray:
    """How often each action was tried: [A]."""
    counts = np.zeros(len(root.prior))
    for action, child in root.children.items():
        counts[action] = child.visits
    return counts


def self_play(config: Config) -> Variant:
    """Four moves of one game; the unit is a move."""
    game = PlainGame(config)
    return Variant(lambda: [game.move() for _ in range(4)], 4)
