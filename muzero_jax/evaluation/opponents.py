"""The plain players: random legal moves, the policy head by itself, and whoever a search chooses for."""

import jax.numpy as jnp

from muzero_jax.arithmetic.legal_actions import uniform_legal_action
from muzero_jax.evaluation.player import Player
from muzero_jax.search import simulator
from muzero_jax.types import Environment, Model, SearchFn, SearchOutput


def random_player(environment: Environment) -> Player:
    """Plays uniformly over the legal actions."""

    def act(params, key, states):
        return uniform_legal_action(key, states.legal_action_mask)

    return Player("random", act, stochastic=True)


def policy_head(model: Model) -> SearchFn:
    """The network by itself, in a search's place: its policy over legal actions, the best of them, and its value."""

    def look(params, key, position):
        output = model.initial_inference(params, position.observation)
        prior = simulator.policy(output, position.legal_action_mask)
        best = jnp.argmax(jnp.where(position.legal_action_mask, output.policy_logits, -jnp.inf), axis=-1)
        return SearchOutput(best.astype(jnp.int32), prior, model.to_scalar(output.value_logits))

    return look


def search_player(environment: Environment, search_fn: SearchFn, name: str = "search") -> Player:
    """Plays the action that `search_fn` chooses; hand in a search without noise."""

    def act(params, key, states):
        return search_fn(params, key, environment.roots(states)).action.astype(jnp.int32)

    return Player(name, act)
