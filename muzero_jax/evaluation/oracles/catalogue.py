"""Which games have an oracle."""

from muzero_jax.evaluation.oracles import connect_four, hex, tic_tac_toe
from muzero_jax.evaluation.oracles.common import Oracle


def make_oracle(env: str, board_size: int | None) -> Oracle:
    """The oracle of a game by its environment's name; ValueError if there is none."""
    if env == "tic_tac_toe":
        return tic_tac_toe.make_oracle()
    if env == "connect_four":
        return connect_four.make_oracle()
    if env == "hex" and board_size is not None and board_size <= hex.MAX_SIZE:
        return hex.make_oracle(board_size)
    game = f"hex {board_size}x{board_size}" if env == "hex" and board_size else env
    raise ValueError(
        f"{game} has no oracle: exact play is known for tic_tac_toe, connect_four and hex up to "
        f"{hex.MAX_SIZE}x{hex.MAX_SIZE}; measure this run with a match instead (--opponent)"
    )
