"""The settings of games with hidden information: no search, unbiased returns, a policy that changes slowly."""

import numpy as np

from muzero_jax.config.config import Config
from muzero_jax.config.groups import (
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    ReplayConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)
from muzero_jax.types import Environment

MOST_POINTS = {"kuhn_poker": 2.0, "leduc_holdem": 13.0}
"""The largest return, where few random games show it."""
LONGEST = {"liars_dice": 13, "liars_dice_2": 25}
"""Moves of the longest game, where random games are much shorter: bids rise, and each may be the next higher one."""
STEPS = 8
TREMBLE = 0.03
"""Share of random moves, through which returns continue, so that self-play also meets what follows rare moves."""


def hidden(env: str, environment: Environment) -> Config:
    """python experiments/train.py --env kuhn_poker

    The policy head plays, and the exploitability is measured where the game is small enough. Games of your own: their
    length is taken to be 1.5 times that of random games.
    """
    from muzero_jax.games.catalogue import game_of  # here, because pgx starts JAX when it is imported
    from muzero_jax.games.own_game import random_games
    from muzero_jax.games.random_play import longest_game, returns

    # Of whole games: a value of the opponent's next information state does not know one's own cards, so that a return
    # which bootstraps from it is biased.
    moves = random_games(environment)
    seen, tries = longest_game(moves), 2 * environment.num_actions - 1
    is_dark = not game_of(environment).shows_moves and seen <= tries  # each player may try each cell
    longest = LONGEST.get(env) or (tries if is_dark else 3 * seen // 2 + 1)
    trembles = env != "kuhn_poker"  # which has no rare information states
    most_points = MOST_POINTS.get(env) or max(1.0, float(np.abs(returns(moves)).max()))
    return Config(
        env=env,
        model="none",
        minutes=15.0 if trembles else 5.0,
        network=NetworkConfig(kind="mlp", width=128, num_bins=21, support_range=most_points),
        search=SearchConfig(policy="none", kl_weight=0.2 if trembles else 0.5, entropy_weight=0.015),
        self_play=SelfPlayConfig(num_envs=512, rollout_length=STEPS, exploration=TREMBLE if trembles else 0.0),
        replay=ReplayConfig(replay_length=STEPS * (2 + longest // STEPS), min_frames=0, end_weight=1),
        targets=TargetConfig(td_steps=longest, stop_at_exploration=False),
        # Plain steps, and a policy loss of small weight, so that predicted values keep up with the policy. The policy
        # still circles around the equilibrium, so its average plays, and the circles become smaller with the rate.
        optimiser=OptimiserConfig(
            name="sgd",
            batch_size=512,
            updates_per_iteration=8,
            learning_rate=0.1 if trembles else 0.03,
            weight_decay=1e-3,
            schedule="cosine",
            value_weight=0.1 if trembles else 1.0,
            policy_weight=0.1,
            # Makes up for errors of predicted values, which a small KL weight magnifies.
            advantage_weight=0.1 if trembles else 0.0,
            average_decay=0.9999,
        ),
        evaluation=EvaluationConfig(opening_plies=0, games=1024, final_games=4096, mcts_simulations=()),
    )
