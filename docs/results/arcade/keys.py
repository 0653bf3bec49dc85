"""After how many moves an action can be seen: python docs/results/arcade/keys.py octax:worm octax:worm:hold7

From positions of random play each action is taken once, and after it the last action, which in octax's games is to
wait. The observations of these moves are compared with those of waiting alone.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax import make_environment
from muzero_jax.types import Environment, EnvState

GAMES, POSITIONS, MOVES = 64, 12, 12


def play(environment: Environment, states: EnvState, keys: jax.Array) -> EnvState:
    """The states after a random move for each key; a finished game begins anew."""

    def one(states, key):
        of_action, of_move = jax.random.split(key)
        actions = jax.random.randint(of_action, (GAMES,), 0, environment.num_actions)
        keys = jax.random.split(of_move, GAMES)
        step = jax.vmap(environment.move)(states, actions, keys)
        new = jax.vmap(environment.init)(keys)
        return jax.tree.map(lambda new, old: jax.vmap(jnp.where)(step.is_last, new, old), new, step.state), None

    return jax.lax.scan(one, states, keys)[0]


def seen(environment: Environment, states: EnvState, key: jax.Array) -> jax.Array:
    """[A - 1, MOVES, GAMES]: whether what is seen after an action differs from what is seen after waiting."""
    wait = environment.num_actions - 1
    keys = jax.random.split(key, GAMES)

    def after(action):
        def one(states, move):
            actions = jnp.full(GAMES, jnp.where(move == 0, action, wait))
            states = jax.vmap(environment.move)(states, actions, keys).state
            return states, jax.vmap(environment.observe)(states)

        return jax.lax.scan(one, states, jnp.arange(MOVES))[1]

    observations = jax.lax.map(after, jnp.arange(wait + 1))
    return (observations[:-1] != observations[-1]).any((-1, -2, -3))


for name in sys.argv[1:]:
    environment = make_environment(name)
    advance, look = jax.jit(partial(play, environment)), jax.jit(partial(seen, environment))
    starts = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), GAMES))
    states = advance(starts, jax.random.split(jax.random.key(1), 40))
    found = []
    for index in range(POSITIONS):
        found.append(np.asarray(look(states, jax.random.key(index))))
        states = advance(states, jax.random.split(jax.random.key(100 + index), 9))
    differs = np.concatenate(found, axis=-1)
    counts = differs.any(1)
    first = np.bincount(differs.argmax(1)[counts], minlength=MOVES) / max(1, counts.sum())
    print(f"{name}: {counts.mean():.0%} of the actions are seen, first after", *(f"{share:.0%}" for share in first))
