"""Oracles: the exact value of a position after each legal move.

A position is the observation of the player to move, which in these games shows everything that matters: stones, whose
edges are whose, whether a swap is legal. An oracle therefore depends neither on pgx nor on a run. Values are results
under perfect play, undiscounted, for the player to move: +1 won, 0 drawn, -1 lost.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import Array

ILLEGAL = -2
"""In `Solutions.action_values` for illegal actions; below every value."""


class Oracle(NamedTuple):
    """Exact play of one game on one board."""

    action_values: Callable[[np.ndarray], dict[int, int]]
    """observation [*obs] of a position that is not over -> the value, for the player to move, after each legal
    action"""
    min_plies: int
    """fewest moves made before a position; earlier positions would take too long to solve"""
    is_small: bool
    """whether the game has so few positions that all of them are judged instead of a sample"""


class Solutions(NamedTuple):
    """N solved positions of A actions."""

    value: np.ndarray  # [N] int8, for the player to move under perfect play
    action_values: np.ndarray  # [N, A] int8, for the player to move after each action; ILLEGAL where it is not legal

    @property
    def keeps_value(self) -> np.ndarray:
        """[N, A] bool: the optimal moves, which keep the position's value."""
        return self.action_values == self.value[:, None]

    @property
    def can_err(self) -> np.ndarray:
        """[N] bool: some legal moves keep the value and others do not."""
        return ((self.action_values != ILLEGAL) & ~self.keeps_value).any(axis=1)


def solve(
    oracle: Oracle, observation: Array | np.ndarray, *, num_actions: int, report: Callable[[int, int], None]
) -> Solutions:
    """Solves the positions [N, *obs] one by one on the host; calls `report(solved, N)` after each."""
    action_values = np.full((len(observation), num_actions), ILLEGAL, np.int8)
    for index, position in enumerate(observation):
        for action, value in oracle.action_values(position).items():
            action_values[index, action] = value
        report(index + 1, len(observation))
    return Solutions(action_values.max(axis=1), action_values)


def to_bits(cells: np.ndarray) -> int:
    """A bool array as one integer: bit i is cell i of the flattened array."""
    return int.from_bytes(np.packbits(np.asarray(cells, bool).ravel(), bitorder="little").tobytes(), "little")
