"""The settings of games with chance."""

from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import (
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)


def game_2048() -> Config:
    """python experiments/train.py --env 2048

    With --model rules a mean return of 40,334 [36,641, 44,028] after 26 minutes on one core, with 64 simulations
    (docs/results/2026-11-25-2048.md). The learned model is much slower: 1,720 after 1.2 minutes, and no longer run.
    Games last hundreds of moves, so a value is learned from ten rewards and then the search's value.
    """
    return Config(
        env="2048",
        model="rules",
        minutes=30.0,
        network=NetworkConfig(width=256, num_bins=255, support_range=100_000.0, squash=True),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=4, rescale_values=True),  # Q of thousands
        self_play=SelfPlayConfig(num_envs=256, exploration=0.0),
        targets=TargetConfig(td_steps=10, discount=0.999),
        optimiser=OptimiserConfig(updates_per_iteration=8, reconstruction_weight=10.0),  # for learned models alone
    )


def backgammon() -> Config:
    """python experiments/train.py --env backgammon

    An MLP, for the view is a list of numbers. A game is won once, twice or thrice. Nothing was measured yet.
    """
    return Config(
        env="backgammon",
        model="rules",
        minutes=45.0,
        network=NetworkConfig(width=256, support_range=3.0),
        search=SearchConfig(value_scale=1.0),  # moves differ by a few hundredths of a point
        self_play=SelfPlayConfig(num_envs=256, exploration=0.02),
        targets=TargetConfig(td_steps=32, td_lambda=0.95),
        optimiser=OptimiserConfig(updates_per_iteration=8, reconstruction_weight=10.0),  # likewise
        evaluation=EvaluationConfig(mcts_simulations=(), opening_plies=4),
    )
