"""The settings of games with chance, and of all single-player games."""

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


def game_2048() -> Config:
    """python experiments/train.py --env 2048

    After 8.5 M frames, 26 minutes on a shared core, a mean return of 21,328 [19,669, 22,986] with 8 simulations, and of
    38,636 [34,979, 42,292] with 64; after 27.9 M, 105 minutes, with a cosine, 32,005 [28,346, 35,664] and 52,373
    [47,550, 57,195] (docs/results/2026-11-30-agents.md). At 250,000 frames --model rules has 5,618, learned_outcomes
    2,640 and learned 1,385 (docs/results/2026-11-25-chance.md).
    Games last hundreds of moves, so values are learned from ten rewards and then the search's value.
    """
    return Config(
        env="2048",
        model="rules",
        minutes=30.0,
        network=NetworkConfig(width=256, num_bins=255, support_range=100_000.0, squash=True),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=4, rescale_values=True),  # Q of thousands
        self_play=SelfPlayConfig(num_envs=256, exploration=0.0),
        targets=TargetConfig(td_steps=10, discount=0.999),
        optimiser=OptimiserConfig(updates_per_iteration=8, reconstruction_weight=10.0),  # only for learned models
    )


def backgammon() -> Config:
    """python experiments/train.py --env backgammon

    An MLP, because observations are lists. After 7.0 M frames, 48 minutes of a core, 40.0% [30.9, 49.8] against GNU
    Backgammon without look-ahead (docs/results/2026-11-30-agents.md).
    """
    return Config(
        env="backgammon",
        model="rules",
        minutes=45.0,
        network=NetworkConfig(width=256, support_range=3.0),
        search=SearchConfig(value_scale=1.0),  # moves differ by a few hundredths of a point
        self_play=SelfPlayConfig(num_envs=256, exploration=0.02),
        targets=TargetConfig(td_steps=32, td_lambda=0.95),
        optimiser=OptimiserConfig(updates_per_iteration=8, schedule="cosine", reconstruction_weight=10.0),  # likewise
        evaluation=EvaluationConfig(mcts_simulations=(), opening_plies=4),
    )


def minatar(env: str) -> Config:
    """python experiments/train.py --env minatar-breakout

    Plain MuZero, because chance outcomes are not listed. Values are discounted, because games need not end. After 30
    minutes of one core, three seeds have a mean return of 20.1, 21.0 and 25.6 in Breakout, and 21.4, 16.3 and 25.7 in
    Seaquest (docs/results/arcade#minatar).
    """
    print(f"rules: {env} is MinAtar's, inside pgx, and under the GPL-3.0")
    # Learning takes nine tenths of the time, so windows are short. With Q stretched to [0, 1] instead of Q in points,
    # Breakout had 16.2 instead of 20.3 after 10 minutes, and 5.0 with AdamW at 1e-3 as well.
    return Config(
        env=env,
        minutes=30.0,
        network=NetworkConfig(width=256, num_bins=101, support_range=300.0, squash=True),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=4, value_scale=0.5),
        self_play=SelfPlayConfig(num_envs=256, exploration=0.0),
        targets=TargetConfig(unroll_steps=3, td_steps=10, discount=0.99),
        optimiser=OptimiserConfig(
            name="muon",
            updates_per_iteration=8,
            learning_rate=0.01,
            schedule="cosine",
            reconstruction_weight=10.0,
        ),
        evaluation=EvaluationConfig(num_simulations=8),  # more do harm: Breakout has 9.4 with 64
    )


def arcade(env: str) -> Config:
    """python experiments/train.py --env octax:pong

    A game on a screen. With --frames 1500000, 66 to 98 minutes of one core beside other work, three seeds of Pong have
    a mean return of 6.0 to 7.7, where random play has -8.3; with 1570000 three of Brix have 15.3 to 28.3
    (docs/results/arcade).
    """
    # Q in points, because stretched to [0, 1] the values of moves that hardly differ make a target of noise. Pong's
    # moves differ by some 0.01 at first, and at 0.4 the search's policy hardly left the network's. Worm learned nothing
    # at 0.3. Where points come faster, 2 makes a target of noise too: a run of Brix had 6.2 with it, and 10.7 with 0.3
    # (these runs without `pixels`' dense layer).
    # In Blinky Q differs by 0.3 where moves do not matter. With `:hold4` three seeds gained at 0.1, and none had a
    # full run at 0.3.
    scales = {"blinky": 0.1, "brix": 0.3}
    value_scale = scales.get(env.split(":")[1], 2.0)
    return Config(
        env=env,
        minutes=45.0,
        # Rewards are a few points at most, and few of them count at a discount of 0.97.
        network=NetworkConfig(kind="pixels", width=32, num_bins=201, support_range=40.0, squash=True),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=4, value_scale=value_scale),
        self_play=SelfPlayConfig(num_envs=64, exploration=0.0),
        replay=ReplayConfig(replay_length=4096),
        targets=TargetConfig(unroll_steps=3, td_steps=10, discount=0.97),
        # Two windows for each frame. AdamW at 1e-3 needed twice as many updates for the same play.
        # A reconstruction loss takes twice the time, and its pictures lack the ball, which is one pixel.
        optimiser=OptimiserConfig(
            name="muon",
            batch_size=128,
            updates_per_iteration=8,
            learning_rate=0.01,
            schedule="cosine",
            # With it the model keeps the ball in imagination: three seeds of Pong learned in half as many updates, each
            # of which takes half as long again. It does harm where the next screen does not show the move, as in Worm
            # without `:hold7`.
            consistency_weight=2.0,
        ),
        evaluation=EvaluationConfig(num_simulations=8),  # likewise
    )


def atari(env: str) -> Config:
    """python experiments/train.py --env atari:pong

    The budget of Atari 100k (Kaiser et al. 2020): 100,000 moves, which are two hours of play. The buffer holds them
    all, in 2.8 GB. After 40 minutes of one core a game of Pong ends with -15.3 points, and one of random play with
    -20.3 (docs/results/2026-11-30-craftax-atari.md).
    """
    # Only Pong and Breakout were trained. Where points are few, Q stays in points, as in `arcade`; elsewhere nothing is
    # known of it.
    has_few_points = env.endswith((":pong", ":freeway", ":breakout"))
    return Config(
        env=env,
        minutes=None,
        frames=100_000,
        network=NetworkConfig(
            kind="pixels", width=32, num_bins=201, support_range=300.0 if has_few_points else 30_000.0, squash=True
        ),
        search=SearchConfig(
            num_simulations=8, max_num_considered_actions=6, value_scale=2.0, rescale_values=not has_few_points
        ),
        # Few games at once, so that the budget has many iterations, and the weights that play are never old.
        self_play=SelfPlayConfig(num_envs=32, rollout_length=8, exploration=0.0),
        replay=ReplayConfig(replay_length=3136),
        targets=TargetConfig(unroll_steps=5, td_steps=10, discount=0.99),
        # Sixteen windows for each frame.
        optimiser=OptimiserConfig(
            name="muon",
            batch_size=128,
            updates_per_iteration=32,
            learning_rate=0.01,
            schedule="cosine",
            consistency_weight=2.0,
        ),
        evaluation=EvaluationConfig(num_simulations=8),
    )


def craftax(env: str) -> Config:
    """python experiments/train.py --env craftax:classic

    A world that is seen in part. After 1,000,000 frames, 32 minutes of a shared core, Craftax-Classic returned 3.7 of
    22 points, no more than after 300,000; PPO has 7.7 (docs/results/2026-11-30-craftax-atari.md).
    """
    most = 226.0 if "full" in env else 22.0  # points of an episode
    sees_pixels = env.endswith("pixels")  # not trained yet
    return Config(
        env=env,
        minutes=60.0,
        network=NetworkConfig(
            kind="pixels" if sees_pixels else "mlp",
            width=32 if sees_pixels else 256,
            num_bins=101,
            support_range=most,
            squash=True,
        ),
        search=SearchConfig(num_simulations=8, max_num_considered_actions=8, value_scale=0.6),
        self_play=SelfPlayConfig(num_envs=64, exploration=0.0),
        replay=ReplayConfig(replay_length=2048 if sees_pixels else 4096),
        targets=TargetConfig(unroll_steps=5, td_steps=10, discount=0.99),
        # Eight windows for each frame: self-play had 3.7 points after 200,000 frames, and with two windows some 2.5.
        # Muon takes five times as long on the large first layer.
        optimiser=OptimiserConfig(updates_per_iteration=16, schedule="cosine", consistency_weight=2.0),
        evaluation=EvaluationConfig(num_simulations=8),
    )


def outside(env: str) -> Config:
    """python experiments/train.py --env gymnax:CartPole-v1

    An MLP for any observation, for an environment of another library. Returns are assumed to lie between -1,000 and
    1,000. CartPole has 500 in every episode after four minutes on one core.
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
