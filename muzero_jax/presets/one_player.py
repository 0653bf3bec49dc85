"""The settings of games for one, but for 2048: MinAtar, and environments of other libraries."""

from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import NetworkConfig, OptimiserConfig, SearchConfig, SelfPlayConfig, TargetConfig


def minatar(env: str) -> Config:
    """python experiments/train.py --env minatar-breakout

    Plain MuZero, for nobody can list the chance of these games. Values are discounted, for games need not end. On one
    shared core Breakout has 10.5 after 10 minutes, Space Invaders 30.1 after 7, Freeway 22.1 and Seaquest 0.5 after 3,
    Asterix 2.0 after 6 (docs/results/2026-11-25-chance.md).
    """
    print(f"rules: {env} is MinAtar's, inside pgx, and under the GPL-3.0")
    # Returns are far from [-1, 1], so Q is stretched. Learning takes nine tenths of the time, so windows are short.
    return Config(
        env=env,
        minutes=20.0,
        network=NetworkConfig(width=256, num_bins=101, support_range=300.0, squash=True),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=4, rescale_values=True),
        self_play=SelfPlayConfig(num_envs=256, exploration=0.0),
        targets=TargetConfig(unroll_steps=3, td_steps=10, discount=0.99),
        optimiser=OptimiserConfig(updates_per_iteration=8, reconstruction_weight=10.0),
    )


def outside(env: str) -> Config:
    """python experiments/train.py --env gymnax:CartPole-v1

    An MLP of whatever is seen, for an environment of another library. Nothing is known of its returns but that they fit
    into a thousand either way. CartPole has 500 in every episode after four minutes on one core.
    """
    return Config(
        env=env,
        minutes=10.0,
        network=NetworkConfig(num_bins=101, support_range=1000.0, squash=True),
        search=SearchConfig(num_simulations=16, max_num_considered_actions=8, rescale_values=True),
        self_play=SelfPlayConfig(num_envs=128, exploration=0.0),
        targets=TargetConfig(td_steps=20, discount=0.99),
        optimiser=OptimiserConfig(updates_per_iteration=8, reconstruction_weight=1.0),
    )
