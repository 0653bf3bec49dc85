"""A starting point for every game: plain Python, one function a family, with what was measured of it.

Times were taken on two AMD EPYC cores without an accelerator, where nothing else is said. A flag overrides any field.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from muzero_jax.arithmetic import devices
from muzero_jax.storage import python_file
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import (
    EvaluationConfig,
    NetworkConfig,
    OptimiserConfig,
    ReplayConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)
from muzero_jax.types import Environment

LARGEST_SMALL_BOARD = 7
"""The largest Hex board that takes the small boards' network, whose games are many and cheap. Larger ones take
convolutions, whose weights fit every board: those of an hour of 7x7 alone won 84% of their games on 9x9 against MLPs
that had learned 9x9 itself with as many FLOPs (docs/results/hex-sizes)."""
SMALLEST_WITH_MUON = 6
"""From this Hex board on Muon was better than AdamW, one seed each; on 5x5, with canonical observations, they were
level."""
HEX_MINUTES = {3: 3.0, 4: 8.0, 5: 15.0}
"""Training minutes by board size; 6x6 and 7x7 take half an hour."""
STARTS = 72
"""Frames of each game in the buffer of a larger board at which a window may start."""


def small_board(env: str, *, longest_game: int, num_bins: int, exploration: float) -> Config:
    """The settings that small boards share.

    They are imagined observations, Monte-Carlo returns, large batches, and the auxiliary loss.

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
    # Half of all moves are drawn at random, so that it meets every position, also those that good play never leads to.
    config = small_board("tic_tac_toe", longest_game=9, num_bins=3, exploration=0.5)
    return replace(config, minutes=4.0)


def hex_any(board_size: int) -> Config:
    """python experiments/train.py --env hex --board-size 5

    Since it has canonical observations: 5x5 scores 91% against rollout MCTS with 1,000 simulations after 327,680
    frames (three seeds; 84% before). On one core 6x6 scores 100% [98.5, 100] after 20 minutes, and 99.6% with 10,000
    simulations; 7x7 99.6% [97.8, 99.9] and 96.5% after 30 (docs/results/2026-11-23-hex-sizes.md).
    Before: 5x5 95.2% [93.7, 96.4] and 96.1% [94.7, 97.1] after 15 minutes on two cores (two seeds), with a
    winning-move accuracy of 98.1% and 97.2%. Half of all games are lost by strategy, because of the swap. 4x4 scores
    86.9% [85.4, 88.3] after 8 minutes, where the best possible is some 90%. 3x3 scores 58.9% [56.8, 61.0] after 3,
    where it is some 59% (scripts/best_reply.py).
    """
    # One random stone, and the swap rule makes the opening fair; after two the side that moved first has mostly won.
    opening_plies = 1
    longest_game = board_size**2
    exploration = 2.5 / longest_game  # about two random moves a game
    config = small_board("hex", longest_game=longest_game, num_bins=2, exploration=exploration)
    # Half of all games begin in a lost position. There an exact value is the same after every move, so an agent has no
    # reason to resist. Exploratory returns run on through random moves, so they differ between moves. With them it
    # scores 95% against rollout MCTS with 1,000 simulations on 5x5; it scored 87 to 90% (docs/lab-notebook.md). So a
    # value is not that of perfect play, and the search's own value reaches no target.
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
    return config if board_size <= LARGEST_SMALL_BOARD else larger_hex(config)


def larger_hex(config: Config) -> Config:
    """Hex from 8x8: convolutions, which see every cell alike."""
    size, rollout = config.board_size or 0, config.self_play.rollout_length
    budgets = (100, 1000) if size <= 9 else (100,) if size <= 13 else ()
    # A window must fit into the buffer whole. Beyond it there is room for as many starts as on 7x7.
    replay_length = -(-(config.window_length + STARTS) // rollout) * rollout
    return replace(
        config,
        minutes=60.0,
        iterations_per_chunk=chunk_of_tower(),
        network=replace(config.network, kind="fully_convolutional", width=32),
        replay=replace(config.replay, replay_length=replay_length),
        evaluation=replace(
            config.evaluation, interval_minutes=10.0, games=64, final_games=64, mcts_simulations=budgets
        ),
    )


def connect_four() -> Config:
    """python experiments/train.py --env connect_four

    After 30 minutes 100% against random, 97.3% [94.5, 98.7] against rollout MCTS with 100 simulations, 90.0% [88.1,
    91.7] with 1,000, and a winning-move accuracy of 94.6% [91.1, 96.7].
    """
    config = small_board("connect_four", longest_game=42, num_bins=3, exploration=0.1)
    return replace(
        config,
        minutes=30.0,
        network=replace(config.network, width=256),
        search=replace(config.search, num_simulations=8, max_num_considered_actions=4),
        replay=replace(config.replay, replay_length=512),
        targets=replace(config.targets, td_lambda=0.95),
        optimiser=replace(config.optimiser, updates_per_iteration=8),
    )


def tower(env: str, *, num_bins: int, mcts_simulations: tuple[int, ...] = ()) -> Config:
    """A convolution tower for larger boards: Othello, Go, chess and shogi; meant for an accelerator.

    mcts_simulations: budgets of rollout MCTS to play against. By default none: 32 random games at once take 2 ms of
    Othello, but 40 of animal shogi, 400 of Gardner chess, 700 of Go 9x9 and 2,700 of chess, and a match needs a hundred
    or a thousand times some 30. There random play and the run's own versions tell how it goes.
    """
    return Config(
        env=env,
        minutes=60.0,
        iterations_per_chunk=chunk_of_tower(),
        network=NetworkConfig(kind="tower", width=64, num_blocks=2, num_bins=num_bins),
        search=SearchConfig(num_simulations=16, max_num_considered_actions=8, value_scale=0.4),
        self_play=SelfPlayConfig(num_envs=128, rollout_length=8, exploration=0.02),
        replay=ReplayConfig(replay_length=256, end_weight=4),
        targets=TargetConfig(unroll_steps=4, td_steps=32, td_lambda=0.95),
        optimiser=OptimiserConfig(
            batch_size=128, updates_per_iteration=8, reward_weight=3.0, reconstruction_weight=10.0
        ),
        # One evaluation of Go 9x9 takes a minute and more: at a small board's pace there would be nothing else.
        evaluation=EvaluationConfig(
            interval_minutes=10.0,
            games=64,
            final_games=64,
            mcts_simulations=mcts_simulations,
        ),
    )


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
    if not shows_planes_of_bits(environment):
        optimiser = replace(config.optimiser, reconstruction_weight=1.0)  # of numbers; of bits it is 10
        config = replace(config, network=replace(config.network, kind="mlp"), optimiser=optimiser)
    budgets = (100,) if longest <= LONGEST_MONTE_CARLO else ()
    evaluation = EvaluationConfig(mcts_simulations=budgets, opening_plies=min(2, seen // 4))
    return replace(config, evaluation=evaluation)


def chunk_of_tower() -> int:
    """One iteration on CPUs: it lasts seconds, each of which leaves 25 MiB of tasks in XLA's queue."""
    return 1 if devices.kind() == "CPU" else Config.iterations_per_chunk


def othello() -> Config:
    """python experiments/train.py --env othello

    After 8 minutes, 2,304 games: 99% against random, 88% [77, 94] against rollout MCTS with 100 simulations and
    48% [37, 60] with 1,000, itself searching with 32. The whole hour was not measured.
    """
    return tower("othello", num_bins=3, mcts_simulations=(100, 1000))


def go_9x9() -> Config:
    """python experiments/train.py --env go_9x9

    After 12 minutes, 978 games: 100% [94, 100] against random. The whole hour was not measured.
    """
    return tower("go_9x9", num_bins=2)


TIMES = {
    "small GPU": {"observation": 4},
    "large GPU": {"observation": 16, "fully_convolutional": 4, "tower": 8},
    "TPU": {"observation": 4},
}
"""Times as many games and windows as for a CPU, by kind of network, so that computing takes about as long as launching
it, or longer. By the preview a T4 is then 100% busy, an H100 87 to 100%: 8,192 games of Hex 5x5 are 1.6 M frames/s at
best. Never timed on a GPU or a TPU, and nobody trained with so many games."""


def suited(config: Config, kind: str) -> tuple[Config, str]:
    """The settings for a kind of device, at the same replay ratio, and in words what was chosen and why."""
    if kind == "CPU":
        return config, ""
    times = TIMES[kind].get(config.network.kind, 1)
    play = replace(config.self_play, num_envs=times * config.self_play.num_envs)
    optimiser = replace(config.optimiser, batch_size=times * config.optimiser.batch_size)
    engine = "own" if kind == "TPU" else "loop_free"  # a TPU never waits for the host
    search = replace(config.search, engine=engine)
    chosen = f"{play.num_envs:,} games, batches of {optimiser.batch_size:,}, search {engine}"
    why = "by scripts/preview.py, never timed; --autotune goes on from there"
    return replace(config, self_play=play, optimiser=optimiser, search=search), f"for a {kind}: {chosen} ({why})"


def default_hex_size() -> tuple[int, str]:
    """The largest board that this machine learns in one session, and the reason in words."""
    if devices.kind() == "CPU":
        return 5, "5x5, what a CPU learns in one session"
    limit = devices.memory_stats(devices.target_device()).get("bytes_limit", 0) / 2**30
    if limit and limit < devices.SMALL_GPU:
        return 9, f"9x9, for an accelerator with {limit:.0f} GiB"
    return 11, "11x11, for a large accelerator"


GAMES: dict[str, Callable[[], Config]] = {
    "tic_tac_toe": tic_tac_toe,
    "connect_four": connect_four,
    "othello": othello,
    "go_9x9": go_9x9,
}


def preset(env: str, board_size: int | None) -> Config:
    """The preset of a game.

    Args:
      env: a game's name, or the path of a Python file with one.
      board_size: None for the game's own size; of Hex, a size that suits this machine.

    Raises ValueError in one sentence for a game or a size that does not exist.
    """
    from muzero_jax.games.own_game import load_environment

    if env == "hex" and board_size is None:
        board_size, why = default_hex_size()
        print(f"board size: {why}; --board-size chooses another")
    environment = load_environment(env, board_size=board_size)
    config, why = suited(_on_cpu(env, board_size, environment), devices.kind())
    if why:
        print(f"settings: {why}")
    return config


def _on_cpu(env: str, board_size: int | None, environment: Environment) -> Config:
    if env == "hex":
        return hex_any(board_size)  # type: ignore[arg-type]
    if python_file.is_path(env):
        return replace(own_game(env, environment), board_size=board_size)
    return GAMES[env]() if env in GAMES else tower(env, num_bins=3)
