"""The plain players: random legal moves, the policy head by itself, and whoever a search chooses for."""

import jax
import jax.numpy as jnp

from muzero_jax.arithmetic.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, Model, Player, SearchFn


def random_player(environment: Environment) -> Player:
    """Plays uniformly over the legal actions."""
    del environment  # every state brings its own mask

    def act(params, key, states):
        del params
        return uniform_legal_action(key, states.legal_action_mask)

    return Player("random", act)


def greedy_prior_player(environment: Environment, model: Model) -> Player:
    """Plays the legal action that the policy head likes best: the network without any search."""

    def act(params, key, states):
        del key
        policy_logits = model.initial_inference(params, jax.vmap(environment.observe)(states)).policy_logits
        return jnp.argmax(jnp.where(states.legal_action_mask, policy_logits, -jnp.inf), axis=-1).astype(jnp.int32)

    return Player("greedy prior", act)


def search_player(environment: Environment, search_fn: SearchFn, name: str = "search") -> Player:
    """Plays the action that `search_fn` chooses; hand in a search without noise."""

    def act(params, key, states):
        return search_fn(params, key, environment.look(states)).action.astype(jnp.int32)

    return Player(name, act)
