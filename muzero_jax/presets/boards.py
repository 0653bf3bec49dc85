"""The settings of board games except Hex, and of your own games."""

import math
from dataclasses import replace

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

LARGEST_SMALL_OBSERVATION = 128
"""The most numbers that your own game may show on a board to take the small boards' preset."""
LONGEST_MONTE_CARLO = 64
"""Moves of the longest game whose values are learned only from its outcome."""


def small_board(env: str, *, longest_game: int, num_bins: int, exploration: float) -> Config:
    """The settings of small boards: imagined observations, Monte-Carlo returns, large batches, the auxiliary loss.

    Args:
      env: the game's name. num_bins: bins of value and reward.
      longest_game: in moves, so that value targets are Monte-Carlo returns.
      exploration: share of random moves in self-play.
    """
    # A move changes little, so the next observation can be predicted whole and judged by a network that learned from
    # real ones. An MLP's embedding drifts: Connect Four scored a third with it, and two thirds with the ground-truth
    # model.
    return Config(
        env=env,
        network=NetworkConfig(kind="observation", width=128, num_bins=num_bins),
        search=SearchConfig(num_simulations=16, max_num_considered_actions=8, value_scale=0.4),
        self_play=SelfPlayConfig(num_envs=512, rollout_length=8, exploration=exploration),
        replay=ReplayConfig(replay_length=128, end_weight=4),
        targets=TargetConfig(unroll_steps=4, td_steps=longest_game),
        optimiser=OptimiserConfig(
            batch_size=512,
            updates_per_iteration=12,
            learning_rate=2e-3,
            schedule="cosine",
            reward_weight=3.0,
            reconstruction_weight=10.0,
        ),
    )


def tic_tac_toe() -> Config:
    """python experiments/train.py --env tic_tac_toe

    After 4 minutes no reply by any opponent beats it (evaluate.py exhaustive), and in every position that can arise
    it plays an optimal move (evaluate.py oracle), for seeds 0, 1 and 2.
    """
    # Half of all moves are random, so that it meets every position, also those that good play never leads to.
    config = small_board("tic_tac_toe", longest_game=9, num_bins=3, exploration=0.5)
    return replace(config, minutes=4.0)


def connect_four() -> Config:
    """python experiments/train.py --env connect_four

    After 30 minutes, with all games from the beginning, 100% against random, 97.3% [94.5, 98.7] against rollout MCTS
    with 100 simulations, 90.0% [88.1, 91.7] with 1,000, and a winning-move accuracy of 94.6% [91.1, 96.7]. Half of the
    games begin after random moves since, because five seeds of 6 minutes then had 88.0% instead of 83.2%
    (docs/results/starts).
    """
    config = small_board("connect_four", longest_game=42, num_bins=3, exploration=0.1)
    return replace(
        config,
        minutes=30.0,
        self_play=replace(config.self_play, starts="random", start_moves=12),
        network=replace(config.network, width=256),
        search=replace(config.search, num_simulations=8, max_num_considered_actions=4),
        replay=replace(config.replay, replay_length=512),
        targets=replace(config.targets, td_lambda=0.95),
        optimiser=replace(config.optimiser, updates_per_iteration=8),
    )


def tower(env: str, *, num_bins: int, mcts_simulations: tuple[int, ...] = ()) -> Config:
    """A convolution tower for larger boards: shogi and Go 19x19; meant for an accelerator.

    mcts_simulations: budgets of rollout MCTS to play against. By default none: 32 random games at once take 2 ms of
    Othello, but 40 of animal shogi, 400 of Gardner chess, 700 of Go 9x9 and 2,700 of chess, and a match needs 100 or
    1,000 such rounds for each of some 30 moves. There random play and the run's own versions are the opponents.
    """
    return Config(
        env=env,
        minutes=60.0,
        network=NetworkConfig(kind="tower", width=64, num_blocks=2, num_bins=num_bins),
        search=SearchConfig(num_simulations=16, max_num_considered_actions=8, value_scale=0.4),
        self_play=SelfPlayConfig(num_envs=128, rollout_length=8, exploration=0.02),
        replay=ReplayConfig(replay_length=256, end_weight=4),
        targets=TargetConfig(unroll_steps=4, td_steps=32, td_lambda=0.95),
        optimiser=OptimiserConfig(
            batch_size=128, updates_per_iteration=8, reward_weight=3.0, reconstruction_weight=10.0
        ),
        # An evaluation of Go 9x9 takes over a minute: at a small board's interval there would be nothing else.
        evaluation=EvaluationConfig(interval_minutes=10.0, games=64, final_games=64, mcts_simulations=mcts_simulations),
    )


def imagining(config: Config) -> Config:
    """Convolutions for every board instead of a tower, and Muon: for Othello, Go 9x9 and chess.

    Those of Othello and Go also imagine the next position.

    In six minutes of Othello on a core these made 1.5 times the tower's frames, and won 86% [75, 92] of 64 games
    against it (docs/results/2026-11-25-agents.md).
    """
    return with_muon(replace(config, network=replace(config.network, kind="fully_convolutional", width=32)))


def with_muon(config: Config) -> Config:
    """Muon instead of AdamW, with a rate that falls."""
    return replace(config, optimiser=replace(config.optimiser, name="muon", learning_rate=0.01, schedule="cosine"))


def othello() -> Config:
    """python experiments/train.py --env othello

    After 50 minutes on one core, 11,045 games: 91.8% [88, 95] against rollout MCTS with 100 simulations and 85.0%
    [80, 89] with 1,000, 256 games each (docs/results/2026-11-25-agents.md). A tower had 88% and 48% after 8 minutes.
    """
    return imagining(tower("othello", num_bins=3, mcts_simulations=(100, 1000)))


def go_9x9() -> Config:
    """python experiments/train.py --env go_9x9

    After 45 minutes on one core, 3,897 games: 100% [81, 100] of 16 games against rollout MCTS with 100 simulations, and
    10% [4, 23] of 40 against GNU Go at level 1 (docs/results/2026-11-25-agents.md). Twice as wide, after 4 minutes
    of an H100: 80% [65, 90] of 40 against level 10 (docs/results/2026-11-27-h100-agents.md).
    """
    return imagining(tower("go_9x9", num_bins=2))


def animal_shogi() -> Config:
    """python experiments/train.py --env animal_shogi

    AlphaZero, which was far ahead of MuZero here (docs/lab-notebook.md). After 26 minutes of one core it scores 97%
    against MCTS 100.
    """
    config = with_muon(tower("animal_shogi", num_bins=3, mcts_simulations=(100,)))
    return replace(config, model="rules", minutes=30.0)


def chess(env: str) -> Config:
    """python experiments/train.py --env chess --minutes 103

    AlphaZero, whose convolutions read a number for each kind of move on each square. After 103 minutes of a shared
    core, 3,293 games: 100% [89, 100] of 32 games against random play, and 97.5% [80, 99.7] of 20 against the weakest
    setting of Fairy-Stockfish. A tower had 59% of 16 and 67.5% of 20 after 50 minutes
    (docs/results/2026-11-30-agents.md). Gardner chess, whose agent is a tower, was not trained with these.
    """
    return replace(imagining(tower(env, num_bins=3)), model="rules")


def own_game(env: str, environment: Environment) -> Config:
    """python experiments/train.py --env examples/nim.py

    Your own game: the small boards' settings, or the tower if a board shows more than 128 numbers; an MLP if it shows
    no board of bits or lists chance. Its length is taken to be 1.5 times that of random games: up to 64 moves,
    values are learned from the outcome and rollout MCTS is an opponent. Nothing else is known of it: see --help-all.
    """
    from muzero_jax.games.own_game import random_games
    from muzero_jax.games.random_play import longest_game
    from muzero_jax.networks.model import shows_planes_of_bits

    if environment.board is not None and math.prod(environment.observation_shape) > LARGEST_SMALL_OBSERVATION:
        return tower(env, num_bins=3)
    seen = longest_game(random_games(environment))
    print(f"settings: those of small boards; random games last up to {seen} moves")
    longest = 3 * seen // 2 + 1  # games that are not random may last longer
    config = small_board(env, longest_game=longest, num_bins=3, exploration=min(0.5, 2.5 / longest))
    if longest > LONGEST_MONTE_CARLO:
        config = replace(config, targets=replace(config.targets, td_steps=32, td_lambda=0.95))
    if not shows_planes_of_bits(environment) or environment.chance is not None:
        optimiser = replace(config.optimiser, reconstruction_weight=1.0)  # for numbers; for bits it is 10
        config = replace(config, network=replace(config.network, kind="mlp"), optimiser=optimiser)
    budgets = (100,) if longest <= LONGEST_MONTE_CARLO else ()
    return replace(config, evaluation=EvaluationConfig(mcts_simulations=budgets, opening_plies=min(2, seen // 4)))
