"""The settings with which a game of one's own begins."""

import math
from dataclasses import replace

from muzero_jax.presets.boards import small_board, tower
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import (
    EvaluationConfig,
)
from muzero_jax.types import Environment

LARGEST_SMALL_OBSERVATION = 128
"""The most numbers that a game of one's own may show on a board to take the small boards' preset."""
LONGEST_MONTE_CARLO = 64
"""The longest game whose values are learned from its outcome alone."""


def own_game(env: str, environment: Environment) -> Config:
    """python experiments/train.py --env examples/nim.py

    A game of one's own: the small boards' settings, or the tower where a board shows more than 128 numbers. What is no
    board of bits takes an MLP. Where games last at most 64 moves, values are learned from their outcome, and rollout
    MCTS is met; random games say how long they last. Nothing is known of the game beyond that: see --help-all.
    """
    from muzero_jax.games.own_game import random_games
    from muzero_jax.games.random_play import longest_game
    from muzero_jax.networks.model import shows_planes_of_bits

    if environment.board is not None and math.prod(environment.observation_shape) > LARGEST_SMALL_OBSERVATION:
        return tower(env, num_bins=3)
    seen = longest_game(random_games(environment))
    print(f"settings: those of small boards; random games last up to {seen} moves")
    longest = 3 * seen // 2 + 1  # some games that are not random last longer
    config = small_board(env, longest_game=longest, num_bins=3, exploration=min(0.5, 2.5 / longest))
    if longest > LONGEST_MONTE_CARLO:
        config = replace(config, targets=replace(config.targets, td_steps=32, td_lambda=0.95))
    if not shows_planes_of_bits(environment) or environment.chance is not None:
        optimiser = replace(config.optimiser, reconstruction_weight=1.0)  # of numbers; of bits it is 10
        config = replace(config, network=replace(config.network, kind="mlp"), optimiser=optimiser)
    budgets = (100,) if longest <= LONGEST_MONTE_CARLO else ()
    return replace(config, evaluation=EvaluationConfig(mcts_simulations=budgets, opening_plies=min(2, seen // 4)))
