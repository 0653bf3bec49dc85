"""Nim with one heap in which whoever leaves 1, 5, 9, ... stones moves again: turns do not alternate.

Take 1 to 3 stones; who takes the last one wins. Solved here by recursion. The model is exact in all but the value,
which is 0 everywhere, so that a search can find the truth only from rewards and discounts.
"""

import functools

import jax
import jax.numpy as jnp
from flax import struct
from jax import Array

from muzero_jax.algorithm.heads import DISCOUNT, LEGALITY
from muzero_jax.types import Environment, Model, NetworkOutput, Step

NUM_ACTIONS, MOST = 3, 8


@struct.dataclass
class State:
    """A heap; every action is legal once it is empty."""

    stones: Array
    current_player: Array


def legal(stones: Array) -> Array:
    return (jnp.arange(1, NUM_ACTIONS + 1) <= stones[..., None]) | (stones[..., None] == 0)


def move(state: State, action, key=None) -> Step:
    del key
    stones = jnp.maximum(state.stones - action - 1, 0)
    ends, again = (stones == 0) & (state.stones > 0), stones % 4 == 1
    player = jnp.where(again, state.current_player, 1 - state.current_player)
    discount = jnp.where(stones == 0, 0.0, jnp.where(again, 1.0, -1.0))
    return Step(State(stones, player), ends.astype(jnp.float32), discount, stones == 0)


GAME = Environment(
    name="double_nim",
    init=lambda key: State(jax.random.randint(key, (), 1, MOST + 1), jnp.int32(0)),
    move=move,
    observe=lambda state: jax.nn.one_hot(state.stones, MOST + 1, dtype=bool),
    legal=lambda state: legal(state.stones),
    num_actions=NUM_ACTIONS,
    observation_shape=(MOST + 1,),
    num_players=2,
    discount=None,
)


@functools.cache
def value(stones: int) -> int:
    """+1 if whoever is to move wins, else -1; 0 once the game is over."""
    return max((value_of(stones, action) for action in range(min(NUM_ACTIONS, stones))), default=0)


def value_of(stones: int, action: int) -> int:
    left = stones - action - 1
    return 1 if left == 0 else value(left) if left % 4 == 1 else -value(left)


def exact_model(*, predicts_legality: bool) -> Model:
    """Embeddings are the heap's size; rewards, discounts and, if asked, legal moves are right. Scalar heads."""

    def judge(stones, reward, sign):
        logits = jnp.zeros((len(stones), NUM_ACTIONS))
        extras = {"discount_logits": 50.0 * jax.nn.one_hot(sign + 1, 3)}
        if predicts_legality:
            extras["legal_logits"] = 50.0 * (2.0 * legal(stones) - 1.0)
        return NetworkOutput(stones, reward[:, None], 0.0 * reward[:, None], logits, extras)

    def initial_inference(params, observation):
        stones = jnp.argmax(observation, axis=-1)
        return judge(stones, jnp.zeros(len(stones)), jnp.zeros_like(stones))

    def recurrent_inference(params, stones, action):
        # Taking more than there is must not pay where nothing predicts what is legal. Where something does, it would
        # pay more than anything, so that a search which does not listen goes wrong.
        is_legal = action < stones
        moved = move(State(stones, jnp.int32(0)), action)
        of_illegal = 1.0 if predicts_legality else -1.0
        reward, sign = jnp.where(is_legal, moved.reward, of_illegal), jnp.where(is_legal, moved.discount, 0.0)
        return judge(jnp.where(is_legal, moved.state.stones, 0), reward, sign.astype(jnp.int32))

    return Model(
        init=lambda key: None,
        initial_inference=initial_inference,
        recurrent_inference=recurrent_inference,
        reconstruct=None,  # type: ignore
        to_scalar=lambda logits: logits[..., 0],
        scalar_loss=lambda logits, target: (logits[..., 0] - target) ** 2,
        heads=(LEGALITY, DISCOUNT) if predicts_legality else (DISCOUNT,),
    )
