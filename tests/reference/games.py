"""Random games under all symmetries at once, one compiled program a game, shared by the tests that ask about them."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp

from muzero_jax.games.environment import make_environment
from muzero_jax.learning.symmetries import transform_observation, transform_policy

MOVES = {"tic_tac_toe": 9, "connect_four": 42, "othello": 66, "hex": 26, "go_9x9": 50}
NUM_GAMES = 6

environment_of = functools.cache(lambda name: make_environment(name, board_size=5 if name == "hex" else None))


@functools.cache
def with_compiled_chance(name):
    """A game of chance whose moves are compiled."""
    environment = make_environment(name)
    chance = environment.chance
    return environment._replace(chance=chance._replace(move=jax.jit(chance.move), resolve=jax.jit(chance.resolve)))


def transformed_start(name, state, symmetries, index):
    """The first position under a symmetry; Othello's and Hex's are not their own images."""
    if name == "othello":
        board = state._x.board[symmetries.observation_permutation[index, ::2] // 2]
        state = state.replace(_x=state._x._replace(board=board))
    if name == "hex":
        transposed = index >= 2
        player_order = jnp.where(transposed, state._player_order[::-1], state._player_order)
        state = state.replace(_x=state._x._replace(color=jnp.int32(transposed)), _player_order=player_order)
    return state.replace(
        observation=transform_observation(symmetries, index, state.observation),
        legal_action_mask=transform_policy(symmetries, index, state.legal_action_mask),
    )


@functools.cache
def random_games(name):
    """Random games, each played once under every symmetry by the permuted actions: arrays [T, games, symmetries, ...].

    The second game of Hex swaps; Go's first begins with one pass, its second ends at once by two.
    """
    environment = environment_of(name)
    symmetries = environment.board.symmetries
    indices = jnp.arange(len(symmetries.action_permutation))

    def one_move(index, state, noise):
        legal = state.legal_action_mask[symmetries.action_permutation[index]]  # in the identity's names of the actions
        action = symmetries.action_permutation[index, jnp.argmax(jnp.where(legal, noise, -1.0))]
        return environment.move(state, action), action

    def all_moves(states, inputs):
        step, step_key = inputs
        noise = jax.random.uniform(step_key, (NUM_GAMES, environment.num_actions))
        if name in ("go_9x9", "hex"):
            noise = noise.at[:2, -1].add((step < 2) & (step <= jnp.arange(2)))
        for_each_copy = jax.vmap(one_move, in_axes=(0, 0, None))
        (after, reward, discount, *_), action = jax.vmap(for_each_copy, in_axes=(None, 0, 0))(indices, states, noise)
        return after, {
            "observation": states.observation,
            "mask": states.legal_action_mask,
            "player": states.current_player,
            "over": states.terminated,
            "action": action,
            "reward": reward,
            "discount": discount,
            "next_observation": after.observation,
            "ended": after.terminated,
        }

    @jax.jit
    def run(key):
        start = jax.vmap(environment.init)(jax.random.split(key, NUM_GAMES))
        under = functools.partial(transformed_start, name)
        copies = jax.vmap(jax.vmap(under, in_axes=(None, None, 0)), in_axes=(0, None, None))(start, symmetries, indices)
        steps = jnp.arange(MOVES[name])
        return jax.lax.scan(all_moves, copies, (steps, jax.random.split(key, MOVES[name])))[1]

    return SimpleNamespace(**jax.device_get(run(jax.random.key(3))))


def moves_of(name):
    """The moves of the untransformed games as flat arrays [moves, ...], those past a game's end left out."""
    games = random_games(name)
    played = ~games.over[:, :, 0]
    return SimpleNamespace(**{key: leaf[:, :, 0][played] for key, leaf in vars(games).items()})
