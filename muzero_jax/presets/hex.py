"""The settings of Hex, by the size of its board."""

from dataclasses import replace

from muzero_jax.config.config import Config
from muzero_jax.config.groups import EvaluationConfig, NetworkConfig
from muzero_jax.presets.boards import small_board

SIZES = {"CPU": 5, "small GPU": 9, "large GPU": 11, "TPU": 9}
"""The largest board that each kind of device learns in one session."""

LARGEST_SMALL_BOARD = 7
"""The largest Hex board that takes the small boards' network, whose games are many and cheap. Larger ones take
convolutions, whose weights fit every board: after an hour on only 7x7 they won 84% of their games on 9x9 against MLPs
that had learned 9x9 itself with as many FLOPs (docs/results/hex-sizes)."""
SMALLEST_WITH_MUON = 6
"""From this Hex board on Muon was better than AdamW, one seed each; on 5x5, with canonical observations, they were
level."""
STARTS_FROM = 7
"""The smallest Hex board on which half of the games begin after random moves. There five seeds won 53.7% to 64.5% of
their games against those without; on 5x5 they judged positions of random games better, and openings rather worse
(docs/results/starts)."""
HEX_MINUTES = {3: 3.0, 4: 8.0, 5: 15.0}
"""Training minutes by board size; 6x6 and 7x7 take half an hour."""
STARTS = 72
"""Frames of each game in the buffer of a larger board at which a window may start."""


def hex_any(board_size: int) -> Config:
    """python experiments/train.py --env hex --board-size 5

    With canonical observations 5x5 scores 91% against rollout MCTS with 1,000 simulations after 327,680 frames (three
    seeds; 84% without). On one core 6x6 scores 100% [98.5, 100] after 20 minutes, and 99.6% with 10,000 simulations;
    7x7 99.6% [97.8, 99.9] and 96.5% after 30 (docs/results/2026-11-23-hex-sizes.md). Without them, on two cores: 5x5
    95.2% [93.7, 96.4] and 96.1% [94.7, 97.1] after 15 minutes (two seeds), with a winning-move accuracy of 98.1% and
    97.2%. Because of the swap rule half of all games begin in a lost position: 4x4 scores 86.9% [85.4, 88.3] after 8
    minutes, where the best possible is some 90%, and 3x3 58.9% [56.8, 61.0] after 3, where it is some 59%
    (docs/results/2026-11-21-two-cpu-cores.md).
    """
    # After one random stone the swap rule makes the opening fair; after two the side that moved first has mostly won.
    opening_plies = 1
    longest_game = board_size**2
    exploration = 2.5 / longest_game  # about two random moves a game
    config = small_board("hex", longest_game=longest_game, num_bins=2, exploration=exploration)
    # Half of all games begin in a lost position. There an exact value is the same after every move, so an agent has no
    # reason to resist. Exploratory returns continue through random moves, so they differ between moves: with them it
    # scores 95% against rollout MCTS with 1,000 simulations on 5x5, and 87 to 90% without (docs/lab-notebook.md).
    # Values are therefore not those of perfect play, and the search's own value is in no target.
    config = replace(
        config,
        board_size=board_size,
        minutes=HEX_MINUTES.get(board_size, 30.0),
        network=replace(config.network, canonical=True),
        targets=replace(config.targets, stop_at_exploration=False),
        evaluation=EvaluationConfig(opening_plies=opening_plies),
    )
    if board_size >= SMALLEST_WITH_MUON:
        config = replace(config, optimiser=replace(config.optimiser, name="muon", learning_rate=0.01))
    if board_size > LARGEST_SMALL_BOARD:
        return larger_hex(config)
    if board_size >= STARTS_FROM:
        config = replace(config, self_play=replace(config.self_play, starts="random", start_moves=12))
    return config


def for_every_board(network: NetworkConfig) -> NetworkConfig:
    """The network with convolutions, whose weights fit every board; unchanged if it has them."""
    return network if network.kind == "fully_convolutional" else replace(network, kind="fully_convolutional", width=32)


def larger_hex(config: Config) -> Config:
    """Hex from 8x8: convolutions, which treat all cells alike."""
    size = config.board_size or 0
    rollout = config.self_play.rollout_length
    budgets = (100, 1000) if size <= 9 else (100,) if size <= 13 else ()
    # The buffer holds a whole window and as many further starts as on 7x7.
    replay_length = -(-(config.window_length + STARTS) // rollout) * rollout
    return replace(
        config,
        minutes=60.0,
        network=for_every_board(config.network),
        replay=replace(config.replay, replay_length=replay_length),
        evaluation=replace(
            config.evaluation, interval_minutes=10.0, games=64, final_games=64, mcts_simulations=budgets
        ),
    )
