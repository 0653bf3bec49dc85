"""Elo ratings with intervals: Bradley-Terry, fitted by penalised maximum likelihood.

A draw counts as half a win for both. The likelihood is binomial, so with draws the intervals are a little too wide,
never too narrow. A player who won every game has no finite maximum-likelihood rating. The likelihood is therefore
multiplied by Jeffreys' prior (Firth 1993), which acts like P - 1 draws in all, placed where games carry most
information. If one player won all games of a pair, the far end of the interval comes from the prior.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csgraph

ELO_PER_NAT = 400 / np.log(10)
Z95 = 1.959964
MOST_STEPS = 500
"""Usually ten suffice; players far apart who won all their games take hundreds."""


class Ratings(NamedTuple):
    """Elo of P players relative to the anchor, which has 0 by definition and no interval."""

    elo: Float[np.ndarray, " P"]
    low: Float[np.ndarray, " P"]  # the ends of each rating's 95% interval
    high: Float[np.ndarray, " P"]


def rate(wins: ArrayLike, *, anchor: int = 0) -> Ratings:
    """Ratings relative to player `anchor`, with 95% intervals.

    `wins` is [P, P]: `wins[i, j]` counts i's wins over j, a draw as half a win for both. The intervals are normal, from
    the Fisher information at the maximum, each for one difference from the anchor: of 20 ratings, one is expected to
    lie outside. They assume Bradley-Terry, that is, strength as one number; a cross table shows where that fails.
    Matches must connect all players, directly or indirectly, because otherwise they have no common Elo.
    """
    wins = np.asarray(wins, float)
    games = wins + wins.T
    assert csgraph.connected_components(games)[0] <= 1
    ratings = np.zeros(len(wins))
    for _ in range(MOST_STEPS):  # Newton's
        chance = special.expit(ratings[:, None] - ratings)
        information = games * chance * (1 - chance)
        variance = _variance(_covariance(information))
        draws = information * variance
        slope = (wins + draws / 2 - (games + draws) * chance).sum(axis=1)
        step = _covariance((games + draws) * chance * (1 - chance)) @ slope
        ratings += step
        if np.abs(step).max() * ELO_PER_NAT < 1e-3:
            break
    error = np.sqrt(variance[anchor]) * ELO_PER_NAT
    elo = (ratings - ratings[anchor]) * ELO_PER_NAT
    return Ratings(elo, elo - Z95 * error, elo + Z95 * error)


def win_matrix(num_players: int, matches: Sequence[tuple[int, int, float, float]]) -> Float[np.ndarray, "P P"]:
    """`wins` for `rate`, from matches (i, j, points of i, points of j)."""
    wins = np.zeros((num_players, num_players))
    for i, j, points, against in matches:
        wins[i, j] += points
        wins[j, i] += against
    return wins


def _covariance(information: np.ndarray) -> np.ndarray:
    """The covariance [P, P] of the ratings, with player 0 held fixed, from each pair's Fisher information."""
    covariance = np.zeros_like(information)
    laplacian = np.diag(information.sum(axis=1)) - information
    covariance[1:, 1:] = np.linalg.inv(laplacian[1:, 1:])
    return covariance


def _variance(covariance: np.ndarray) -> np.ndarray:
    """The variance [P, P] of the difference between any two ratings."""
    diagonal = np.diag(covariance)
    return diagonal[:, None] + diagonal - 2 * covariance
