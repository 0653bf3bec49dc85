"""Models that a search plans with: the learned one, or the ground-truth model (the game's own rules).

With either, the network gives every position its prior and its value.

Both are the same two functions, so MuZero and AlphaZero differ in nothing else. Searching the same weights either way
separates the model's faults from the network's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from muzero_jax.types import Environment, EnvState, Model, NetworkOutput, Params, SearchRoots


class Node(NamedTuple):
    """A new node of each game, as the simulator judges it."""

    prior: Array  # [B, A] float32 probabilities
    value: Array  # [B] float32, for the player to move there
    embedding: Any  # leaves [B, ...]
    reward: Array  # [B] float32, of the action that led here, for who took it; 0 at a root
    discount: Array  # [B] float32, signed, of that action; 0 at a root


class Simulator(NamedTuple):
    """A model to plan with, as pure functions: the learned one, or the game's own rules."""

    root: Callable[[Params, SearchRoots], Node]  # (params, B positions) -> their nodes
    expand: Callable[[Params, Array, Array, Any], Node]
    """(params, key, action [B], embedding) -> the nodes that the actions lead to; the key is what chance draws from"""


def learned_model(
    model: Model, discount: float, *, predicted_legality: bool = False, predicted_discount: bool = False
) -> Simulator:
    """MuZero's model: each node is one step of the learned dynamics.

    Args:
      model: the network. Its embeddings are the nodes.
      discount: the constant signed discount between two moves; with `predicted_discount` gamma.
      predicted_legality: below the root a move has prior 0 where the model predicts that it is illegal, unless it
        predicts so of all moves. Without this flag every move is possible.
      predicted_discount: the discount is gamma times the sign that the model expects.
    """

    def root(params, roots):
        output = model.initial_inference(params, roots.observation)
        value = model.to_scalar(output.value_logits)
        return Node(policy(output), value, output.embedding, jnp.zeros_like(value), jnp.zeros_like(value))

    def expand(params, key, action, embedding):
        del key
        output = model.recurrent_inference(params, embedding, action)
        reward = model.to_scalar(output.reward_logits)
        value = model.to_scalar(output.value_logits)
        prior = policy(output, predicted_legal(output)) if predicted_legality else policy(output)
        sign = expected_sign(output) if predicted_discount else jnp.ones_like(reward)
        return Node(prior, value, output.embedding, reward, discount * sign)

    return Simulator(root, expand)


def predicted_legal(output: NetworkOutput) -> Bool[Array, "B A"]:
    """The moves that the model predicts to be legal, or all moves where it predicts none."""
    assert output.legal_logits is not None, "a model that predicts legal moves"
    legal = output.legal_logits > 0
    return legal | ~legal.any(-1, keepdims=True)


def expected_sign(output: NetworkOutput) -> Float[Array, "B"]:
    """The sign of a move's discount as the model expects it, in [-1, 1]."""
    assert output.discount_logits is not None, "a model that predicts discounts"
    return jax.nn.softmax(output.discount_logits) @ jnp.array([-1.0, 0.0, 1.0])


def ground_truth_model(environment: Environment, model: Model) -> Simulator:
    """AlphaZero's model: nodes are the game's own states, and `model` gives their priors and values. Illegal actions
    have prior 0 everywhere, an ended game has value 0.

    Chance is drawn once for each edge, when it is expanded; later visits reuse that draw. Finished games are moved on
    too, and the results ignored, so `move` must accept every state.
    """

    def judge(params: Params, states: EnvState) -> tuple[Array, Array]:
        roots = environment.roots(states)
        output = model.initial_inference(params, roots.observation)
        return policy(output, roots.legal_action_mask), model.to_scalar(output.value_logits)

    def root(params, roots):
        prior, value = judge(params, roots.state)
        return Node(prior, value, roots.state, jnp.zeros_like(value), jnp.zeros_like(value))

    def expand(params, key, action, states):
        states, reward, discount, *_ = jax.vmap(environment.move)(states, action, jax.random.split(key, len(action)))
        prior, value = judge(params, states)
        return Node(prior, jnp.where(discount == 0, 0.0, value), states, reward, discount)

    return Simulator(root, expand)


def policy(output: NetworkOutput, legal_action_mask: Array | None = None) -> Float[Array, "B A"]:
    """The prior as probabilities, 0 where illegal."""
    logits = output.policy_logits.astype(jnp.float32)
    return jax.nn.softmax(logits, where=legal_action_mask)
