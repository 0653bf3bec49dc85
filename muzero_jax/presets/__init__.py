"""The settings that each game starts with: plain Python, one function a family, with measured results.

Times are on two AMD EPYC cores without an accelerator, unless stated otherwise. A flag overrides any field.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from muzero_jax.config.config import Config
from muzero_jax.ops.devices import device_kind, has_little_memory
from muzero_jax.own import python_file
from muzero_jax.presets.boards import (
    animal_shogi,
    chess,
    connect_four,
    go_9x9,
    othello,
    own_game,
    small_board,
    tic_tac_toe,
    tower,
)
from muzero_jax.presets.chance import arcade, atari, backgammon, craftax, game_2048, minatar, outside
from muzero_jax.presets.hex import SIZES, for_every_board, hex_any
from muzero_jax.presets.hidden import hidden
from muzero_jax.types import Environment

__all__ = ["GAMES", "TIMES", "hex_any", "preset", "small_board", "suited", "tic_tac_toe", "tower"]

GAMES: dict[str, Callable[[], Config]] = {
    "tic_tac_toe": tic_tac_toe,
    "connect_four": connect_four,
    "othello": othello,
    "go_9x9": go_9x9,
    "animal_shogi": animal_shogi,
    "chess": partial(chess, "chess"),
    "gardner_chess": partial(chess, "gardner_chess"),
    "2048": game_2048,
    "backgammon": backgammon,
}


TIMES = {
    "small GPU": {"observation": 4, "pixels": 4},
    "large GPU": {"observation": 16, "fully_convolutional": 4, "tower": 8, "pixels": 16},
    "TPU": {"observation": 4, "pixels": 4},
}
"""Times as many games and windows as for a CPU, by kind of network: enough work that a GPU is not launch-bound even
without a CUDA graph. These sizes come from previews. On an H100, 16 times the games of Hex 5x5 were 3 times the frames
a second (docs/results/2026-11-27-h100.md), and the included agent of Go was trained with 512 games and wider
convolutions (docs/results/2026-11-27-h100-agents.md)."""


def preset(
    env: str, board_size: int | None = None, kind: str | None = None, *, fits_every_board: bool = False
) -> Config:
    """The preset of a game.

    Args:
      env: a game's name, or the path of a Python file with one.
      board_size: None: the game's own size, or for Hex a size that suits the device.
      kind: of the device, as `ops.devices.device_kind` returns it; by default that of this machine.
      fits_every_board: with convolutions, as `--board-sizes` needs.

    Raises ValueError for a game or a size that does not exist.
    """
    from muzero_jax.games.own_game import load_environment

    kind = kind or device_kind()
    if env == "hex" and board_size is None:
        board_size = SIZES[kind if kind != "TPU" or has_little_memory() else "large GPU"]
        print(f"board size: {board_size}x{board_size}, for a {kind} and one session; --board-size chooses another")
    environment = load_environment(env, board_size=board_size)
    config = _of_game(env, board_size, environment)
    if fits_every_board:
        config = replace(config, network=for_every_board(config.network))
    config, why = suited(config, kind)
    if why:
        print(f"settings: {why}")
    return config


def _of_game(env: str, board_size: int | None, environment: Environment) -> Config:
    from muzero_jax.games.catalogue import hides  # here, because pgx starts JAX when it is imported
    from muzero_jax.games.outside import is_outside

    if env == "hex":
        return hex_any(board_size)  # type: ignore[arg-type]
    if hides(environment):
        return replace(hidden(env, environment), board_size=board_size)
    if env.startswith("minatar-"):
        return minatar(env)
    if is_outside(env):
        return {"atari": atari, "craftax": craftax, "octax": arcade}.get(env.partition(":")[0], outside)(env)
    if python_file.is_path(env):
        return replace(own_game(env, environment), board_size=board_size)
    return replace(GAMES[env]() if env in GAMES else tower(env, num_bins=3), board_size=board_size)


def suited(config: Config, kind: str) -> tuple[Config, str]:
    """The settings for a kind of device, at the same replay ratio, and in words what was chosen and why."""
    if kind == "CPU":
        # Their iterations last seconds on CPUs, and each second leaves 25 MiB of tasks a device in XLA's queue.
        is_slow = config.network.kind in ("tower", "fully_convolutional")
        return (replace(config, iterations_per_chunk=1) if is_slow else config), ""
    times = 1 if config.minutes is None else TIMES[kind].get(config.network.kind, 1)  # else fewer updates
    play = replace(config.self_play, num_envs=times * config.self_play.num_envs)
    optimiser = replace(config.optimiser, batch_size=times * config.optimiser.batch_size)
    network = config.network
    is_wider = kind == "large GPU" and config.network.kind == "fully_convolutional"
    if is_wider:  # as for the H100's included agents of Connect Four and Go (docs/results/2026-11-27-h100-agents.md)
        network = replace(network, width=2 * network.width, num_blocks=2)
    is_tried = config.model != "rules" and config.search.policy != "none"  # in passes; one of them has no search
    engine = "passes" if is_tried else "own"
    search = replace(config.search, engine=engine)
    wider = f", width {network.width} in {network.num_blocks} blocks" if is_wider else ""
    chosen = f"{play.num_envs:,} games, batches of {optimiser.batch_size:,}, search {engine}{wider}"
    why = "see docs/accelerators.md; --autotune starts from these"
    config = replace(config, self_play=play, optimiser=optimiser, search=search, network=network)
    return config, f"for a {kind}: {chosen} ({why})"
