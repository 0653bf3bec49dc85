"""`Player`, a source of moves; the random player, the player by a search, and the keys of the game's chance."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, EnvState, Params, SearchFn


class Player(NamedTuple):
    """A source of moves. Deterministic given `key`; must only return legal actions."""

    name: str
    act: Callable[[Params, Array, EnvState], Array]  # (params or None, key, states [B, ...]) -> action [B] int32
    stochastic: bool = False  # its moves depend on the key


def random_player(environment: Environment) -> Player:
    """Plays uniformly random legal actions."""

    def act(params, key, states):
        return uniform_legal_action(key, states.legal_action_mask)

    return Player("random", act, stochastic=True)


def search_player(environment: Environment, search_fn: SearchFn, name: str = "search") -> Player:
    """Plays the action that `search_fn` chooses; give it a search without noise."""

    def act(params, key, states):
        return search_fn(params, key, environment.roots(states)).action.astype(jnp.int32)

    return Player(name, act)


def sampling_player(environment: Environment, search_fn: SearchFn, name: str) -> Player:
    """Samples each action from the policy of `search_fn`; give it a search without noise.

    This is nearly Gumbel MuZero's self-play, and PUCT's at temperature 1, both without noise at the root.
    """

    def act(params, key, states):
        search_key, action_key = jax.random.split(key)
        output = search_fn(params, search_key, environment.roots(states))
        # jaxlib 0.10.2 crashes on a CPU while it compiles a match with a search whose action is unused.
        _, policy = jax.lax.optimization_barrier((output.action, output.policy))
        return jax.random.categorical(action_key, jnp.log(policy)).astype(jnp.int32)

    return Player(name, act, stochastic=True)


_OF_CHANCE = 0x636861


def keys_of_chance(key: Array, num_games: int) -> Array:
    """A key for each game's chance in a move, independent of the players' use of `key`; unused without chance."""
    return jax.random.split(jax.random.fold_in(key, _OF_CHANCE), num_games)
