"""What search plans with: the learned model, or the true rules with the network's opinion of every position.

Both are the same two functions, so MuZero and AlphaZero differ in nothing else, and a model's faults can be told from
its network's by searching the same weights either way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.types import Environment, EnvState, Model, NetworkOutput, Params


class Node(NamedTuple):
    """What expanding an action tells of the node that it leads to, one a game."""

    prior: Array  # [B, A] float32 probabilities
    value: Array  # [B] float32, for the player to move there
    embedding: Any  # leaves [B, ...]
    reward: Array  # [B] float32, of the action that led here, for its mover; 0 at a root
    discount: Array  # [B] float32, signed, of that action; 0 at a root


class Simulator(NamedTuple):
    """A world to plan in, as pure functions."""

    root: Callable[[Params, Any], Node]  # (params, positions with leading axis [B]) -> their nodes
    expand: Callable[[Params, Array, Any], Node]  # (params, action [B], embedding) -> the nodes it leads to


def learned_model(model: Model, discount: float) -> Simulator:
    """MuZero: a step of dynamics a node, the environment's constant signed `discount`; positions are observations."""

    def root(params, observation):
        output = model.initial_inference(params, observation)
        value = model.to_scalar(output.value_logits)
        return Node(policy(output), value, output.embedding, jnp.zeros_like(value), jnp.zeros_like(value))

    def expand(params, action, embedding):
        output = model.recurrent_inference(params, embedding, action)
        reward = model.to_scalar(output.reward_logits)
        value = model.to_scalar(output.value_logits)
        return Node(policy(output), value, output.embedding, reward, jnp.full_like(reward, discount))

    return Simulator(root, expand)


def true_rules(environment: Environment, model: Model) -> Simulator:
    """AlphaZero: nodes are the game's own states, illegal actions have no prior at any. Positions are states."""

    def look(params: Params, states: EnvState, reward: Array, discount: Array) -> Node:
        output = model.initial_inference(params, jax.vmap(environment.observe)(states))
        prior = policy(output, states.legal_action_mask)
        return Node(prior, model.to_scalar(output.value_logits), states, reward, discount)

    def root(params, states):
        zeros = jnp.zeros(states.terminated.shape)
        return look(params, states, zeros, zeros)

    def expand(params, action, states):
        return look(params, *jax.vmap(environment.move)(states, action))

    return Simulator(root, expand)


def policy(output: NetworkOutput, legal_action_mask: Array | None = None) -> Float[Array, "B A"]:
    """The prior as probabilities, 0 where illegal."""
    logits = output.policy_logits.astype(jnp.float32)
    return jax.nn.softmax(logits, where=legal_action_mask)
