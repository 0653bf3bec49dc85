"""Nim with one heap, the smallest two-player game: take 1 to 3 stones; who takes the last one wins.

Solved by hand: the mover loses exactly at multiples of 4. With `passes_turn=False` the same player
makes every move.
"""

from typing import Any

import jax.numpy as jnp
from flax import struct

from muzero_jax.types import Environment, Step


@struct.dataclass
class NimState:
    """The fields of a pgx state; as in pgx, every action is legal once the game is over."""

    stones: Any
    passes_turn: Any
    current_player: Any
    legal_action_mask: Any
    terminated: Any
    observation: Any


def make_state(stones, current_player, passes_turn=True):
    """Positions with leading axes of any shape."""
    over = stones == 0
    mask = (jnp.arange(1, 4) <= stones[..., None]) | over[..., None]
    passes_turn = jnp.broadcast_to(passes_turn, stones.shape)
    return NimState(stones, passes_turn, current_player, mask, over, stones[..., None].astype(jnp.float32))


def make_nim(first_heap: int, passes_turn: bool = True) -> Environment:
    """Nim from `first_heap` stones."""

    def init(key):
        del key
        return make_state(jnp.int32(first_heap), jnp.int32(0), passes_turn)

    def move(state, action, key=None):
        del key
        over = state.terminated
        stones = jnp.where(over, 0, jnp.maximum(state.stones - action - 1, 0))
        player = jnp.where(over | ~state.passes_turn, state.current_player, 1 - state.current_player)
        wins = ~over & (stones == 0)
        discount = jnp.where(stones == 0, 0.0, jnp.where(state.passes_turn, -1.0, 1.0))
        moved = make_state(stones, player, state.passes_turn)
        return Step(moved, wins.astype(jnp.float32), discount, moved.terminated)

    return Environment(
        name="nim",
        init=init,
        move=move,
        observe=lambda state: state.observation,
        legal=lambda state: state.legal_action_mask,
        num_actions=3,
        observation_shape=(1,),
        num_players=2,
        discount=-1.0 if passes_turn else 1.0,
    )


def best_actions(stones: int) -> list[int]:
    """Actions (stones taken, less one) that leave a multiple of 4; none if the mover is lost."""
    return [action for action in range(min(3, stones)) if (stones - action - 1) % 4 == 0]
