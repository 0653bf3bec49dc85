"""The plain players: random legal moves, and whatever a search chooses."""

import jax.numpy as jnp

from muzero_jax.apps.evaluation.player import Player
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, SearchFn


def random_player(environment: Environment) -> Player:
    """Plays uniformly over the legal actions."""

    def act(params, key, states):
        return uniform_legal_action(key, states.legal_action_mask)

    return Player("random", act, stochastic=True)


def search_player(environment: Environment, search_fn: SearchFn, name: str = "search") -> Player:
    """Plays the action that `search_fn` chooses; hand in a search without noise."""

    def act(params, key, states):
        return search_fn(params, key, environment.roots(states)).action.astype(jnp.int32)

    return Player(name, act)
