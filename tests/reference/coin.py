"""A two-player game with chance, and with values that are known: guess a coin that falls heads three times in four.

The first player guesses (0: heads, 1: tails), and the coin falls. Then the second player makes a move of no effect, and
the game ends: the first has won with a right guess, else lost. So the afterstate of a guess of heads is worth 1/2 to
the first player, and that of tails -1/2. Once the coin lies, the position is worth -1 or 1 to the second, who moves.
"""

import jax.numpy as jnp
import numpy as np

from muzero_jax.types import Environment, Transition

HEADS, TAILS = 0, 1
P_HEADS = 0.75
NUM_OUTCOMES = 2


def windows(seed, num_windows):
    """Random games as windows [N, 4, ...] that begin with the guess; from frame 2 on the next game follows.

    The observation is [is the coin lying, did it fall heads, was heads guessed], as float32.
    """
    generator = np.random.default_rng(seed)
    guess = generator.integers(2, size=num_windows)
    coin = np.where(generator.random(num_windows) < P_HEADS, HEADS, TAILS)
    first_wins = guess == coin
    zeros, ones = np.zeros(num_windows), np.ones(num_windows)
    opening = np.stack([zeros, zeros, zeros], axis=-1)
    after = np.stack([ones, coin == HEADS, guess == HEADS], axis=-1)
    result = np.where(first_wins, -1.0, 1.0)  # for the second player, who moves last
    frames = {
        "observation": np.stack([opening, after] * 2, axis=1).astype(np.float32),
        "action": np.stack([guess, zeros] * 2, axis=1).astype(np.int32),
        "reward": np.stack([zeros, result] * 2, axis=1).astype(np.float32),
        "discount": np.stack([-ones, zeros] * 2, axis=1).astype(np.float32),
        "outcome": np.stack([coin, -ones] * 2, axis=1).astype(np.int32),
    }
    shape = frames["action"].shape
    return Transition(
        **{name: jnp.asarray(leaf) for name, leaf in frames.items()},
        legal_action_mask=jnp.ones((*shape, 2), bool),
        is_last=jnp.asarray(frames["discount"] == 0),
        search_policy=jnp.full((*shape, 2), 0.5),
        search_value=jnp.zeros(shape),
        explored=jnp.zeros(shape, bool),
    )


COIN = Environment(
    name="coin",
    init=lambda key: None,
    move=None,  # type: ignore
    observe=lambda state: jnp.zeros(3),
    legal=lambda state: jnp.ones(2, bool),
    num_actions=2,
    observation_shape=(3,),
    num_players=2,
    discount=-1.0,
)
"""As far as a network asks; the games are `windows`."""
