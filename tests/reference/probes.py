"""Five games of one or two moves, each of which only a certain part of an agent can get wrong (an idea of rejax's).

They are one environment: which game is played lies in its state, outlives the reset and is no part of the observation,
so that a single compiled program trains an agent on any of them.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from muzero_jax.types import Environment, Step

REWARD_1 = 0  # the one move gives 1: value and reward heads, and that they are trained at all
OBSERVATION = 1  # +1 or -1, as the observation shows: that observations reach the heads, each its own target
OPPONENT = 2  # the first player's move leads to the second's, which gives the second 1: the sign of `discount`
ACTION = 3  # action 1 gives 1, action 0 gives -1: that search improves the policy and the policy is learned
BOTH = 4  # the action that the observation names gives 1, the other -1: all of it together
NUM_ACTIONS = 2


@struct.dataclass
class ProbeState:
    """The fields of a pgx state that a rollout reads."""

    game: Any
    observation: Any  # [2]: whether this is the second move; a coin
    current_player: Any
    legal_action_mask: Any
    terminated: Any


def start(game, key) -> ProbeState:
    """A fresh game of number `game`."""
    coin = jax.random.bernoulli(key)
    observation = jnp.stack([jnp.zeros_like(coin), coin])
    return ProbeState(game, observation, jnp.int32(0), jnp.ones(NUM_ACTIONS, bool), jnp.zeros((), bool))


def move(state: ProbeState, action, key=None):
    """One move; `key` is unused, because the start has thrown the coin."""
    del key
    second, coin = state.observation
    is_first_of_two = (state.game == OPPONENT) & ~second
    sign = jnp.array([True, coin, True, action == 1, (action == 1) == coin])[state.game]
    reward = jnp.where(is_first_of_two, 0.0, jnp.where(sign, 1.0, -1.0))
    moved = state.replace(
        observation=state.observation.at[0].set(True),
        current_player=1 - state.current_player,
        terminated=~is_first_of_two,
    )
    return Step(moved, reward, jnp.where(is_first_of_two, -1.0, 0.0), moved.terminated)


PROBES = Environment(
    name="probes",
    init=lambda key: start(jnp.int32(REWARD_1), key),
    move=move,
    observe=lambda state: state.observation,
    legal=lambda state: state.legal_action_mask,
    num_actions=NUM_ACTIONS,
    observation_shape=(2,),
    num_players=2,
    discount=-1.0,
)
