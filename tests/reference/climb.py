"""A single-player game with chance, in pgx's form: three steps, each tried or left out.

A step that is tried earns a third with probability 3/4: random play earns 3/8 on average, perfect play 3/4.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

STEPS, TRY = 3, 1


class State(NamedTuple):
    """A game in progress, with the fields that every game needs."""

    current_player: jax.Array
    observation: jax.Array  # [3] bool, the steps that are behind
    legal_action_mask: jax.Array
    rewards: jax.Array  # [1]
    terminated: jax.Array
    truncated: jax.Array


def position(steps, reward):
    is_over = steps == STEPS
    return State(
        current_player=jnp.int32(0),
        observation=jnp.arange(STEPS) < steps,
        legal_action_mask=jnp.ones(2, bool),
        rewards=jnp.float32(reward)[None],
        terminated=is_over,
        truncated=jnp.bool_(False),
    )


class Climb:
    """The rules."""

    num_players = 1

    def init(self, key):
        del key
        return position(jnp.int32(0), 0.0)

    def step(self, state, action, key):
        succeeds = (action == TRY) & jax.random.bernoulli(key, 0.75)
        return position(state.observation.sum(dtype=jnp.int32) + 1, succeeds / STEPS)


make = Climb
