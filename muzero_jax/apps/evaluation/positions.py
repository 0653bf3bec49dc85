"""The positions on which agents are judged: sampled from games, or all positions of a small game.

Half are from random games, which give breadth, and half from games in which a player mixes random moves with its own,
which give positions of good play. Each game gives one position, at a random ply, and positions with equal observations
count once, so that samples are independent and intervals over positions are valid.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from muzero_jax.apps.evaluation import exhaustive
from muzero_jax.apps.evaluation.batches import first_of_each
from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import Environment, EnvState, Params

RANDOM_SHARE = 0.25
"""The share of random moves in a player's own games; without them a deterministic player would repeat one game."""
GAMES_PER_POSITION = 2
"""More than one, because some games end too early, and some positions occur twice."""
MOST_PLIES = 64
"""Plies that are sampled from in games without a board; on a board, one for each cell."""


class Positions(NamedTuple):
    """N unfinished positions."""

    states: EnvState  # leaves [N, ...], on the host
    is_own_play: np.ndarray  # [N] bool, False if it comes from a random game, or from none


def sample(
    environment: Environment, player: Player, params: Params, *, num_positions: int, min_plies: int, seed: int
) -> Positions:
    """At most `num_positions` distinct positions after at least `min_plies` moves; fewer if games show no more."""
    is_own_play = np.arange(num_positions * GAMES_PER_POSITION) % 2 == 1
    random_share = np.where(is_own_play, RANDOM_SHARE, 1.0)
    # One stone per cell, and Hex's swap.
    num_plies = MOST_PLIES if environment.board is None else math.prod(environment.board.shape) + 1
    states = play(environment, player, params, jax.random.key(seed), random_share, num_plies)
    num_choices = np.maximum((~states.terminated).sum(axis=0) - min_plies, 0)  # an ended game stays ended
    (game,) = np.nonzero(num_choices)
    ply = min_plies + np.random.default_rng(seed).integers(num_choices[game])
    first = first_of_each(states.observation[ply, game])[:num_positions]
    ply = ply[first]
    game = game[first]
    return Positions(jax.tree.map(lambda leaf: leaf[ply, game], states), is_own_play[game])


def enumerate_all(environment: Environment) -> Positions:
    """All reachable unfinished positions; for games with some thousands of positions."""
    levels = [
        states for states, _, _ in exhaustive.plies(environment, lambda states: np.asarray(states.legal_action_mask))
    ]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *levels)
    return Positions(states, np.zeros(states.terminated.shape, bool))


def play(
    environment: Environment, player: Player, params: Params, key: Array, random_share: np.ndarray, num_plies: int
) -> EnvState:
    """The states [plies, games, ...] of games with the given shares of random moves; ended games stay ended."""
    num_games = len(random_share)
    start_key, play_key = jax.random.split(key)

    def one_move(states, move_key):
        random_key, player_key, choice_key = jax.random.split(move_key, 3)
        random_action = uniform_legal_action(random_key, states.legal_action_mask)
        is_random = jax.random.uniform(choice_key, (num_games,)) < random_share
        action = jnp.where(is_random, random_action, player.act(params, player_key, states))
        return jax.vmap(environment.move)(states, action, keys_of_chance(move_key, num_games)).state, states

    @jax.jit
    def play_all(start_keys, move_keys):
        return lax.scan(one_move, jax.vmap(environment.init)(start_keys), move_keys)[1]

    return jax.device_get(play_all(jax.random.split(start_key, num_games), jax.random.split(play_key, num_plies)))
