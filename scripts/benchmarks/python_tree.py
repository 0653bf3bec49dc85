"""A yardstick: a simple PUCT search, with a tree of Python objects and one network call per simulation.

It searches one position at a time, without noise at the root; a test compares its visit counts with ours.
"""

import math
from functools import partial
from typing import Any

import jax
import numpy as np

from muzero_jax.algorithm import Algorithm
from muzero_jax.config.config import Config
from muzero_jax.search import simulator
from muzero_jax.types import SearchRoots


class Node:
    """A node of the tree: the network's outputs, and the results of the search below it."""

    def __init__(self, judged: simulator.Node):  # of batch 1
        prior, value, reward = jax.device_get((judged.prior, judged.value, judged.reward))
        self.embedding = judged.embedding
        (self.prior,) = prior.tolist()
        self.value = value.item()
        self.reward = reward.item()
        self.visits = 1
        self.children = {}

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
        self.discount: Any = algorithm.environment.discount  # None unless turns alternate
        model = simulator.learned_model(algorithm.model, self.discount)
        self.root, self.expand = (partial(jax.jit(judge), params) for judge in (model.root, model.expand))
        self.no_chance = jax.random.key(0)

    def __call__(self, observation: Any, legal_action_mask: Any) -> Node:
        """The root of a tree with `num_simulations` further nodes."""
        tree = Node(self.root(SearchRoots(observation[None], legal_action_mask[None], None)))
        legal = np.flatnonzero(legal_action_mask).tolist()
        total = sum(tree.prior[action] for action in legal)
        tree.prior = [prior / total for prior in tree.prior]  # the root tries only legal actions
        for _ in range(self.settings.num_simulations):
            self.simulate(tree, legal)
        return tree

    def simulate(self, tree: Node, legal: list[int]) -> None:
        """Walks down to an edge without a node, adds the node, and backs its value up the path."""
        path = [tree]
        actions = legal
        while (child := path[-1].children.get(action := self.select(path[-1], actions))) is not None:
            path.append(child)
            actions = range(len(child.prior))
        judged = self.expand(self.no_chance, np.array([action], np.int32), path[-1].embedding)
        leaf = path[-1].children[action] = Node(judged)
        value = leaf.value
        reward = leaf.reward
        for node in reversed(path):
            value = reward + self.discount * value
            node.value = (node.value * node.visits + value) / (node.visits + 1)
            node.visits += 1
            reward = node.reward

    def select(self, node: Node, actions: Any) -> int:
        """The action with the highest PUCT score (MuZero, appendix B); Q is scaled to [0, 1] among the siblings."""
        q = {action: child.reward + self.discount * child.value for action, child in node.children.items()}
        low, high = min([node.value, *q.values()]), max([node.value, *q.values()])
        span = max(high - low, 1e-8)
        s = self.settings
        exploration = s.pb_c_init + math.log((node.visits + s.pb_c_base + 1) / s.pb_c_base)

        def score(action):
            visits = node.children[action].visits if action in q else 0
            bonus = math.sqrt(node.visits) * exploration * node.prior[action] / (visits + 1)
            return bonus + ((q[action] - low) / span if action in q else 0.0)

        return max(actions, key=score)
