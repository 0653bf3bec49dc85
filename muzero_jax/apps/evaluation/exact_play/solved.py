"""The games that have a solver, and the solver of tic-tac-toe."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from muzero_jax.apps.evaluation.exact_play import connect_four_solver, hex_solver
from muzero_jax.apps.evaluation.exact_play.oracle import Oracle, to_bits
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.game import Game

FULL = (1 << 9) - 1
LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)


def tic_tac_toe() -> Oracle:
    """The oracle of pgx's tic-tac-toe: observation [3, 3, 2], own stones and the opponent's stones.

    Plain negamax over two 9-bit boards: 5,478 positions, each solved once.
    """

    def action_values(observation: np.ndarray) -> dict[int, int]:
        own, other = to_bits(observation[..., 0]), to_bits(observation[..., 1])
        return {cell: _value_after(own | 1 << cell, other) for cell in range(9) if not (own | other) >> cell & 1}

    return Oracle(action_values, min_plies=0, is_small=True)


@functools.cache
def _value_after(moved: int, other: int) -> int:
    """The value for the player who has just moved and has the stones `moved`."""
    if any(moved & line == line for line in LINES):
        return 1
    empty = FULL & ~(moved | other)
    return -max((_value_after(other | 1 << cell, moved) for cell in range(9) if empty >> cell & 1), default=0)


class Exact(NamedTuple):
    """Exact play of a game, or of its small boards."""

    make_oracle: Callable[[int], Oracle]  # (board size; 0 for a game of one size)
    largest_size: int | None = None  # of the boards that are solved; None for a game of one size


SOLVED = {
    "tic_tac_toe": Exact(lambda board_size: tic_tac_toe()),
    "connect_four": Exact(lambda board_size: connect_four_solver.make_oracle()),
    "hex": Exact(hex_solver.make_oracle, hex_solver.MAX_SIZE),
}


def make_oracle(game: Game, board_size: int | None) -> Oracle:
    """The oracle of a game of the catalogue; raises ValueError if there is no solver for it."""
    exact = SOLVED.get(game.name)
    asked = board_size or 0
    if exact and GAMES[game.name] is game and (exact.largest_size is None or 0 < asked <= exact.largest_size):
        return exact.make_oracle(asked)
    board = f"{game.name} {board_size}x{board_size}" if board_size else game.name
    sizes = {name: each.largest_size for name, each in SOLVED.items()}
    known = [f"{name} up to {size}x{size}" if size else name for name, size in sizes.items()]
    raise ValueError(
        f"{board} has no oracle: exact play is known for {', '.join(known[:-1])} and {known[-1]}; "
        "measure this run with a match instead (evaluate.py match), or one that fits every board with --board-size"
    )
