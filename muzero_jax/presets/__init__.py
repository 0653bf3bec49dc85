"""A starting point for every game: plain Python, one function a family, with what was measured of it.

Times were taken on two AMD EPYC cores without an accelerator, where nothing else is said. A flag overrides any field.
"""

from collections.abc import Callable
from dataclasses import replace

from muzero_jax.ops import devices
from muzero_jax.own import python_file
from muzero_jax.presets.boards import connect_four, go_9x9, othello, small_board, tic_tac_toe, tower
from muzero_jax.presets.chance import backgammon, game_2048
from muzero_jax.presets.hardware import TIMES, suited
from muzero_jax.presets.hex import default_hex_size, hex_any
from muzero_jax.presets.one_player import minatar, outside
from muzero_jax.presets.own_game import own_game
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment

__all__ = ["GAMES", "TIMES", "default_hex_size", "hex_any", "preset", "small_board", "suited", "tic_tac_toe", "tower"]

GAMES: dict[str, Callable[[], Config]] = {
    "tic_tac_toe": tic_tac_toe,
    "connect_four": connect_four,
    "othello": othello,
    "go_9x9": go_9x9,
    "2048": game_2048,
    "backgammon": backgammon,
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
    chosen, has_chance = _on_cpu(env, board_size, environment), environment.chance is not None
    config, why = suited(chosen, devices.kind(), has_chance=has_chance)
    if why:
        print(f"settings: {why}")
    return config


def _on_cpu(env: str, board_size: int | None, environment: Environment) -> Config:
    from muzero_jax.games.outside import is_outside  # here, because pgx starts JAX when it is imported

    if env == "hex":
        return hex_any(board_size)  # type: ignore[arg-type]
    if env.startswith("minatar-"):
        return minatar(env)
    if is_outside(env):
        return outside(env)
    if python_file.is_path(env):
        return replace(own_game(env, environment), board_size=board_size)
    return GAMES[env]() if env in GAMES else tower(env, num_bins=3)
