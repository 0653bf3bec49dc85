"""A single-player game with chance and a time limit: bet or pass; a bet wins 1 by a coin, and three passes end it.

It has no board and no pgx state, because `train_iteration` may use only what an `Environment` has.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from muzero_jax.types import Environment, Step

TIME_LIMIT, MOST_PASSES, GAMMA = 5, 3, 0.9
BET, PASS = 0, 1


class State(NamedTuple):
    moves: jax.Array
    passes: jax.Array


def move(state: State, action, key) -> Step:
    bets = action == BET
    won = bets & jax.random.bernoulli(key)
    moved = State(state.moves + 1, state.passes + ~bets)
    ends = moved.passes == MOST_PASSES
    discount = jnp.where(ends, 0.0, GAMMA).astype(jnp.float32)
    return Step(moved, won.astype(jnp.float32), discount, ends | (moved.moves == TIME_LIMIT))


GAMBLE = Environment(
    name="gamble",
    init=lambda key: State(jnp.int32(0), jnp.int32(0)),
    move=move,
    observe=lambda state: jnp.stack([state.moves, state.passes]).astype(jnp.float32),
    legal=lambda state: jnp.array([True, True]),
    num_actions=2,
    observation_shape=(2,),
    num_players=1,
    discount=GAMMA,
)
